"""How a reference page is written: tables, code and texts as Markdown."""

import re
from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; empty without rows."""
    lines = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows]
    return (
        "\n".join(
            f"| {each} |" for each in (" | ".join(head), " | ".join("---" for _ in head), *lines)
        )
        if lines
        else ""
    )


def code(value: str) -> str:
    """A value as code; empty for an empty one."""
    return f"`{value}`" if value else ""


def codes(values: Iterable[str]) -> str:
    """Several values as code."""
    return ", ".join(map(code, values))


def line(text: str) -> str:
    """A text as one line."""
    return " ".join(text.split())


def page(title: str, text: str, *parts: str) -> str:
    """A page: its title, what it is about, and its parts."""
    return re.sub(
        r"\n{3,}",
        "\n\n",
        "\n\n".join((f"# {title}", line(text), *(part.strip("\n") for part in parts if part))),
    )
