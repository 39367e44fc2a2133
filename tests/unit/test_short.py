"""The short run leaves out what is marked and keeps some cases of each test."""

import math
from collections import Counter
from pathlib import Path

import pytest

from ..support.short import KEPT, SAMPLED, TURNS, sample, split

ROOT = Path(__file__).parents[2]


def test_the_short_run_keeps_some_cases_of_each_test_and_nothing_that_is_marked(
    request: pytest.FixtureRequest,
) -> None:
    items = request.session.items
    kept, left = split(items)
    assert sorted(item.nodeid for item in items) == sorted(item.nodeid for item in [*kept, *left])
    assert not any(item.get_closest_marker("check") for item in kept)
    unmarked = Counter(_function(item) for item in items if not item.get_closest_marker("check"))
    assert {name: min(number, KEPT) for name, number in unmarked.items()} == Counter(
        _function(item) for item in kept
    )


@pytest.mark.check
def test_a_sample_keeps_some_cases_some_files_and_everything_else(
    request: pytest.FixtureRequest,
) -> None:
    items = request.session.items
    kept, left = sample(items)
    assert sorted(item.nodeid for item in items) == sorted(item.nodeid for item in [*kept, *left])
    assert all(
        item.get_closest_marker("matrix") or item.get_closest_marker("turn") for item in left
    )
    in_turn = {item.path for item in items if item.get_closest_marker("turn")}
    assert math.ceil(len(in_turn) / TURNS) == len(
        {item.path for item in kept if item.get_closest_marker("turn")}
    )
    always = [item for item in items if item.path not in in_turn]
    matrices = Counter(_function(item) for item in always if item.get_closest_marker("matrix"))
    found = Counter(
        _function(item) for item in kept if item.get_closest_marker("matrix") and item in always
    )
    assert {name: min(number, SAMPLED) for name, number in matrices.items()} == found


def _function(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]
