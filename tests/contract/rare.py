"""What each operation is sent once in fuzzing, so that its refusals are seen: a caller who may not, and half a body."""

from functools import cached_property
from typing import Any

import httpx2

# No address of a caller in a test: of a network that is kept for documents.
_ELSEWHERE = "203.0.113.7"
_WORLD = "elsewhere"
_BROKEN = b'{"'


class Rare:
    """One per run. `base` is the server's address."""

    def __init__(self, base: str) -> None:
        """Nothing is asked before the first request."""
        self._base = base
        self._sent: set[tuple[str, str]] = set()

    def spoil(self, operation: str, case: Any) -> None:
        """The first request to an operation that was meant to be valid, and the first with a body that was not."""
        is_valid = case.meta.generation.mode.value == "positive"
        what = "caller" if is_valid else "body"
        has_json = isinstance(case.body, (dict, list, str, int, float)) and case.media_type == "application/json"
        if (operation, what) in self._sent or not (is_valid or has_json):
            return
        self._sent.add((operation, what))
        if is_valid:
            case.headers = {**(case.headers or {}), **self._forbidden}
        else:
            case.body = _BROKEN

    def drop(self) -> None:
        """Drop the world that the key is of, if there is one."""
        httpx2.delete(f"{self._base}/_sandbox/sandboxes/{_WORLD}", timeout=30)

    @cached_property
    def _forbidden(self) -> dict[str, str]:
        """A key of another world that may be used from elsewhere alone, and a page from elsewhere for the controls."""
        world = f"{self._base}/s/{_WORLD}"
        with httpx2.Client(base_url=world, timeout=60) as api:
            token = api.get("/_sandbox/credentials").raise_for_status().json()["jwt"]
            body = {"name": _WORLD, "scopes": ["plans:read"], "allowed_ips": [_ELSEWHERE]}
            made = api.post("/api-keys", json=body, headers={"Authorization": f"Bearer {token}"})
        key = made.raise_for_status().json()["api_key"]["private_key"]
        return {"Authorization": f"Bearer {key}", "Origin": f"https://{_WORLD}.example"}
