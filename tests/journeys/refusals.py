"""What a journey expects of a refusal."""

from typing import Any

import httpx2


def refused(response: httpx2.Response, status: int, code: str) -> dict[str, str]:
    """Hold a response to a status and an error code; answers field to code of each violation."""
    body: dict[str, Any] = response.json()
    assert (status, code) == (response.status_code, body.get("code")), response.text
    return {entry["field"]: entry["code"] for entry in body["details"]}
