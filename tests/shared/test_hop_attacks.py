"""Nobody but a server of the store says whose request another one is."""

from collections.abc import Iterator, Sequence

import pytest

from stub_server.server.layers.hops import Hops
from stub_server.storage.postgres import PostgresStore

from ..support.processes import free_port
from ..support.wire import Answer, answer_on, connect
from .conftest import Pair

pytestmark = [pytest.mark.check, pytest.mark.turn]
PATH = "/s/team/v2/plans"
AWAY = ("10.9.8.7", 0)


@pytest.fixture(scope="module")
def secret(pair: Pair) -> Iterator[bytes]:
    """The secret of the store."""
    store = PostgresStore(pair.database, "127.0.0.1", free_port(), 42, {})
    yield store.secret
    store.close()


def signed(
    secret: bytes,
    *,
    method: str = "GET",
    path: str = PATH,
    host: str = "localhost",
    query: str = "",
) -> str:
    """What a server of the store would send with a request of somebody far away."""
    scope = {
        "method": method, "raw_path": path.encode(), "query_string": query.encode(), "client": AWAY,
        "headers": [(b"host", host.encode())],
    }  # fmt: skip
    return Hops(secret).header(scope)[1].decode()


def ask(
    port: int, token: str, hops: Sequence[str], *, after: Sequence[str] = (), path: str = PATH
) -> Answer:
    """Send a request with such headers."""
    lines = [f"GET {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {token}"]
    with connect(port) as connection:
        connection.sendall(
            "\r\n".join(
                [*lines, *(f"X-Sandbox-Hop: {told}" for told in hops), *after, "", ""]
            ).encode()
        )
        return answer_on(connection)


@pytest.mark.promise("hop-of-own-store")
@pytest.mark.parametrize("through", ["holder", "other"])
def test_a_header_for_something_else_is_refused(pair: Pair, secret: bytes, through: str) -> None:
    port = getattr(pair, through).port
    told = signed(secret)
    assert (200 if through == "holder" else 503) == ask(port, pair.token, [told]).status
    body, _, signature = told.rpartition(" ")
    others = [
        signed(b"another secret"),
        signed(secret, method="POST"),
        signed(secret, path="/s/team/v2/customers"),
        signed(secret, query="limit=1"),
        signed(secret, host="127.0.0.1"),
        body.replace("10.9.8.7", "10.9.8.8") + " " + signature,
    ]
    for other in others:
        assert 400 == ask(port, pair.token, [other]).status
    assert 400 == ask(port, pair.token, [told, told]).status
    assert 400 == ask(port, pair.token, [told, "x"]).status
    assert 400 == ask(port, pair.token, ["x", told]).status
    assert 400 == ask(port, pair.token, [told], after=["X-Note: it is not the last one"]).status


@pytest.mark.promise("hop-keeps-headers")
def test_a_client_names_no_headers_that_are_left_out(pair: Pair) -> None:
    """Connection lists headers that a proxy takes off: the header of the hop, or a credential."""
    hidden = [
        "Connection: x-sandbox-hop, authorization, keep-alive",
        "Keep-Alive: x",
        "TE: trailers",
    ]
    assert 200 == ask(pair.other.port, pair.token, [], after=hidden).status


@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Length: 4", "Transfer-Encoding: chunked"),
        ("Content-Length: 4", "Content-Length: 5"),
        ("Transfer-Encoding: chunked, identity",),
        ("Transfer-Encoding : chunked",),
        ("X-Note: a\rX-Sandbox-Hop: b",),
        ("X-Note: a", " X-Sandbox-Hop: b"),
    ],
)
def test_no_request_hides_in_another(pair: Pair, lines: tuple[str, ...]) -> None:
    """What is read otherwise there than here would be a request that nobody sent."""
    inner = "GET /s/team/v2/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
    head = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {pair.token}\r\n"
    with connect(pair.other.port) as connection:
        connection.sendall((head + "\r\n".join(lines) + "\r\n\r\n0\r\n\r\n" + inner).encode())
        assert answer_on(connection).status >= 400
    with pair.holder.control("team") as control:
        shown = control.get("/requests", params={"limit": 5}).json()["requests"]
    assert not [row for row in shown if "smuggled" in row["path"]]
