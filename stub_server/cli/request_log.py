"""Writes one line per request to standard error, in a thread.

If it cannot keep up, lines are dropped.
"""

import sys
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TextIO

import orjson

from ..core.clock import iso
from ..engine.journal import Trace
from ..engine.sandbox import DEFAULT
from ..server.views import pay_url

AT_ONCE = 200  # lines per write, and requests that wait for it: more would slow the server down
PAUSE = 0.1  # seconds between two writes
_CREATING = ("createPixOrder", "createOrder")

Entry = tuple[Trace, Sequence[str]]


class RequestLog:
    """Takes requests from the event loop without blocking it, and writes them to a stream."""

    def __init__(self, form: str, stream: TextIO | None = None, url: str = "") -> None:
        """`form` is `requests` for people or `json` for programs.

        `url` is the server's address, with which pay pages are shown; empty where they are secret.
        """
        self._url = url
        self._json, self._stream = form == "json", stream or sys.stderr
        self._waiting: deque[Entry] = deque()
        self._dropped = 0
        self._stop, self._stopped_by = threading.Event(), ""
        self._thread = threading.Thread(target=self._run, name="request-log", daemon=True)

    def start(self) -> "RequestLog":
        self._thread.start()
        return self

    def __call__(self, trace: Trace, warnings: Sequence[str]) -> None:
        if len(self._waiting) < AT_ONCE:
            self._waiting.append((trace, warnings))
        else:
            self._dropped += 1

    def close(self, stopped_by: str = "") -> None:
        """Write the lines that are left, and a last one with what stopped the server: a
        signal, or `idle`.
        """
        self._stopped_by = stopped_by
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(2)

    def _run(self) -> None:
        while not self._stop.wait(PAUSE):
            self.flush()
        self.flush()
        if by := self._stopped_by:
            plain = "Stopped: nobody used the server." if by == "idle" else f"Stopped by {by}."
            self._write([orjson.dumps({"stopped": by}).decode() if self._json else plain])

    def flush(self) -> None:
        """Write the waiting lines, and the number of those that were dropped."""
        entries = [self._waiting.popleft() for _ in range(len(self._waiting))]
        dropped, self._dropped = self._dropped, 0
        if not entries:
            return
        lines = [self._line(*entry) for entry in entries]
        if dropped:
            lines.append(
                orjson.dumps({"dropped": dropped}).decode()
                if self._json
                else f"… {dropped} more requests"
            )
        self._write(lines)

    def _write(self, lines: Sequence[str]) -> None:
        with suppress(OSError, ValueError):  # the reader has closed the stream
            self._stream.write("\n".join(lines) + "\n")
            self._stream.flush()

    def _line(self, trace: Trace, warnings: Sequence[str]) -> str:
        members = self._members(trace, warnings)
        if self._json:
            return orjson.dumps(members).decode()
        said = [members["time"][11:23], f"{members['method']:<6}"]
        if trace.sandbox != DEFAULT:
            said.append(f"[{trace.sandbox}]")
        said += [members["path"], str(trace.status or "-"), trace.operation or "", trace.code or ""]
        said.append(f"{members['ms']:.1f} ms")
        if warnings:
            said.append(f"warnings: {', '.join(warnings)}")
        said.append(members.get("refused_origin", ""))
        if "pay_url" in members:
            said.append(f"pay: {members['pay_url']}")
        return " ".join(filter(None, said))

    def _members(self, trace: Trace, warnings: Sequence[str]) -> dict[str, Any]:
        """What a line says, by the names of its JSON."""
        members = {
            # when it was answered, by the machine's clock
            "time": iso(trace.received + trace.micros // 1_000),
            "request_id": trace.id,
            "sandbox": trace.sandbox,
            "method": trace.method[:20],
            "path": _shown(trace.path),
            "operation": trace.operation,
            "status": trace.status,
            "code": trace.code,
            "ms": trace.micros / 1000,
            "warnings": list(warnings),
        }
        also = {"refused_origin": trace.refused_origin, "pay_url": self._to_pay(trace)}
        return members | {name: value for name, value in also.items() if value}

    def _to_pay(self, trace: Trace) -> str | None:
        """The page on which a new order is paid; None where it is secret, or no body is stored, and
        for others.
        """
        if (
            not self._url
            or trace.operation not in _CREATING
            or trace.status != 201
            or not trace.answer
        ):
            return None
        try:
            order = orjson.loads(trace.answer)
        except ValueError:  # a fault rule broke it
            return None
        return (
            pay_url(self._url, trace.sandbox, order["id"]) if order["status"] == "pending" else None
        )


def _shown(path: str) -> str:
    """A path on one line, of at most 200 characters."""
    text = path.encode("unicode_escape").decode()
    return text if len(text) <= 200 else text[:199] + "…"
