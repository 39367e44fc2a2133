"""The forms of a report."""

from __future__ import annotations

from ..findings import Report
from ..where import Where
from .people import html, text
from .programs import json, junit, sarif

FORMS = {"text": text, "json": json, "html": html, "junit": junit, "sarif": sarif}


def render(form: str, report: Report, where: Where) -> str:
    """A report in one of `FORMS`, whole and without a line break at its end."""
    return FORMS[form](report, where)
