"""What each operation is sent once in fuzzing, so that its refusals are seen.

A caller who may not, a key of metadata that is none, and half a body: chance alone seldom makes
them.
"""

from collections import Counter
from collections.abc import Callable
from functools import cached_property
from typing import Any

import httpx2

# No address of a caller in a test: of a network that is kept for documents.
_ELSEWHERE = "203.0.113.7"
_WORLD = "elsewhere"
_BROKEN = b'{"'
_NAMELESS = {"": "1"}
_TRIES = 10


class Rare:
    """One per run. `base` is the server's address, `token` what its callers send."""

    def __init__(self, base: str, token: Callable[[], str]) -> None:
        """Nothing is asked before the first request."""
        self._base, self._token = base, token
        self._sent: set[tuple[str, str]] = set()
        self._tries: Counter[str] = Counter()

    def spoil(self, operation: str, case: Any) -> None:
        """The first two requests to an operation that were meant to be valid, and bodies
        that were not.
        """
        if case.meta.generation.mode.value != "positive":
            # and does not ask for another method's 405
            is_meant = case.method.upper() == case.operation.method.upper()
            if (
                is_meant
                and case.media_type == "application/json"
                and self._tries[operation] < _TRIES
            ):
                self._tries[operation] += 1
                # Else what is wrong may be that nobody asks: that is told before a body is read.
                case.headers = {**(case.headers or {}), "Authorization": f"Bearer {self._token()}"}
                case.body = _BROKEN
        elif self._is_first(operation, "caller"):
            case.headers = {**(case.headers or {}), **self._forbidden}
        elif (
            isinstance(case.body, dict)
            and _keeps_metadata(case)
            and self._is_first(operation, "name")
        ):
            case.body = {**case.body, "metadata": _NAMELESS}

    def answered(self, operation: str, status: int) -> None:
        """Half a body was told; else what was wrong before it was, such as an id that is none."""
        if status == 400:
            self._tries[operation] = _TRIES

    def drop(self) -> None:
        """Drop the world that the key is of, if there is one."""
        httpx2.delete(f"{self._base}/_sandbox/sandboxes/{_WORLD}", timeout=30)

    def _is_first(self, operation: str, what: str) -> bool:
        is_first = (operation, what) not in self._sent
        self._sent.add((operation, what))
        return is_first

    @cached_property
    def _forbidden(self) -> dict[str, str]:
        """A key of another world that may be used from elsewhere alone, and a page from elsewhere
        for the controls.
        """
        world = f"{self._base}/s/{_WORLD}"
        with httpx2.Client(base_url=world, timeout=60) as api:
            token = api.get("/_sandbox/credentials").raise_for_status().json()["jwt"]
            body = {"name": _WORLD, "scopes": ["plans:read"], "allowed_ips": [_ELSEWHERE]}
            made = api.post("/api-keys", json=body, headers={"Authorization": f"Bearer {token}"})
        key = made.raise_for_status().json()["api_key"]["private_key"]
        return {"Authorization": f"Bearer {key}", "Origin": f"https://{_WORLD}.example"}


def _keeps_metadata(case: Any) -> bool:
    answers: Any = case.operation.definition.raw["responses"]
    is_control = case.operation.schema.raw_schema["info"]["title"].startswith("Control")
    return not is_control and "metadata_key_invalid" in answers.get("409", {}).get("x-codes", ())
