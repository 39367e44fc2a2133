"""The forms of a report: text and HTML for people; JSON, JUnit's XML, SARIF 2.1.0 and the overlay
for programs.
"""

from collections import Counter
from typing import Any
from urllib.parse import quote

import yaml
from jinja2 import Environment, PackageLoader, select_autoescape

from ...contract.source import fixture
from ...core.text import counted, json_text, printable, printable_lines
from ...version import __version__
from .findings import CLASSES, GROUPS, cut, listed

FORMS = {
    "text": "report.txt",
    "json": "report.json",
    "html": "report.html",
    "junit": "report.xml",
    "sarif": "report.sarif",
}
"""The forms of a report, with their templates.

In the text, control characters from the target are escaped; HTML is the text as one page without
other files, for light and dark screens; docs/verify.md has the shape of the JSON. In SARIF, errors
depart from what is documented or are wrong whatever the contract assumes; others are warnings.
"""


_TEMPLATES = Environment(
    loader=PackageLoader(__package__),
    autoescape=select_autoescape(("html", "xml")),
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.globals |= {
    "classes": CLASSES,
    "groups": GROUPS,
    "skipped": fixture("verify.yaml")["skipped"],
    "version": __version__,
}
_TEMPLATES.filters |= {
    "counted": counted,
    "counts": Counter,
    "cut": cut,
    "folder": lambda path: path.rpartition("/")[0],
    "json": json_text,
    "listed": listed,
    "quoted": quote,
    "one_line": lambda text: printable(" ".join(text.split())),
    "printable": printable,
    "printable_lines": printable_lines,
    # what differs and where, the request, both answers, the line of the contract, what to do
    "lines": lambda it: rendered("divergence.txt", it=it),
    "text": lambda report: rendered("report.txt", report=report),
    "yaml": lambda it: yaml.safe_dump(it, sort_keys=False, allow_unicode=True, width=110).rstrip(),
}


def rendered(template: str, **values: Any) -> str:
    """A template whole, without a line break at its end."""
    return _TEMPLATES.get_template(template).render(values)
