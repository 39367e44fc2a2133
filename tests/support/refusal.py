"""What every refusal looks like, whoever gives it and why."""

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
