"""The fixtures of the pytest plugin and what they give, from their docstrings."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

from stub_server.testing import Fault, Inbox, Sandbox, Server, connected, plugin, running

from .writing import code, line, page, table


def fixtures() -> str:
    """The page of the test kit."""
    found = (
        (name, each)
        for name, each in vars(plugin).items()
        if type(each).__name__ == "FixtureFunctionDefinition"
    )
    return page(
        "The test kit",
        "What [the fixtures for pytest](../pytest.md) are called and do. There is nothing to"
        " import.",
        "## Fixtures",
        table(("Fixture", "What"), ((code(name), _text(each)) for name, each in found)),
        "## Marker",
        "`@pytest.mark.{}`:{}.".format(*plugin.MARKER.split(":")),
        *(
            f"## {each.__name__}\n\n{_text(each)}\n\n{table(('Member', 'What'), _members(each))}"
            for each in (Sandbox, Inbox, Fault, Server)
        ),
        "## Without pytest",
        table(
            ("Function", "What"),
            ((_signature(each.__name__, each), _text(each)) for each in (running, connected)),
        ),
    )


def _members(kind: type) -> Iterator[tuple[str, str]]:
    own = (vars(home) for home in reversed(kind.__mro__[:-1]))
    for name, member in {name: member for each in own for name, member in each.items()}.items():
        if not name.startswith("_"):
            yield _signature(name, member) if callable(member) else code(name), _text(member)


def _signature(name: str, function: Any) -> str:
    """`pay(order)`: the parameters without types."""
    known = [
        each for each in inspect.signature(function).parameters.values() if each.name != "self"
    ]
    plain = str(
        inspect.Signature([each.replace(annotation=inspect.Parameter.empty) for each in known])
    )
    return code(name + re.sub(r"\('.*?'\)", "…", plain))  # a long default is in the text


def _text(each: Any) -> str:
    return line(inspect.getdoc(each) or "")
