"""Contract files as plain data, with the line of every value when something is wrong with one."""

from pathlib import Path
from typing import Any

import yaml

Json = Any


class ContractError(Exception):
    """The contract or an overlay cannot be used: says where (file and line, or JSONPath) and why."""


class _Loader(yaml.CSafeLoader):
    """YAML's JSON subset of types: a date stays text, only true and false are booleans, a key stands once."""


_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        if tag not in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:bool", "tag:yaml.org,2002:value")
    ]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", __import__("re").compile(r"^(?:true|false)$"), list("tf"))


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[str, Json]:
    result: dict[str, Json] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            raise yaml.MarkedYAMLError(problem=f"the key {key!r} is not text: quote it", problem_mark=key_node.start_mark)
        if key in result:
            raise yaml.MarkedYAMLError(problem=f"the key {key!r} stands twice", problem_mark=key_node.start_mark)
        result[key] = loader.construct_object(value_node, deep=True)
    return result


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def read(path: Path) -> Json:
    """A YAML (or JSON) file as data. Raises ContractError with file and line."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ContractError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ContractError(f"{path}: cannot be read: {error}") from None
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a safe loader with fewer types
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise ContractError(f"{where}: {error.problem}") from None
    except yaml.YAMLError as error:
        raise ContractError(f"{path}: {error}") from None


def line_of(path: Path, pointer: list[str | int]) -> int | None:
    """The line on which the value at a path of keys stands in a file, as near as the path leads."""
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
        elif step.replace("_", "a").isalnum():
            text += f".{step}"
        else:
            text += f"['{step}']"
    return text
