"""Sessions of the console: sealed and bounded in time, and whatever a cookie says is no error."""

import pytest

from stub_server.console.sessions import Sessions, cookie_name

HOST = "127.0.0.1:4600"
KEYS = {"x-sandbox-admin-key": "secret", "x-sandbox-control-key": "own"}


def cookie(*idents: str, host: str = HOST) -> str:
    """The Cookie header of a browser with these ids."""
    return "; ".join(f"{cookie_name(host)}={ident}" for ident in idents)


def test_a_session_ends_with_its_key() -> None:
    kept = Sessions(b"a")
    ident = kept.begin("own")
    assert {"x-sandbox-control-key": "own"} == kept.visitor(cookie(ident), HOST, KEYS).keys
    for keys in ({}, {"x-sandbox-admin-key": "secret"}, {"x-sandbox-control-key": "another"}):
        assert {} == kept.visitor(cookie(ident), HOST, keys).keys


@pytest.mark.promise("session-console-sealed-key-began")
def test_no_part_of_a_session_can_be_changed() -> None:
    kept = Sessions(b"a")
    drawn, ends, seal = kept.begin("secret").split(".")
    other = kept.begin("secret").split(".")[2]
    for forged in (
        f"{drawn}.{int(ends) + 1}.{seal}", f"{drawn}x.{ends}.{seal}", f"{drawn}.{ends}.{other}", f"{drawn}.{ends}.",
        f"{drawn}.{ends}", f"{drawn}.{ends}.{kept.token(f'{drawn}.{ends}')}", seal, "..", "x.x.x",
    ):  # fmt: skip
        assert (forged, False, {}) == kept.visitor(cookie(forged), HOST, KEYS)


@pytest.mark.parametrize(
    ("host", "port"),
    [(HOST, 4600), ("localhost", 80), ("[::1]:80", 80), ("[::1]", 80), ("", 80), ("a:b", 80)],
)
def test_a_cookie_is_named_with_the_port(host: str, port: int) -> None:
    """Cookies of one host are sent to all its ports."""
    assert f"stub_console_{port}" == cookie_name(host)
