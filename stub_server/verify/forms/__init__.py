"""The forms of a report: one module each, with `render(report, where) -> str`."""

from importlib import import_module

from ..findings import Report
from ..where import Where

FORMS = ("text", "json", "html", "junit", "sarif")


def render(form: str, report: Report, where: Where) -> str:
    """A report in one of `FORMS`, whole and without a line break at its end."""
    text: str = import_module(f".{form}", __name__).render(report, where)
    return text
