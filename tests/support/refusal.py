"""What every refusal looks like, whoever gives it and why."""

import re
from typing import Any

from .contract import component, violations
from .wire import Answer


def refused(answer: Answer, status: int, code: str) -> dict[str, Any]:
    """Hold an answer to the one shape, to a status and to a code; answers the body for a closer look."""
    assert (status, code) == (answer.status, answer.json().get("code")), answer.body[:600]
    assert answer.header("content-type") == "application/json"
    body: dict[str, Any] = answer.json()
    assert violations(component("Error"), body) == []
    assert list(body) == ["error", "message", "code", "status", "request_id", "details"]
    assert body["status"] == status
    assert body["request_id"] == answer.header("x-request-id")
    return body


def fields(body: dict[str, Any]) -> dict[str, str]:
    """Field to code of each violation."""
    return {entry["field"]: entry["code"] for entry in body["details"]}


def says(text: str, *facts: object) -> bool:
    """Whether a text says all of these, each as a word of its own, however it is put."""
    return all(re.search(rf"(?<!\w){re.escape(str(fact))}(?!\w)", text) for fact in facts)
