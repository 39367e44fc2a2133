"""Sessions of the console: bounded in number and in time, and whatever a cookie says is no error."""

import pytest

from stub_server.console import sessions
from stub_server.console.sessions import LASTS, MOST, Session, Sessions, cookie_name

HOST = "127.0.0.1:4600"
ADMIN = Session("x-sandbox-admin-key", "secret", None)


def cookie(*idents: str, host: str = HOST) -> str:
    """The Cookie header of a browser with these ids."""
    return "; ".join(f"{cookie_name(host)}={ident}" for ident in idents)


def test_the_one_that_began_first_makes_room() -> None:
    kept = Sessions()
    idents = [kept.begin(ADMIN) for _ in range(MOST + 1)]
    assert kept.visitor(cookie(idents[0]), HOST).session is None
    assert all(kept.visitor(cookie(ident), HOST).session for ident in idents[1:])


def test_a_session_ends_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, now = Sessions(), [1000.0]
    monkeypatch.setattr(sessions, "monotonic", lambda: now[0])
    ident = kept.begin(ADMIN)
    now[0] += LASTS - 1
    assert {"x-sandbox-admin-key": "secret"} == kept.visitor(cookie(ident), HOST).keys
    now[0] += 2
    assert {} == kept.visitor(cookie(ident), HOST).keys


def test_of_several_cookies_the_one_with_a_session_counts() -> None:
    kept = Sessions()
    ident = kept.begin(ADMIN)
    assert ident == kept.visitor(cookie("another", ident), HOST).ident
    kept.end(ident)
    assert ("another", False, None) == kept.visitor(cookie("another", ident), HOST)


@pytest.mark.parametrize(
    "sent", ["", "=", ";;;", cookie(""), cookie("x" * 500), "stub_console_80=x", 'é=\x00; "', "a" * 9000]
)
def test_who_has_no_usable_id_is_given_one(sent: str) -> None:
    visitor = Sessions().visitor(sent, HOST)
    assert visitor.is_new
    assert len(visitor.ident) > 40


def test_a_token_is_that_of_one_visitor_of_one_server() -> None:
    kept, other = Sessions(), Sessions()
    assert kept.knows("a", kept.token("a"))
    assert not kept.knows("b", kept.token("a"))
    assert not kept.knows("a", other.token("a"))
    assert not kept.knows("a", "é")


@pytest.mark.parametrize(
    ("host", "port"),
    [(HOST, 4600), ("localhost", 80), ("[::1]:80", 80), ("[::1]", 80), ("", 80), ("a:b", 80)],
)
def test_a_cookie_is_named_with_the_port(host: str, port: int) -> None:
    """Cookies of one host are sent to all its ports."""
    assert f"stub_console_{port}" == cookie_name(host)
