"""Reads YAML and JSON files as plain data, those of users with limits, and finds the line of a
value for messages.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import yaml

from ..core.problem import UnusableInput
from ..core.shipped import FIXTURES

Json = Any
JsonObject = dict[str, Any]
Place = list[str | int]
"""The keys and indexes that lead to a value."""
METHODS = ("get", "put", "post", "delete", "patch")
"""The members of a path item that are operations."""
MOST_BYTES = 10 * 1024 * 1024
DEEPEST = 100
MOST_NODES = 200_000  # an alias counts as many as it refers to, also of characters


class ContractError(UnusableInput):
    """The contract or an overlay cannot be used: gives the place (file and line, or JSONPath) and
    the reason.

    `place` is that in a document, empty for a file.
    """

    place: Sequence[str | int] = ()


def error_at(place: Place, reason: str) -> ContractError:
    """The error of a place in a document."""
    error = ContractError(f"{json_path(place)}: {reason}")
    error.place = place
    return error


class _Loader(yaml.CSafeLoader):
    """Reads the types of JSON: a date is text, and so are `yes` and `0x1f`.

    A key is text and appears once.
    """


def _mapping(loader: _Loader, node: yaml.MappingNode) -> Iterator[JsonObject]:
    result: JsonObject = {}
    yield result  # before its members, one of which may refer to it
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node)
        if not isinstance(key, str):
            raise yaml.MarkedYAMLError(
                problem=f"the key {key!r} is not text: quote it", problem_mark=key_node.start_mark
            )
        if key in result:
            raise yaml.MarkedYAMLError(
                problem=f"the key {key!r} appears twice", problem_mark=key_node.start_mark
            )
        result[key] = loader.construct_object(value_node)


_KINDS = {
    "null": (r"~|null|", ["~", "n", ""]),
    "bool": (r"true|false", ["t", "f"]),
    "int": (r"-?(?:0|[1-9][0-9]*)", list("-0123456789")),
    "float": (r"-?(?:0|[1-9][0-9]*)\.[0-9]+(?:[eE][+-]?[0-9]+)?", list("-0123456789")),
}
"""How each kind of value that is no text is written, and with what it begins."""
_Loader.yaml_implicit_resolvers = {}
_Loader.yaml_constructors = {
    tag: construct
    for tag, construct in yaml.CSafeLoader.yaml_constructors.items()
    if tag is None or tag.rpartition(":")[2] in (*_KINDS, "str", "seq")
}
for _kind, (_form, _first) in _KINDS.items():
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(f"(?:{_form})$"), _first)
_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def read(path: Path) -> Json:
    """A YAML (or JSON) file as data. Raises ContractError with file and line."""
    return parse(read_text(path, str(path)), str(path))


@cache
def fixture(name: str) -> Json:
    """A file of the fixtures as data, which nobody may change."""
    return read(FIXTURES / name)


def read_text(path: Path, name: str, most: int = MOST_BYTES) -> str:
    """The text of a regular file of at most so many bytes; errors call it by `name`.

    Raises ContractError.
    """
    try:
        if path.exists() and not path.is_file():
            raise ContractError(f"{name}: is not a regular file")
        with path.open("rb") as file:
            data = file.read(most + 1)
    except FileNotFoundError:
        raise ContractError(f"{name}: no such file") from None
    except OSError as error:
        raise ContractError(f"{name}: cannot be read: {error.strerror or error}") from None
    if len(data) > most:
        raise ContractError(
            f"{name}: is larger than {most // 1024 // 1024} MB, the most that is read"
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ContractError(f"{name}:{line}: is not UTF-8") from None


def parse_bounded(text: str, name: str) -> Json:
    """The data in a text of a user, who can neither fill the memory nor end the process.

    Raises ContractError, as `read` does, and for a text that is nested deeper than 100 levels, or
    has more than 200,000 values or ten million characters with what its aliases refer to.
    """
    _check_written(text, name)
    data = parse(text, name)
    values = characters = 0
    for node in containers([data]):
        values += len(node)
        texts = node if isinstance(node, list) else [*node, *node.values()]
        characters += sum(len(text) for text in texts if isinstance(text, str))
        if values > MOST_NODES:
            raise ContractError(
                f"{name}: has more than {MOST_NODES:,} values, those behind aliases included"
            )
        if characters > MOST_BYTES:
            raise ContractError(
                f"{name}: has more than {MOST_BYTES:,} characters, those behind aliases included"
            )
    try:
        orjson.dumps(data)
    except TypeError as error:  # such as a whole number of more than 64 bits
        raise ContractError(f"{name}: cannot be written as JSON: {error}") from None
    return data


def _check_written(text: str, name: str) -> None:
    """Raises ContractError for what takes too long to read, or too much memory."""
    if "%TAG" in text:  # which libyaml compares with each other, and writes out in each value
        raise ContractError(f"{name}: has the directive %TAG, which is not read here")
    depth = written = 0
    with suppress(yaml.YAMLError):  # which reading it names
        for event in yaml.parse(text, yaml.CSafeLoader):  # takes no recursion
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            written += isinstance(event, (yaml.CollectionStartEvent, yaml.ScalarEvent))
            fault, tag = "", getattr(event, "tag", None)
            if depth > DEEPEST:
                fault = f"is nested deeper than {DEEPEST} levels"
            elif written > 2 * MOST_NODES:  # keys too: to read all would hold up others
                fault = f"has more than {MOST_NODES:,} values"
            elif tag:  # a number of base 60 takes the square of its length
                fault = f"has a tag, which is not read here: {tag[:80]}"
            if fault:
                line = event.start_mark.line + 1 if event.start_mark else "?"
                raise ContractError(f"{name}:{line}: {fault}")


def parse(text: str | bytes, name: str) -> Json:
    """The data in a text that was read from a file of this name.

    Raises ContractError with name and line.
    """
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - it makes the types of JSON alone
    except yaml.MarkedYAMLError as error:
        where = f"{name}:{error.problem_mark.line + 1}" if error.problem_mark else name
        raise ContractError(
            f"{where}: is not YAML that can be read here: {error.problem}"
        ) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ContractError(f"{name}: is not YAML: {' '.join(str(error).split())}") from None


def line_of(path: Path, pointer: Place) -> int | None:
    """The line of the value at a path of keys in a file, or of the closest parent that exists."""
    try:
        return line_in(path.read_text(encoding="utf-8"), pointer)
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return None


def line_in(text: str, pointer: Place) -> int | None:
    """The line of the value at a path of keys in a text, or of the closest parent that exists.

    Raises YAMLError.
    """
    node = yaml.compose(text, yaml.CSafeLoader)
    if node is None:
        return None
    for step in pointer:
        found = child_of(node, step)
        if found is None:
            break
        node = found[1]
    return node.start_mark.line + 1


def child_of(node: yaml.Node, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """The key and the value of a member, or an item twice; None where there is none."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                return key, value
    elif isinstance(node, yaml.SequenceNode) and step in range(-len(node.value), len(node.value)):
        return node.value[int(step)], node.value[int(step)]
    return None


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


def containers(data: Json) -> Iterator[Json]:
    """Every object and list in data, itself first; behind aliases without an end too."""
    pending = [data]
    while pending:
        node = pending.pop()
        yield node
        inner = node.values() if isinstance(node, dict) else node
        pending += [child for child in inner if isinstance(child, (dict, list))]


def nodes(data: Json, without: Collection[str] = ()) -> Iterator[tuple[Place, Json]]:
    """Every object and list in data in their order, with the keys that lead there; none below the
    keys `without`.
    """
    pending: list[tuple[Place, Json]] = [([], data)]
    while pending:
        at, node = pending.pop()
        members = node.items() if isinstance(node, dict) else enumerate(node)
        yield at, node
        below = []
        for key, value in members:
            if isinstance(value, (dict, list)) and key not in without:
                below.append(([*at, key], value))
        pending += reversed(below)


def operations_in(document: Json) -> Iterator[tuple[str, str, Json]]:
    """Every operation of an OpenAPI document, after its path and its method in lower case."""
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield path, method, item[method]


def unescaped(pointer: str) -> list[str]:
    """The steps of a JSON Pointer."""
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def escaped(step: str | int) -> str:
    """A step as a JSON Pointer has it."""
    return str(step).replace("~", "~0").replace("/", "~1")
