"""Saved replies alone: bounded in number and bytes, and what a step has done to them can be taken back."""

import pytest

from stub_server.engine import bounded
from stub_server.engine.bounded import Replies
from stub_server.engine.step import ReplyKey, Saved


def key(name: str) -> ReplyKey:
    """A request's key."""
    return "m", "POST", "/v2/customers", name


def saved(expires: int = 100, size: int = 10) -> Saved:
    """A reply of so many bytes."""
    return Saved(b"", expires, 201, b"x" * size, ())


def keep(held: Replies, name: str, reply: Saved, now: int = 0) -> tuple[str, ...]:
    """Keep one as a step does; answers the names of those that made room."""
    going = held.outgoing(reply, now)
    for gone, _ in going:
        held.drop(gone)
    held.put(key(name), reply)
    return tuple(gone[3] for gone, _ in going)


def names(held: Replies) -> list[str]:
    """The names of all, the oldest first."""
    return [held_key[3] for held_key, _ in held.items()]


def test_the_oldest_of_too_many_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MOST_REPLIES", 3)
    held = Replies()
    assert [(), (), (), ("a",), ("b",)] == [keep(held, name, saved()) for name in "abcde"]
    assert ["c", "d", "e"] == names(held)


@pytest.mark.promise("saved-replies")
def test_the_oldest_of_too_many_bytes_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand large orders were 2.5 GB."""
    monkeypatch.setattr(bounded, "MOST_REPLY_BYTES", 3 * (bounded.REPLY_OVERHEAD + 1_000))
    held = Replies()
    for name in "abc":
        assert () == keep(held, name, saved(size=1_000))
    assert ("a", "b") == keep(held, "d", saved(size=1_500))
    assert ("c", "d") == keep(held, "e", saved(size=100_000))


def test_those_whose_time_is_over_go_first() -> None:
    held = Replies()
    for name, expires in (("a", 10), ("b", 20), ("c", 30)):
        keep(held, name, saved(expires))
    assert ("a", "b") == keep(held, "d", saved(100), now=20)
    assert ["c", "d"] == names(held)


def test_what_made_room_comes_back_in_its_old_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MOST_REPLIES", 3)
    held = Replies()
    for name in "abc":
        keep(held, name, saved())
    before = list(held.items())
    going = held.outgoing(saved(), 0)
    keep(held, "d", saved())
    held.drop(key("d"))
    held.put_back(going)
    assert before == list(held.items())
    twin = held.copy()
    keep(twin, "e", saved())
    assert before == list(held.items())
    assert ["b", "c", "e"] == names(twin)


def test_making_room_costs_the_same_however_many_have_gone() -> None:
    """The first item of a dict from whose front thousands were taken was searched for among what they had left."""
    held = Replies()
    for number in range(bounded.MOST_REPLIES + 5_000):
        assert len(keep(held, str(number), saved())) == (number >= bounded.MOST_REPLIES)
    assert bounded.MOST_REPLIES == len(names(held))
