"""Connexion's validation of responses, to which journeys hold every success, rejects what the
contract lacks.
"""

import asyncio

import httpx2
import pytest

from ..support.contract import document
from .stock import Responses, formats_known
from .successes import noted_successes

pytestmark = pytest.mark.check


def test_successes_are_noted_and_wrong_ones_found(
    api: httpx2.Client, control: httpx2.Client
) -> None:
    """A body without a member, one with another type, an answer without a header, another
    media type.
    """
    with noted_successes(__file__) as answers:
        api.get("/v2/customers?limit=1").raise_for_status()
        # of the control surface, which is another contract
        control.get("/clock").raise_for_status()
        assert 404 == api.get("/v2/customers/x").status_code
    ((method, path, (status, headers, body)),) = answers
    assert ("GET", "/v2/customers", 200) == (method, path, status)
    responses = Responses(document().raw)
    wrong = (
        (headers, body.replace(b'"pagination"', b'"pages"')),
        (headers, body.replace(b'"total":', b'"total":"many","of":')),
        ([pair for pair in headers if pair[0] != "x-request-id"], body),
        (
            [
                *(pair for pair in headers if pair[0] != "content-type"),
                ("content-type", "text/plain"),
            ],
            body,
        ),
    )

    async def judged() -> list[str | None]:
        found = [await responses.fault(method, path, (status, headers, body))]
        return [*found, *[await responses.fault(method, path, (status, *each)) for each in wrong]]

    with formats_known():
        good, *bad = asyncio.run(judged())
    assert good is None
    assert all(bad), bad
