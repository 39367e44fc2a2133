"""Fixtures of the engine's proofs: a server with small bounds, and addresses for its webhooks."""

from collections.abc import Iterator

import pytest

from ..support.receiver import receiving
from .inside import Inside
from .small import small_server


@pytest.fixture(scope="module")
def inside() -> Iterator[Inside]:
    """A server with small bounds, and a caller."""
    with small_server() as app:
        caller = Inside(app)
        yield caller
        caller.close()


@pytest.fixture(scope="module")
def lived() -> Iterator[Inside]:
    """The same over a merchant with a past."""
    with small_server("default") as app:
        caller = Inside(app)
        yield caller
        caller.close()


@pytest.fixture(scope="module")
def hooks() -> Iterator[tuple[str, ...]]:
    """Addresses that take a webhook, that fail, and that say they are gone."""
    with receiving() as good, receiving() as bad, receiving() as gone:
        bad.status, gone.status = 500, 410
        yield good.url, good.url + "/too", bad.url, gone.url
