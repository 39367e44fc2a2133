"""A shop that notes each paid order on its customer. `--bug` plants one of the mistakes that
receivers make.

`--work later` answers before the work is done, `none` does none: both are right. `counted` works in
its own books, and GET answers how much it has done; `named` the same as a text.

It knows nothing of the sandbox but the address of the API, a token and the signing key.
"""

import argparse
import base64
import hashlib
import hmac
import json
import threading
import time
import urllib.request
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KNOWN = {"order.created", "order.paid", "order.refunded", "subscription.created"}
MEMBERS = {"type", "timestamp", "id", "api_version", "environment", "merchant_id", "data"}
BUGS = (
    "accepts",
    "duplicate",
    "simultaneous",
    "interrupted",
    "signature",
    "timestamp",
    "key_rotation",
    "raw_body",
    "late",
    "order",
    "unknown_type",
    "unknown_fields",
    "large_body",
    "burst",
    "in_time",
)


class Shop:
    """What the shop remembers, and how it handles a delivery."""

    def __init__(
        self, key: str, api: str, token: str, bug: str | None, work: str = "first"
    ) -> None:
        self.key, self.api, self.token, self.bug = (
            base64.b64decode(key.removeprefix("whsec_")),
            api,
            token,
            bug,
        )
        self.work = work
        self.seen: set[str] = set()
        self.newest: dict[str, str] = {}
        self.lock = threading.Lock()
        self.done = 0
        self.busy = 0

    def handle(self, headers: dict[str, str], length: int, read: Any) -> int | None:
        """The status to answer; None when the sender has gone."""
        if self.bug == "accepts":
            return 500
        if self.bug == "large_body" and length > 100_000:
            return 413
        ident = headers.get("webhook-id", "")
        if self.bug == "interrupted" and not self.claim(ident):
            return 200
        body = read(length)
        if len(body) < length:
            return None
        if not self.is_genuine(headers, body):
            return 401
        if self.bug == "in_time":
            time.sleep(5)
        with self.lock:
            self.busy += 1
        try:
            if self.bug == "burst":
                time.sleep(0.1)
                if self.busy > 12:
                    return 429
            return self.receive(ident, json.loads(body))
        finally:
            with self.lock:
                self.busy -= 1

    def is_genuine(self, headers: dict[str, str], body: bytes) -> bool:
        """Whether the signature is good and of these minutes."""
        stamp = headers.get("webhook-timestamp", "")
        signatures = headers.get("webhook-signature", "").split(" ")
        if self.bug != "timestamp" and abs(time.time() - int(stamp or 0)) > 300:
            return False
        if self.bug == "signature":
            return True
        if self.bug == "raw_body":
            body = json.dumps(json.loads(body), separators=(",", ":"), ensure_ascii=False).encode()
        signed = f"{headers.get('webhook-id')}.{stamp}.".encode() + body
        good = "v1," + base64.b64encode(hmac.digest(self.key, signed, hashlib.sha256)).decode()
        if self.bug == "key_rotation":
            return hmac.compare_digest(good, headers.get("webhook-signature", ""))
        return any(hmac.compare_digest(good, signature) for signature in signatures)

    def claim(self, ident: str) -> bool:
        """Take a delivery for oneself; False for one that is taken."""
        with self.lock:
            if ident in self.seen:
                return False
            self.seen.add(ident)
            return True

    def receive(self, ident: str, payload: dict[str, Any]) -> int:
        """Do what an event asks for, once."""
        if (
            self.bug == "late"
            and (datetime.now(UTC) - datetime.fromisoformat(payload["timestamp"])).days > 0
        ):
            return 400
        if self.bug == "unknown_type" and payload["type"] not in KNOWN:
            return 400
        if self.bug == "unknown_fields" and not payload.keys() <= MEMBERS:
            return 400
        subject = payload["data"].get("order", {}).get("id", "")
        if self.bug == "order":
            if payload["timestamp"] < self.newest.get(subject, ""):
                return 409
            self.newest[subject] = payload["timestamp"]
        if self.bug == "simultaneous":
            if ident in self.seen:
                return 200
            self.act(payload)
            self.seen.add(ident)
            return 200
        if self.bug not in ("duplicate", "interrupted") and not self.claim(ident):
            return 200
        if self.work == "later":
            threading.Timer(0.15, self.act, (payload,)).start()
        elif self.work != "none":
            try:
                self.act(payload)
            except OSError:
                self.seen.discard(ident)
                return 500
        return 200

    def act(self, payload: dict[str, Any]) -> None:
        """Note a paid order on its customer."""
        if payload["type"] != "order.paid":
            return
        if self.work in ("counted", "named"):
            time.sleep(0.01)
            with self.lock:
                self.done += 1
            return
        data = payload["data"]
        body = json.dumps({"metadata": {"last_order": data["order"]["id"]}}).encode()
        request = urllib.request.Request(  # noqa: S310 - the test's own server
            f"{self.api}/v2/customers/{data['customerId']}",
            body,
            {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
            method="PUT",
        )
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - the test's own server
            answer.read()


def main() -> None:
    """Serve until killed; the port is the first line of the output."""
    parser = argparse.ArgumentParser()
    for name in ("--key", "--api", "--token"):
        parser.add_argument(name, required=True)
    parser.add_argument("--bug", choices=BUGS)
    parser.add_argument(
        "--work", choices=("first", "later", "none", "counted", "named"), default="first"
    )
    asked = parser.parse_args()
    shop = Shop(asked.key, asked.api, asked.token, asked.bug, asked.work)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            status = shop.handle(headers, int(headers["content-length"]), self.rfile.read)
            if status is None:
                return
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f"{shop.done}{' done' * (shop.work == 'named')}\n".encode())

        def log_message(self, format: str, *args: object) -> None:
            """Silence."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 128

    server = Server(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
