"""What every refusal looks like, whoever gives it and why."""

import re
from typing import Any

import httpx2

from .contract import component, violations
from .wire import Answer


def refused(answer: Answer | httpx2.Response, status: int, code: str) -> dict[str, Any]:
    """Hold an answer to the one shape, to a status and to a code; answers the body for a
    closer look.
    """
    body: dict[str, Any] = answer.json()
    if isinstance(answer, httpx2.Response):
        answer = Answer(answer.status_code, answer.headers.multi_items(), answer.content)
    assert (status, code) == (answer.status, body.get("code")), body
    assert answer.header("content-type") == "application/json"
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
