"""The fixtures of the kit as the tests here have them: with a clock that stands."""

from typing import Any

import pytest


@pytest.fixture(scope="session")
def sandbox_settings() -> dict[str, Any]:
    return {"now": "2026-11-20T12:00:00Z"}
