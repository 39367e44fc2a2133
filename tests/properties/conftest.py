"""Scenarios that several modules look at."""

import pytest

from ..support.worlds import FIXTURES


@pytest.fixture(scope="module")
def small_busy(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The scenario `busy` with one order in twenty-five."""
    path = tmp_path_factory.mktemp("scenarios") / "small_busy.yaml"
    text = (FIXTURES / "scenarios" / "busy.yaml").read_text(encoding="utf-8")
    path.write_text(text.replace("scale: 1\n", "scale: 0.04\n"), encoding="utf-8")
    return str(path)
