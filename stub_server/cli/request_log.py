"""Writes one line per request to standard error, in a thread.

If it cannot keep up, lines are dropped.
"""

import sys
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

import orjson

from ..core.clock import iso
from ..core.record import Body, object_in
from ..core.text import shortened
from ..engine.kept import Trace
from ..engine.sandbox import DEFAULT
from ..server.views import pay_url

AT_ONCE = 200  # lines per write, and requests that wait for it: more would slow the server down
PAUSE = 0.1  # seconds between two writes


class RequestLog:
    """Takes requests from the event loop without blocking it, and writes them to a stream."""

    def __init__(self, form: str, stream: TextIO | None = None, url: str = "") -> None:
        """`form` is `requests` for people or `json` for programs.

        `url` is the server's address, with which pay pages are shown; empty where they are secret.
        """
        self._url = url
        self._json, self._stream = form == "json", stream or sys.stderr
        self._waiting: deque[Trace] = deque()
        self._dropped = 0
        self._stop, self._stopped_by = threading.Event(), ""
        self._thread = threading.Thread(target=self._run, name="request-log", daemon=True)

    def start(self) -> "RequestLog":
        """Begin to write, and return the log itself."""
        self._thread.start()
        return self

    def __call__(self, trace: Trace) -> None:
        if len(self._waiting) < AT_ONCE:
            self._waiting.append(trace)
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
        if self._stopped_by:
            why = "inactivity" if self._stopped_by == "idle" else self._stopped_by
            self._write([self._said({"stopped": self._stopped_by}, f"Stopped by {why}.")])

    def flush(self) -> None:
        """Write the waiting lines, and the number of those that were dropped."""
        dropped, self._dropped = self._dropped, 0
        lines = []
        for _ in range(len(self._waiting)):
            lines.append(self._line(self._waiting.popleft()))
        if dropped:
            lines.append(self._said({"dropped": dropped}, f"… {dropped} more requests"))
        if lines:
            self._write(lines)

    def _said(self, members: Body, text: str) -> str:
        """A line in the form of this log: members for programs, or a text for people."""
        if self._json:
            return orjson.dumps(members).decode()
        return text

    def _write(self, lines: Sequence[str]) -> None:
        with suppress(OSError, ValueError):  # the reader has closed the stream
            self._stream.write("\n".join(lines) + "\n")
            self._stream.flush()

    def _line(self, trace: Trace) -> str:
        """What a line says, by the names of its JSON, or for people."""
        members: Body = {
            # when it was answered, by the machine's clock
            "time": iso(trace.received + trace.micros // 1_000),
            "request_id": trace.id,
            "sandbox": trace.sandbox,
            "method": trace.method[:20],
            "path": shortened(trace.path.encode("unicode_escape").decode(), 199),
            "operation": trace.operation,
            "status": trace.status,
            "code": trace.code,
            "ms": trace.micros / 1000,
            "warnings": list(trace.warnings),
        }
        if trace.refused_origin:
            members["refused_origin"] = trace.refused_origin
        to_pay = self._to_pay(trace)
        if to_pay:
            members["pay_url"] = to_pay
        said = (
            members["time"][11:23],
            f"{members['method']:<6}",
            f"[{trace.sandbox}]" if trace.sandbox != DEFAULT else "",
            members["path"],
            str(trace.status or "-"),
            trace.operation,
            trace.code,
            f"{members['ms']:.1f} ms",
            f"warnings: {', '.join(trace.warnings)}" if trace.warnings else "",
            trace.refused_origin,
            f"pay: {to_pay}" if to_pay else "",
        )
        return self._said(members, " ".join(filter(None, said)))

    def _to_pay(self, trace: Trace) -> str | None:
        """The page on which a new order is paid; None where it is secret, or no body is stored, and
        for others.
        """
        is_order = trace.operation in ("createPixOrder", "createOrder") and trace.status == 201
        if not self._url or not is_order:
            return None
        order = object_in(trace.answer)  # empty where a fault rule broke it
        if order.get("status") != "pending":
            return None
        return pay_url(self._url, trace.sandbox, order["id"])
