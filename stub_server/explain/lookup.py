"""Finds in the contract the operation of a path, paths like it, and the place that a request violates."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Any, NamedTuple

import orjson

from ..contract.document import Document, Operation
from ..contract.source import METHODS, Json
from ..kernel.record import Body
from .rehearsal import Answer

_LONGEST_PATH = 300
_SIMILAR = 0.75  # how similar a segment is to the one that it may be a slip of
_VERSION = re.compile(r"api|v[0-9]+").fullmatch
_LONGEST = 600  # characters of an excerpt
_STEP = re.compile(r"\[([0-9]+)\]|([^.\[\]]+)")


class Routed(NamedTuple):
    """The operations of a path by method, and the values of its parameters."""

    operations: dict[str, Operation]
    values: dict[str, str]


def routed(document: Document, path: str) -> Routed | None:
    """The operations that a path has; a literal segment wins over a parameter. None for an unknown path."""
    segments = path.split("/")
    templates = [operation.path.split("/") for operation in document.operations.values()]
    found = [parts for parts in templates if _fits(parts, segments)]
    if not found:
        return None
    best = max(found, key=lambda parts: [not part.startswith("{") for part in parts])
    operations = {o.method: o for o in document.operations.values() if o.path == "/".join(best)}
    values = {part[1:-1]: given for part, given in zip(best, segments, strict=True) if part.startswith("{")}
    return Routed(operations, values)


def _fits(parts: list[str], segments: list[str]) -> bool:
    pairs = zip(parts, segments, strict=False)
    return len(parts) == len(segments) and all(
        bool(given) if part.startswith("{") else part == given for part, given in pairs
    )


def similar_paths(document: Document, method: str, path: str) -> list[str]:
    """The paths of a method's operations that an unknown path may be a slip of, the most similar first.

    Parameters keep the values that were sent. A path of another resource is not similar: nobody who mistypes the
    address of one record should be shown how to delete another.
    """
    sent = _unversioned(path[:_LONGEST_PATH].strip("/").split("/"))
    found = []
    for number, operation in enumerate(document.operations.values()):
        parts = operation.path.split("/")[1:]
        tail = _unversioned(parts)
        is_similar = len(tail) == len(sent) and all(
            part.startswith("{") or SequenceMatcher(None, part, given.lower()).ratio() >= _SIMILAR
            for part, given in zip(tail, sent, strict=True)
        )
        if is_similar and operation.method == ("GET" if method == "HEAD" else method):
            spelled = [given if part.startswith("{") else part for part, given in zip(tail, sent, strict=True)]
            whole = "/" + "/".join(parts[: len(parts) - len(tail)] + spelled)
            found.append((-SequenceMatcher(None, "/".join(sent), "/".join(spelled)).ratio(), number, whole))
    return [whole for _, _, whole in sorted(found)]


def _unversioned(segments: list[str]) -> list[str]:
    """The segments of a path from its resource on."""
    start = 0
    while start < len(segments) - 1 and _VERSION(segments[start]):
        start += 1
    return segments[start:]


def place_of(document: Document, operation: Operation, refusal: Answer) -> Body | None:
    """The pointer and excerpt that a refusal of the contract or of the credential is about; None without one."""
    code, details = refusal.code, refusal.details
    base = f"#/paths/{_escaped(operation.path)}/{operation.method.lower()}"
    if code == "method_not_allowed":
        item = document.raw["paths"][operation.path]
        methods = sorted(name for name in item if name in METHODS)
        return {"pointer": base.rpartition("/")[0], "excerpt": ", ".join(name.upper() for name in methods)}
    if code in ("insufficient_scope", "scope_escalation"):
        return _shown(base + "/x-scopes", operation.raw.get("x-scopes", []))
    if code in ("missing_credentials", "invalid_token", "token_expired", "jwt_required"):
        return _shown(base + "/security", operation.raw.get("security", document.raw.get("security", [])))
    if code in ("unsupported_media_type", "malformed_json"):
        content = (document.resolve(operation.raw.get("requestBody")) or {}).get("content", {})
        return _shown(base + "/requestBody/content", list(content))
    if not details:
        return None
    entry = details[0]
    if entry.get("in") == "body":
        return _in_body(document, operation, base, entry["field"])
    for number, raw in enumerate(operation.raw.get("parameters", ())):
        parameter = document.resolve(raw)
        if parameter["name"].lower() == entry["field"].lower():
            pointer = raw.get("$ref", f"{base}/parameters/{number}")
            return _shown(pointer + "/schema", parameter["schema"])
    return None


def _in_body(document: Document, operation: Operation, base: str, field: str) -> Body | None:
    """The schema of a member of the body; of a member that it does not name, the object's."""
    if operation.body is None:
        return None
    pointer, node = f"{base}/requestBody/content/application~1json/schema", operation.body
    pointer, node = _followed(document, pointer, node)
    if field == "body":
        return _shown(pointer, node)
    for index, name in _STEP.findall(field):
        step = "items" if index else "properties"
        inner = node.get("items") if index else node.get("properties", {}).get(name)
        if inner is None and not index and isinstance(node.get("additionalProperties"), dict):
            step, inner, name = "additionalProperties", node["additionalProperties"], ""
        if inner is None:
            break
        pointer += f"/{step}" + (f"/{_escaped(name)}" if name and not index else "")
        pointer, node = _followed(document, pointer, inner)
    return _shown(pointer, node)


def _followed(document: Document, pointer: str, node: Json) -> tuple[str, Json]:
    while isinstance(node, dict) and "$ref" in node:
        pointer, node = node["$ref"], document.resolve({"$ref": node["$ref"]})
    return pointer, node


def _shown(pointer: str, node: Any) -> Body:
    if isinstance(node, dict):
        node = {name: value for name, value in node.items() if not name.startswith("x-basis")}
        if "properties" in node:
            node["properties"] = list(node["properties"])
    text = orjson.dumps(node, option=orjson.OPT_NON_STR_KEYS).decode()
    return {"pointer": pointer, "excerpt": text if len(text) <= _LONGEST else text[:_LONGEST] + "…"}


def _escaped(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")
