"""Saved replies alone: bounded in number and bytes, and what a step has done to them can
be taken back.
"""

from time import thread_time

import pytest

from stub_server.engine import lists
from stub_server.engine.lists import Ends, Replies, ReplyKey, Saved


def key(name: str) -> ReplyKey:
    """A request's key."""
    return "m", "POST", "/v2/customers", name


def saved(expires: int = 100, size: int = 10) -> Saved:
    """A reply of so many bytes."""
    return Saved(key(""), b"", expires, 201, b"x" * size, ())


def keep(held: Replies, name: str, reply: Saved) -> str:
    """Keep one as a step does; answers the names of those that are there then."""
    held.exchange(Ends(after=(reply._replace(key=key(name)),)))
    return "".join(saved.key[3] for saved in held)


@pytest.mark.promise("saved-replies")
def test_the_oldest_of_too_many_bytes_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand large orders were 2.5 GB."""
    monkeypatch.setattr(lists, "MOST_REPLY_BYTES", 3 * (lists.REPLY_OVERHEAD + 1_000))
    held = Replies()
    assert ["a", "ab", "abc"] == [keep(held, name, saved(size=1_000)) for name in "abc"]
    assert "cd" == keep(held, "d", saved(size=1_500))
    assert held.get(key("a"), 0) is None


def test_the_reply_to_a_key_that_is_used_again_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one before had expired, and makes room later."""
    monkeypatch.setattr(lists, "MOST_REPLIES", 2)
    held = Replies()
    keep(held, "a", saved(expires=1))
    assert held.get(key("a"), 1) is None
    assert "aa" == keep(held, "a", saved(expires=9))
    assert "ab" == keep(held, "b", saved())
    assert held.get(key("a"), 1) is not None


@pytest.mark.promise("nothing-request-costs-more-length")
def test_thousands_of_replies_to_one_key_go_as_fast_as_others() -> None:
    """A file had 10,000 in each step: an undo held everybody up for half a second a step."""
    seconds = []
    for name in ("one", "many"):
        held = Replies()
        replies = tuple(
            saved()._replace(key=key(f"{number}" if name == "many" else name))
            for number in range(10_000)
        )
        began = thread_time()
        held.exchange(Ends(after=replies))
        held.exchange(Ends(before=replies))
        seconds.append(thread_time() - began)
    assert seconds[0] < 5 * seconds[1]


def test_the_reply_before_is_there_again_when_the_newest_is_taken_back() -> None:
    held = Replies()
    keep(held, "a", saved(expires=1))
    keep(held, "b", saved(expires=5))
    newest = saved(expires=9)._replace(key=key("a"))
    held.exchange(Ends(after=(newest,)))
    assert held.get(key("a"), 0) is newest
    held.exchange(Ends(before=(newest,)))
    earlier = held.get(key("a"), 0)
    assert earlier is not None
    assert 1 == earlier.expires
