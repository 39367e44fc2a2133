"""A report as one page that needs no other file and no script."""

from __future__ import annotations

from functools import partial
from typing import Any

from jinja2 import Environment, PackageLoader

from ...commands.options import json_text, printable_lines
from ..findings import CLASSES, GROUPS, Report
from ..where import Where
from . import words


def render(report: Report, where: Where) -> str:
    """The report as HTML, for light and dark screens."""
    environment = Environment(
        loader=PackageLoader(__package__), autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_visible
    )
    lines = [where.line(divergence.pointer, divergence.operation) for divergence in report.divergences]
    return environment.get_template("report.html").render(
        report=report, lines=lines, words=words, classes=CLASSES, groups=GROUPS, action=partial(json_text, indent=2)
    )


def _visible(value: Any) -> Any:
    """Text in which nothing hides or turns around what is beside it."""
    return printable_lines(value) if isinstance(value, str) else value
