"""How much a body holds and how deep it is, before anybody looks at what it says."""

from typing import Any


def has_more_values(value: Any, most: int) -> bool:
    """Whether a body is made of more values: to hold half a million to a schema takes a second."""
    count = 0
    pending: list[Any] = [[value]]
    while pending:
        node = pending.pop()
        count += len(node)
        if count > most:
            return True
        inner = node.values() if isinstance(node, dict) else node
        pending += [child for child in inner if isinstance(child, (dict, list))]
    return False


def is_deeper_than(value: Any, levels: int) -> bool:
    """Whether lists and objects stand in each other for more than so many levels."""
    layer = [value]
    for _ in range(levels):
        layer = [
            child
            for node in layer
            if isinstance(node, (dict, list))
            for child in (node.values() if isinstance(node, dict) else node)
        ]
        if not layer:
            return False
    return any(isinstance(node, (dict, list)) for node in layer)
