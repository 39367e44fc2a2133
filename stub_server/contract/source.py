"""Reads YAML and JSON files as plain data, and finds the line of a value for error messages."""

import re
from pathlib import Path
from typing import Any

import yaml

Json = Any


class ContractError(Exception):
    """The contract or an overlay cannot be used: gives the place (file and line, or JSONPath) and the reason."""


_TEXT = "tag:yaml.org,2002:str"


class _Loader(yaml.CSafeLoader):
    """YAML's JSON subset of types: a date stays text, and only true and false are booleans."""

    def resolve(self, kind: type[yaml.Node], value: str | None, implicit: tuple[bool, bool]) -> str:
        """The tag of a node without an explicit one. Most are text, which the first letter decides."""
        if kind is not yaml.ScalarNode:
            return "tag:yaml.org,2002:map" if kind is yaml.MappingNode else "tag:yaml.org,2002:seq"
        if implicit[0] and value is not None:
            for tag, pattern in self.yaml_implicit_resolvers.get(value[:1], ()):
                if pattern.match(value):
                    return str(tag)
        return _TEXT


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] in ("null", "int", "float")]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false)$"), list("tf"))


def read(path: Path) -> Json:
    """A YAML (or JSON) file as data. Raises ContractError with file and line."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ContractError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ContractError(f"{path}: cannot be read: {error}") from None
    return parse(text, str(path))


def parse(text: str | bytes, name: str) -> Json:
    """The data in a text that was read from a file of this name. Raises ContractError with name and line."""
    try:
        return _data(yaml.compose(text, _Loader), {})
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{name}:{mark.line + 1}" if mark else name
        what = "" if isinstance(error, _NotJson) else "is not YAML that can be read here: "
        raise ContractError(f"{where}: {what}{error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ContractError(f"{name}: is not YAML: {' '.join(str(error).split())}") from None


def _data(node: yaml.Node | None, made: dict[yaml.Node, Json]) -> Json:
    """A composed node as data, ten times as fast as PyYAML's own constructors; `made` holds nodes already converted."""
    if isinstance(node, yaml.ScalarNode):
        return node.value if node.tag == _TEXT else _scalar(node)
    if node is None:
        return None
    if node in made:
        return made[node]
    result = made[node] = _list(node, made) if isinstance(node, yaml.SequenceNode) else _map(node, made)
    return result


def _list(node: yaml.SequenceNode, made: dict[yaml.Node, Json]) -> Json:
    _check(node, "seq")
    return [_data(child, made) for child in node.value]


def _map(node: yaml.Node, made: dict[yaml.Node, Json]) -> Json:
    _check(node, "map")
    result: dict[str, Json] = {}
    for key_node, value_node in node.value:
        key = _data(key_node, made)
        if not isinstance(key, str):
            raise _marked(key_node, f"the key {key!r} is not text: quote it")
        if key in result:
            raise _marked(key_node, f"the key {key!r} appears twice")
        result[key] = _data(value_node, made)
    return result


def _check(node: yaml.Node, kind: str) -> None:
    """Refuse collections that JSON does not have, such as sets."""
    if node.tag != f"tag:yaml.org,2002:{kind}":
        raise _marked(node, f"JSON has nothing like {node.tag.rpartition(':')[2]}")


def _scalar(node: yaml.ScalarNode) -> Json:
    text, kind = node.value, node.tag.rpartition(":")[2]
    if kind == "null":
        return None
    if kind == "bool":
        return text == "true"
    if kind == "int" and _INTEGER(text):
        return int(text)
    if kind == "float" and _FLOAT(text):
        return float(text)
    if kind not in ("int", "float", "bool", "null"):
        raise _marked(node, f"JSON has nothing like {kind}")
    raise _marked(node, f"{text!r} is neither a JSON number nor quoted text")


_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)").fullmatch
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+(?:[eE][+-]?[0-9]+)?").fullmatch


class _NotJson(yaml.MarkedYAMLError):
    """YAML that has no equivalent in JSON."""


def _marked(node: yaml.Node, problem: str) -> _NotJson:
    return _NotJson(problem=problem, problem_mark=node.start_mark)


def line_of(path: Path, pointer: list[str | int]) -> int | None:
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


def json_path(pointer: list[str | int]) -> str:
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
