"""An overlay steers the server or stops the start with file and line; none leads to a 500."""

from pathlib import Path

import pytest

from .random_overlays import outcome


@pytest.mark.check
@pytest.mark.turn
@pytest.mark.defects
@pytest.mark.parametrize("seed", range(1_000, 1_008))
@pytest.mark.matrix
def test_a_random_overlay_is_followed_or_refused(tmp_path: Path, seed: int) -> None:
    assert outcome(tmp_path, seed)[1] == []
