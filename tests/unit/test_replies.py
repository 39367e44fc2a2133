"""Saved replies alone: bounded in number and bytes, and what a step has done to them can
be taken back.
"""

import pytest

from stub_server.engine import lists
from stub_server.engine.lists import Ends, Replies, ReplyKey, Saved


def key(name: str) -> ReplyKey:
    """A request's key."""
    return "m", "POST", "/v2/customers", name


def saved(expires: int = 100, size: int = 10) -> Saved:
    """A reply of so many bytes."""
    return Saved(key(""), b"", expires, 201, b"x" * size, ())


def keep(held: Replies, name: str, reply: Saved, now: int = 0) -> tuple[str, ...]:
    """Keep one as a step does; answers the names of those that made room."""
    reply = reply._replace(key=key(name))
    going = held.outgoing(reply, now)
    held.exchange(Ends(oldest_before=going, newest_after=(reply,)))
    return tuple(gone.key[3] for gone in going)


@pytest.mark.promise("saved-replies")
def test_the_oldest_of_too_many_bytes_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand large orders were 2.5 GB."""
    monkeypatch.setattr(lists, "MOST_REPLY_BYTES", 3 * (lists.REPLY_OVERHEAD + 1_000))
    held = Replies()
    for name in "abc":
        assert () == keep(held, name, saved(size=1_000))
    assert ("a", "b") == keep(held, "d", saved(size=1_500))
    assert ("c", "d") == keep(held, "e", saved(size=100_000))
