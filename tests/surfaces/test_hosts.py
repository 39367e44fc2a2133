"""Who is asked: on loopback a Host that is another machine's is refused, for a stranger's name may
resolve here.
"""

import pytest

from ..conftest import Serve
from ..support.live import Live
from ..support.refusal import refused
from ..support.wire import Door, exchange

LOCAL = [
    "localhost", "LocalHost:4600", "localhost.", "api.localhost", "127.0.0.1", "127.0.0.1:80", "127.1.2.3",
    "[::1]", "[::1]:4600", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]",
]  # fmt: skip
FOREIGN = [
    "evil.example", "evil.example:4600", "localhost.evil.example", "127.0.0.1.evil.example", "evil-localhost",
    "192.0.2.1", "[2001:db8::1]", "[::]", "169.254.169.254",
]  # fmt: skip
JUNK = [
    "", "localhost@evil.example", "evil.example@localhost", "localhost/", "localhost:port", "[::1", "::1", "[::1]x",
    "[::1%25lo]", "[127.0.0.1]", "localhost localhost", "localhost,evil.example", "localhost#", "127.1", "2130706433",
    "0x7f.0.0.1", "localhost..", "http://localhost", "localhost\\", b"localhost\xe9", b"\xffocalhost", "[", "]", ":80",
]  # fmt: skip
PATHS = [
    "/v2/customers",
    "/_sandbox/credentials",
    "/_sandbox",
    "/",
    "/openapi.json",
    "/static/console.js",
    "/nothing",
]
OPEN = [
    ("/_sandbox/health", 200),
    ("/_sandbox/qr.svg?code=x", 404),
    ("/_sandbox/qr.png?code=x", 404),
]


def status(door: Door, host: str | bytes, path: str = "/v2/customers?limit=1") -> int:
    """What a request with this Host header is told."""
    named = host if isinstance(host, bytes) else host.encode()
    head = (
        f"GET {door.prefix}{path} HTTP/1.1\r\nAuthorization: Bearer {door.token}\r\nHost: ".encode()
    )
    answer = exchange(door.port, "GET", head + named + b"\r\n\r\n")
    if answer.status == 403:
        refused(answer, 403, "host_not_allowed")
    return answer.status


@pytest.mark.parametrize("host", LOCAL)
def test_every_name_of_this_machine_is_answered(door: Door, host: str) -> None:
    assert status(door, host) == 200


@pytest.mark.promise("foreign-host")
@pytest.mark.parametrize("host", [*FOREIGN, *JUNK])
def test_any_other_host_is_refused(door: Door, host: str | bytes) -> None:
    """With a credential that follows from the seed a rebound page could read and
    change everything.
    """
    assert status(door, host) == 403


@pytest.mark.parametrize("prefix", ["", "/s/surfaces"])
@pytest.mark.parametrize("path", PATHS)
def test_every_path_is_refused_under_a_foreign_host(live: Live, prefix: str, path: str) -> None:
    door = Door(live.port, prefix, "x")
    refused(door.ask("GET", path, host="evil.example"), 403, "host_not_allowed")
    refused(door.ask("POST", path, b"{}", host="evil.example"), 403, "host_not_allowed")
    preflight = [("Origin", "http://evil.example"), ("Access-Control-Request-Method", "POST")]
    refused(
        door.ask("OPTIONS", path, host="evil.example", headers=preflight), 403, "host_not_allowed"
    )


@pytest.mark.parametrize("prefix", ["", "/s/surfaces"])
@pytest.mark.parametrize(("path", "expected"), OPEN)
def test_health_and_qr_images_are_for_every_host(
    live: Live, prefix: str, path: str, expected: int
) -> None:
    """404 is the image's own answer: x is no PIX code."""
    answer = Door(live.port, prefix, "x").ask("GET", path, host="evil.example", token=None)
    assert expected == answer.status


@pytest.mark.parametrize("host", ["dev.box", "[2001:db8::7]:80"])
def test_a_host_that_is_named_is_answered(serve: Serve, host: str) -> None:
    live = serve(allow_hosts=("dev.box", "[2001:DB8:0::7]:4600"), auth="lenient", scenario="empty")
    assert status(Door(live.port, "", "x"), host) == 200


# told, not bound
PUBLIC = ({"host": "0.0.0.0"}, {"base_url": "https://sandbox.team.example:8443/path"})  # noqa: S104 - a setting: it listens on loopback


@pytest.mark.parametrize("settings", PUBLIC, ids=str)
@pytest.mark.parametrize("host", ["evil.example", "sandbox.team.example:8443", "[2001:db8::1]"])
def test_a_server_for_others_is_called_by_any_name(
    serve: Serve, host: str, settings: dict[str, str]
) -> None:
    """There the credential decides: it does not follow from the seed."""
    live = serve(**settings, auth="lenient", scenario="empty")
    assert status(Door(live.port, "", "x"), host) == 200
