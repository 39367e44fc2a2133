"""Clock, timers, identifiers, money and pages: what every floor stands on."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stub_server.calls.reply import pagination
from stub_server.domain.orders import items_cents
from stub_server.kernel import money
from stub_server.kernel.clock import LATEST, LATEST_START, Clock, ClockState, iso, parse_iso
from stub_server.kernel.ids import Ids, NextIds, derived_text, named_uuid
from stub_server.kernel.timers import Timer, Timers

INSTANTS = st.integers(-62_135_596_800_000, 253_402_300_799_999)


@given(INSTANTS)
def test_an_instant_survives_being_written(ms: int) -> None:
    """Milliseconds, the years 1 to 9999, always Z."""
    text = iso(ms)
    assert ms == parse_iso(text)
    assert (24, "Z") == (len(text), text[-1])


@pytest.mark.parametrize("text", ["2026-11-20", "2026-11-20T10:00:00", "2016-12-31T23:58:60Z", "soon"])
def test_what_is_no_instant_is_refused(text: str) -> None:
    """No offset, no time, no such second."""
    with pytest.raises(ValueError, match=r"."):
        parse_iso(text)


def test_a_clock_never_goes_back() -> None:
    """Whatever the machine's own clock does."""
    wall = [1000]
    clock = Clock(wall=lambda: wall[0])
    clock.now = clock.read()
    wall[0] = 400
    assert 1000 == clock.read()
    clock.set(clock.moved(500))
    assert 1000 == clock.now


def test_a_frozen_clock_stands_still_and_runs_on_from_there() -> None:
    """Freeze, jump, resume: time continues from where it stood."""
    wall = [1000]
    clock = Clock(5000, wall=lambda: wall[0])
    wall[0] = 2000
    assert 5000 == clock.read()
    clock.set(clock.moved(9000))
    clock.set(clock.resumed())
    wall[0] = 2500
    assert (9500, 7000) == (clock.read(), clock.state.offset)


def test_a_running_clock_stops_where_the_last_one_can_be_set_to() -> None:
    """Later instants could not be written. One that stands there already, of an older file, stays."""
    wall = [1000]
    clock = Clock(LATEST_START - 5, wall=lambda: wall[0])
    clock.set(clock.resumed())
    wall[0] += 10
    assert LATEST_START == clock.read()
    clock.set(ClockState(LATEST, LATEST, False))
    assert LATEST == clock.read()


@given(st.lists(st.integers(0, 20), max_size=30))
def test_timers_fire_in_the_order_of_their_time(dues: list[int]) -> None:
    """Equal times in the order in which they were set."""
    timers = Timers()
    for number, due in enumerate(dues):
        timers.put(Timer(due, timers.last + 1, "job", "merchant", str(number)))
    assert sorted(due for due in dues if due <= 10) == [timer.due for timer in timers.pending(10)]
    fired = []
    while (timer := timers.next(10)) is not None:
        timers.discard(timer)
        fired.append((timer.due, int(timer.subject)))
    assert sorted((due, n) for n, due in enumerate(dues) if due <= 10) == fired
    assert sum(due > 10 for due in dues) == len(timers)


@given(st.lists(st.tuples(st.sampled_from(["put", "discard", "aside", "back"]), st.integers(0, 9)), max_size=60))
def test_timers_are_what_was_put_and_not_taken(moves: list[tuple[str, int]]) -> None:
    """In any order, and the same timer put or taken twice counts once: undoing and redoing steps does that."""
    timers, held = Timers(), set[Timer]()
    for move, number in moves:
        timer = Timer(number // 2, number + 1, "job", "merchant", str(number))
        if move == "put":
            timers.put(timer)
            held.add(timer)
        elif move == "discard":
            timers.discard(timer)
            held.discard(timer)
        elif move == "aside" and (first := timers.next(9)) is not None:
            timers.skip(first)
        elif move == "back":
            timers.put_back(timers.skipped)
    assert (sorted(held), len(held)) == (timers.pending(), len(timers))
    timers.put_back(timers.skipped)
    fired = []
    while (due := timers.next(9)) is not None:
        timers.discard(due)
        fired.append(due)
    assert sorted(held) == fired


def test_the_same_seed_gives_the_same_identifiers() -> None:
    """And reading (requests), or a draft that is given up, never changes what a later write is called."""
    one, two = Ids(7, b"s"), Ids(7, b"s")
    two.request()
    NextIds(two).uuid()
    first, second = NextIds(one), NextIds(two)
    assert [first.uuid(), first.code(), first.alnum(11), first.event()] == [
        second.uuid(),
        second.code(),
        second.alnum(11),
        second.event(),
    ]
    assert NextIds(one.copy("b")).uuid() == NextIds(one).uuid()
    assert NextIds(Ids(8, b"s")).uuid() != NextIds(Ids(7, b"s")).uuid()
    assert NextIds(Ids(7, b"t")).secret(40) != NextIds(Ids(7, b"s")).secret(40)


def test_no_two_positions_give_the_same_identifiers() -> None:
    ids = Ids(7, b"s")
    given = []
    for _ in range(500):
        coming = NextIds(ids)
        given += [coming.uuid(), coming.code(), coming.event(), coming.uuid(), coming.secret(24)]
        ids.position = coming.position
    assert len(given) == len(set(given))


def test_no_world_is_given_the_secrets_of_another() -> None:
    """Whatever was asked of both, and copies of a world included; a world made anew is given its own again."""
    worlds = {name: Ids(7, b"s", name) for name in ("a", "b")}
    worlds["c"] = worlds["a"].copy("c")
    given = {name: [coming.secret(40) for coming in [NextIds(ids)] for _ in range(20)] for name, ids in worlds.items()}
    assert 60 == len({secret for secrets in given.values() for secret in secrets})
    again = NextIds(Ids(7, b"s", "a"))
    assert given["a"] == [again.secret(40) for _ in range(20)]


def test_named_identifiers_depend_on_their_names_alone() -> None:
    """A change would change every persona's address, so the value itself stands here."""
    assert "59b271ae-1bbc-41d3-9d41-929817f4b16f" == named_uuid("a", "b")
    assert named_uuid("a", "b") != named_uuid("ab")
    assert derived_text(b"x", 40, "key") != derived_text(b"y", 40, "key")
    assert 40 == len(derived_text(b"x", 40, "key"))


@given(st.decimals(min_value=0, max_value="999999.99", places=2))
def test_money_keeps_its_cents(amount: Decimal) -> None:
    """Through a JSON number and back."""
    whole = int(amount * 100)
    assert whole == money.cents(float(amount)) == money.cents(money.reais(whole))
    assert f"{amount:.2f}" == money.text(whole)


def test_items_are_rounded_half_to_even_one_by_one() -> None:
    """0.125 rounds to 0.12, 0.375 to 0.38."""
    items = [{"amount": 0.25, "quantity": 0.5}, {"amount": 0.75, "quantity": 0.5}]
    assert 50 == items_cents(items)


@pytest.mark.parametrize(
    ("page", "total", "pages", "has_next", "has_prev"),
    [
        (1, 0, 0, False, False),
        (1, 20, 1, False, False),
        (1, 21, 2, True, False),
        (2, 21, 2, False, True),
        (9, 5, 1, False, True),
    ],
)
def test_a_page_describes_itself(page: int, total: int, pages: int, has_next: bool, has_prev: bool) -> None:
    """Also a page past the end."""
    found = pagination(page, 20, total)
    assert (pages, has_next, has_prev) == (found["total_pages"], found["has_next"], found["has_prev"])
