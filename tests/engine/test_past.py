"""What a seeded past has derived is what its records say."""

from dataclasses import replace

import pytest

from stub_server.app import create_app

from ..support.live import FROZEN
from .state import stale


@pytest.mark.parametrize("scenario", ["default", "past_due"])
def test_all_that_a_seeded_past_has_derived_follows_from_its_records(scenario: str) -> None:
    assert not stale(create_app(replace(FROZEN, scenario=scenario)).sandboxes.default)
