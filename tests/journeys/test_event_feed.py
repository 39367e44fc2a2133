"""Following events: oldest first, each once, from a position on; and as they happen."""

import time
from concurrent.futures import ThreadPoolExecutor

import httpx2

from ..support.make import Json, Maker, created, done


def feed(control: httpx2.Client, **query: object) -> Json:
    """The events after a position, or from now on."""
    asked = {"wait": 0, **query}
    return done(control.get("/events", params={name: str(value) for name, value in asked.items()}))


def types(page: Json) -> list[str]:
    """The types of a page's events."""
    return [event["type"] for event in page["events"]]


def test_events_come_oldest_first_and_each_once(
    control: httpx2.Client, make_customer: Maker, make_project: Maker
) -> None:
    since = feed(control)["next"]
    first = make_customer()
    second = make_customer()
    make_project()
    told = []
    for expected in (2, 1, 0):
        page = feed(control, after=since, limit=2)
        assert expected == len(page["events"])
        told += page["events"]
        since = page["next"]
    assert ["customer.created", "customer.created", "project.created"] == [e["type"] for e in told]
    assert [first["id"], second["id"]] == [event["data"]["customer"]["id"] for event in told[:2]]
    newest = done(control.get("/events", params={"limit": 3}))["events"]
    assert newest == told[::-1]
    for asked, expected in (
        (["customer.*"], told[1]),
        (["plan.*", "project.created"], told[2]),
        (["*"], told[2]),
    ):
        assert (
            expected
            == done(control.get("/events", params={"type": asked, "limit": 1}))["events"][0]
        )


def test_the_first_event_of_all_is_told(control: httpx2.Client) -> None:
    done(control.post("/reset", json={"scenario": "empty"}))
    since = feed(control)["next"]
    event = created(control.post("/events", json={"type": "customer.created"}))["event"]
    assert [event] == feed(control, after=since)["events"]


def test_an_event_ends_the_wait(control: httpx2.Client, make_customer: Maker) -> None:
    since = feed(control)["next"]
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(feed, control, after=since, wait=20)
        time.sleep(0.3)
        assert not waiting.done()
        make_customer()
        assert ["customer.created"] == types(waiting.result(15))


def test_a_reset_begins_anew_and_nothing_of_the_new_world_is_lost(
    control: httpx2.Client, api: httpx2.Client, make_customer: Maker
) -> None:
    """Also for who waits meanwhile; what the world began with is not told."""
    make_customer()
    since = feed(control)["next"]
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(feed, control, after=since, wait=20)
        time.sleep(0.2)
        done(control.post("/reset"))
        page = waiting.result(10)
    assert (True, []) == (page["began_anew"], page["events"])
    make_customer()
    for position in (since, page["next"]):
        later = feed(control, after=position)
        assert (["customer.created"], position == since) == (types(later), later["began_anew"])


def test_event_ids_repeat_after_a_reset_and_not_with_another_seed(control: httpx2.Client) -> None:
    """A receiver that knows the first one ignores the second: what the description of
    a reset says.
    """

    def raised(**body: int) -> str:
        done(control.post("/reset", json=body))
        since = feed(control)["next"]
        created(control.post("/events", json={"type": "customer.created"}))
        (event,) = feed(control, after=since)["events"]
        return str(event["id"])

    first = raised()
    again = raised()
    other = raised(seed=7)
    assert first == again != other
