"""What the contract and the rules list: events, scopes, magic values, fault presets."""

import re

from stub_server.app import data_dir
from stub_server.contract import bundle

from .writing import code, line, page, table

API, CONTROL, *_ = bundle.contracts(data_dir("openapi"))


def events() -> str:
    """The index of the events."""
    return page(
        "Events",
        """A [webhook](../webhooks.md) subscribes to an event, such as `order.paid`, or to all of a kind, such as
        `order.*`. A delivery is a POST of a payload whose `data` contains the record under the name of its kind. Each
        event has a page in a running server, such as `/docs/order.paid`, with its payload. `POST /_sandbox/events`
        sends any of them without a cause.""",
        table(
            ("Event", "When", "Raised by"),
            ((code(name), line(_when(name)), _by(name)) for name in API.events),
        ),
    )


def _when(name: str) -> str:
    event = API.events[name]
    return re.split(r"(?<=[.])\s", event["description"] or event["summary"])[0]


def _by(name: str) -> str:
    by = API.events[name]["emitted_by"]
    return ", ".join("the clock" if each == "clock" else code(each) for each in by)
