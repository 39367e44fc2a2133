"""What the two judgements by schemathesis have in common."""

from typing import Any

import pytest

from ..support.short import chosen
from .reach import operations


@pytest.fixture(scope="module", params=[8, pytest.param(1_000, marks=pytest.mark.night)])
def asked(contract: Any, request: pytest.FixtureRequest) -> dict[str, str]:
    """Operations by method and path: some of the module's contract, and at night all."""
    ids = {operation["operationId"]: name for name, operation in operations(contract)}
    return {ids[ident]: ident for ident in chosen(request.param, ids)}
