"""Reads YAML and JSON files as plain data, those of users with limits, and finds the line of a value for messages."""

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from ..kernel.problem import UnusableInput

Json = Any
Place = list[str | int]
"""The keys and indexes that lead to a value."""
METHODS = ("get", "put", "post", "delete", "patch")
"""The members of a path item that are operations."""
MOST_BYTES = 10 * 1024 * 1024
DEEPEST = 100
MOST_NODES = 1_000_000  # an alias counts as many as it refers to


class ContractError(UnusableInput):
    """The contract or an overlay cannot be used: gives the place (file and line, or JSONPath) and the reason."""


def error_at(place: Place, reason: str) -> ContractError:
    """The error of a place in a document."""
    return ContractError(f"{json_path(place)}: {reason}")


_TEXT = "tag:yaml.org,2002:str"


class _Loader(yaml.CSafeLoader):
    """YAML's JSON subset of types: a date stays text, and only true and false are booleans."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] in ("null", "int", "float")]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false)$"), list("tf"))


def read(path: Path) -> Json:
    """A YAML (or JSON) file as data. Raises ContractError with file and line."""
    return parse(read_text(path, str(path)), str(path))


def read_user_file(path: Path) -> Json:
    """A YAML (or JSON) file of a user as data, so that none can fill the memory or end the process.

    Raises ContractError, one line with file and place, as `read` does, and for a file that is nested deeper than 100
    levels or has more than a million values.
    """
    text = read_text(path, str(path))
    check_bounds(text, str(path))
    return parse(text, str(path))


def read_text(path: Path, name: str) -> str:
    """The text of a regular file of at most 10 MB; errors call it by `name`. Raises ContractError."""
    try:
        if path.exists() and not path.is_file():
            raise ContractError(f"{name}: is not a regular file")
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise ContractError(f"{name}: no such file") from None
    except OSError as error:
        raise ContractError(f"{name}: cannot be read: {error.strerror or error}") from None
    if len(data) > MOST_BYTES:
        raise ContractError(f"{name}: is larger than {MOST_BYTES // 1024 // 1024} MB, the most that is read")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ContractError(f"{name}:{line}: is not UTF-8") from None


def check_bounds(text: str, name: str) -> None:
    """Reject a text that is nested too deep or has too many values. Raises ContractError with name and line.

    It reads events, which takes no recursion. A text that is not YAML is rejected by `parse`.
    """
    sizes: list[int] = [0]  # how many values each open collection has, aliases counted in full
    names: list[str | None] = [None]
    known: dict[str, int] = {}
    problem = None
    try:
        for event in yaml.parse(text, yaml.CSafeLoader):
            if isinstance(event, yaml.CollectionStartEvent):
                sizes.append(1)
                names.append(event.anchor)
                if len(sizes) > DEEPEST + 1:
                    problem = f"is nested deeper than {DEEPEST} levels"
            elif isinstance(event, (yaml.CollectionEndEvent, yaml.AliasEvent, yaml.ScalarEvent)):
                size, anchor = 1, getattr(event, "anchor", None)
                if isinstance(event, yaml.CollectionEndEvent):
                    size, anchor = sizes.pop(), names.pop()
                elif isinstance(event, yaml.AliasEvent):
                    if anchor not in known:
                        problem = f"the alias *{anchor} refers to no complete value before it"
                    size, anchor = known.get(str(anchor), 1), None
                if anchor is not None:
                    known[anchor] = size
                sizes[-1] += size
                if sizes[-1] > MOST_NODES:
                    problem = f"has more than {MOST_NODES:,} values"
            if problem is not None:
                raise ContractError(f"{name}:{event.start_mark.line + 1 if event.start_mark else 1}: {problem}")
    except yaml.YAMLError:
        return


def parse(text: str | bytes, name: str) -> Json:
    """The data in a text that was read from a file of this name. Raises ContractError with name and line."""
    try:
        return _data(yaml.compose(text, _Loader), name, {})
    except yaml.MarkedYAMLError as error:
        where = f"{name}:{error.problem_mark.line + 1}" if error.problem_mark else name
        raise ContractError(f"{where}: is not YAML that can be read here: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ContractError(f"{name}: is not YAML: {' '.join(str(error).split())}") from None


def _data(node: yaml.Node | None, name: str, made: dict[yaml.Node, Json]) -> Json:
    """A composed node as data, ten times as fast as PyYAML's own constructors; `made` holds nodes already converted."""
    if isinstance(node, yaml.ScalarNode):
        return node.value if node.tag == _TEXT else _scalar(node, name)
    if node is None:
        return None
    if node in made:
        return made[node]
    is_list = isinstance(node, yaml.SequenceNode)
    if node.tag != f"tag:yaml.org,2002:{'seq' if is_list else 'map'}":  # such as a set
        raise _not_json(node, name, f"JSON has nothing like {node.tag.rpartition(':')[2]}")
    made[node] = [_data(child, name, made) for child in node.value] if is_list else _map(node, name, made)
    return made[node]


def _map(node: yaml.Node, name: str, made: dict[yaml.Node, Json]) -> Json:
    result: dict[str, Json] = {}
    for key_node, value_node in node.value:
        key = _data(key_node, name, made)
        if not isinstance(key, str):
            raise _not_json(key_node, name, f"the key {key!r} is not text: quote it")
        if key in result:
            raise _not_json(key_node, name, f"the key {key!r} appears twice")
        result[key] = _data(value_node, name, made)
    return result


def _scalar(node: yaml.ScalarNode, name: str) -> Json:
    text, kind = node.value, node.tag.rpartition(":")[2]
    if kind == "null":
        return None
    if kind == "bool":
        return text == "true"
    if kind == "int" and _INTEGER(text):
        return int(text)
    if kind == "float" and _FLOAT(text):
        return float(text)
    if kind not in ("int", "float"):
        raise _not_json(node, name, f"JSON has nothing like {kind}")
    raise _not_json(node, name, f"{text!r} is neither a JSON number nor quoted text")


_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)").fullmatch
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+(?:[eE][+-]?[0-9]+)?").fullmatch


def _not_json(node: yaml.Node, name: str, problem: str) -> ContractError:
    return ContractError(f"{name}:{node.start_mark.line + 1}: {problem}")


def line_of(path: Path, pointer: Place) -> int | None:
    """The line of the value at a path of keys in a file, or of the closest parent that exists."""
    try:
        node = yaml.compose(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return None
    for step in pointer:
        if isinstance(node, yaml.MappingNode):
            found = [(k, v) for k, v in node.value if k.value == str(step)]
            if not found:
                break
            node = found[0][1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
        else:
            break
    return node.start_mark.line + 1 if node is not None else None


def json_path(pointer: Place) -> str:
    """`$.paths['/v2/orders'].get` for a path of keys."""
    text = "$"
    for step in pointer:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step.replace("_", "a").isalnum() and not step[:1].isdigit():
            text += f".{step}"
        else:
            text += f"['{step}']"
    return text


def value_at(node: Json, place: Sequence[str | int]) -> Json:
    """The value at a place. Raises KeyError where there is none."""
    for step in place:
        try:
            node = node[step]
        except (TypeError, IndexError):
            raise KeyError(step) from None
    return node


def nodes(data: Json, without: Collection[str] = ()) -> Iterator[tuple[Place, Json]]:
    """Every object and list in data in their order, with the keys that lead there; none below the keys `without`."""
    pending: list[tuple[Place, Json]] = [([], data)]
    while pending:
        at, node = pending.pop()
        members = node.items() if isinstance(node, dict) else enumerate(node)
        yield at, node
        below = [
            ([*at, key], value) for key, value in members if isinstance(value, (dict, list)) and key not in without
        ]
        pending += reversed(below)


def path_to(wanted: Json, data: Json) -> Place | None:
    """The keys that lead from data to one object in it. They are searched for an error, not kept while bundling."""
    return next((at for at, node in nodes(data) if node is wanted), None)


def unescaped(pointer: str) -> list[str]:
    """The steps of a JSON Pointer."""
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def escaped(step: str | int) -> str:
    """A step as a JSON Pointer has it."""
    return str(step).replace("~", "~0").replace("/", "~1")
