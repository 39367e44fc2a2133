"""The way of a request: the list of layers."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stub_server.app import create_app

from ..support.live import FROZEN

pytestmark = pytest.mark.check
ARCHITECTURE = Path(__file__).parents[2] / "docs" / "architecture.md"


def name_of(layer: Any) -> str:
    """The class of a layer in the list."""
    return str(getattr(layer, "func", layer).__name__)


def test_the_page_on_architecture_lists_the_layers_as_the_code_has_them(database: str) -> None:
    app = create_app(replace(FROZEN, rate_limit=(3, 60), store=database))
    app.sandboxes.persistence.close()
    listed = re.findall(r"^\d+\. `(\w+)` ", ARCHITECTURE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [*map(name_of, app.middlewares), "Dispatch"] == listed
