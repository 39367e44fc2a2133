"""What a refusal advises is a path of the sandbox that the request was for, however
it was chosen.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

import stub_server

from ..support.live import NO_TLS, Live
from ..support.make import Json, typed
from ..support.requests import UNKNOWN
from ..support.wire import answer_on, connect

EARLIER = {"to": "2020-01-01T00:00:00Z"}
PROSE = re.compile(r"(?:^|[ (])/(?:_sandbox/(?!sandboxes)|v2/|api-keys|openapi|docs/)")
A_CALL = re.compile(r"[A-Z]+ /\S+")  # which the program makes: nobody reads it
"""A path in a text for people, but for those of the whole server."""


def asked(live: Live, request_line: str, headers: dict[str, str], body: Json | None = None) -> str:
    """The message of a refusal."""
    method, path = request_line.split()
    answer = httpx2.request(
        method, live.url + path, headers=headers, json=body, verify=NO_TLS, timeout=30
    )
    assert answer.is_client_error, answer.text
    return typed(str, answer.json()["message"])


def key_of(live: Live, sandbox: str) -> dict[str, str]:
    """A credential of a sandbox, which is made if it is not there."""
    shown = httpx2.get(f"{live.url}/s/{sandbox}/_sandbox/credentials", verify=NO_TLS).json()
    return {"Authorization": f"Bearer {shown['private_key']}"}


@pytest.mark.parametrize(
    ("method", "path", "body", "advised"),
    [
        ("POST", "/_sandbox/clock/advance", EARLIER, "POST {}/_sandbox/reset begins again."),
        ("GET", "/api-keys", None, "POST {}/_sandbox/tokens issues one."),
        (
            "POST",
            f"/v2/orders/{UNKNOWN}/refund",
            None,
            (
                f"Did you mean POST {{}}/_sandbox/orders/{UNKNOWN}/refund? {{}}/openapi.json lists"
                " every path, and {}/llms.txt says how to begin."
            ),
        ),
        (
            "GET",
            "/docs/listOrder",
            None,
            "Did you mean {}/docs/listOrders? {}/llms.txt lists the pages.",
        ),
    ],
)
@pytest.mark.parametrize("chosen", ["prefix", "header", "key", "default"])
def test_advice_names_the_sandbox_that_was_chosen(
    live: Live,
    sandbox_name: str,
    method: str,
    path: str,
    body: Json | None,
    advised: str,
    chosen: str,
) -> None:
    sandbox = "default" if chosen == "default" else sandbox_name
    headers = key_of(live, sandbox) | ({"X-Sandbox": sandbox} if chosen == "header" else {})
    told = asked(
        live, f"{method} {f'/s/{sandbox}' if chosen == 'prefix' else ''}{path}", headers, body
    )
    assert told.endswith(
        " " + advised.replace("{}", "" if chosen == "default" else f"/s/{sandbox}")
    )


def test_who_lacks_a_credential_is_told_where_the_sandbox_shows_one(
    live: Live, sandbox_name: str
) -> None:
    """Or has that of another one."""
    for headers in ({}, key_of(live, "default")):
        told = asked(live, f"GET /s/{sandbox_name}/v2/customers", headers)
        assert f" GET /s/{sandbox_name}/_sandbox/credentials " in told


def test_what_a_client_sent_stays_as_it_was_sent(live: Live, sandbox_name: str) -> None:
    told = asked(live, f"GET /s/{sandbox_name}/v2/x%20/_sandbox/reset/x%20/v2/y", {})
    assert " /v2/x /_sandbox/reset/x /v2/y." in told
    assert f" /s/{sandbox_name}/openapi.json " in told


def test_the_default_sandbox_that_stays_is_named_in_what_begins_it_anew(
    live: Live, sandbox_name: str
) -> None:
    told = asked(live, f"DELETE /s/{sandbox_name}/_sandbox/sandboxes/default", {})
    assert " POST /s/default/_sandbox/reset " in told


def test_who_asks_for_a_websocket_is_told_of_the_stream_of_the_sandbox(
    live: Live, control: httpx2.Client
) -> None:
    base = str(control.base_url.path).rstrip("/")
    with connect(live.port) as connection:
        lines = (f"GET {base}/clock HTTP/1.1", f"Host: 127.0.0.1:{live.port}", "Connection: Upgrade",
                 "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: eA==", "", "")  # fmt: skip
        connection.sendall("\r\n".join(lines).encode())
        told = answer_on(connection).json()["message"]
    assert f" GET {base}/stream " in told


@pytest.mark.check
def test_no_text_of_the_program_names_a_path_but_as_advice() -> None:
    """Where else a text did, it would name the default sandbox's path whatever the
    request was for.
    """
    root = Path(stub_server.__file__).parent
    found = [
        f"{path.relative_to(root)}: {text}"
        for path in sorted(root.rglob("*.py"))
        for text in texts_outside_advice(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert [] == found


def texts_outside_advice(node: ast.AST) -> Iterator[str]:
    """The texts of several words with a path, but for docstrings, help of the command and what is
    called advice.
    """
    match node:
        case ast.Expr(value=ast.Constant()) | ast.keyword(arg="advice" | "help" | "short_help"):
            return
        case ast.Assign(targets=[ast.Name(id="advice")]):
            return
        case ast.Constant(value=str(text)):
            yield from (
                [text] if " " in text and PROSE.search(text) and not A_CALL.fullmatch(text) else []
            )
        case ast.JoinedStr():
            named = ast.unparse(node).replace("{CONTROL}", "/_sandbox").replace("{DOCS}", "/docs")
            text = re.sub(r"\{.*?\}", "…", named)[2:-1]
            yield from [text] if " " in text and PROSE.search(text) else []
        case _:
            for child in ast.iter_child_nodes(node):
                yield from texts_outside_advice(child)
