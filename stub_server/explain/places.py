"""Where the contract says what a request went against: a JSON pointer, and what stands there."""

from __future__ import annotations

import re
from typing import Any

import orjson

from ..contract.document import Document, Operation
from ..contract.source import Json
from ..kernel.record import Body

LONGEST = 600  # characters of an excerpt
_STEP = re.compile(r"\[([0-9]+)\]|([^.\[\]]+)")


def place_of(document: Document, operation: Operation | None, details: list[dict[str, str]], code: str) -> Body | None:
    """The pointer and excerpt for a refusal of the contract or of the credential; None where nothing says it."""
    if operation is None:
        return None
    base = f"#/paths/{_escaped(operation.path)}/{operation.method.lower()}"
    if code == "method_not_allowed":
        item = document.raw["paths"][operation.path]
        methods = sorted(name for name in item if name in _METHODS)
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


_METHODS = frozenset(("get", "put", "post", "delete", "patch", "options", "head"))


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
    return {"pointer": pointer, "excerpt": text if len(text) <= LONGEST else text[:LONGEST] + "…"}


def _escaped(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")
