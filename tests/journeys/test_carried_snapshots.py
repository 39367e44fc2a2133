"""Snapshots in a sandbox's file: exported with it, restored where it is imported, judged as everything else in it."""

import gzip
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import httpx2
import pytest

from stub_server.sandboxes import entry

from ..support.estate import client
from ..support.files import HEADERS, Line, exported, imported, lines, sealed
from ..support.live import NO_TLS, Live
from ..support.make import Json, created, customer_body, order_body
from ..support.receiver import Receiver
from .past import everything
from .steps import done

pytestmark = pytest.mark.check

Spoil = Callable[[list[Line]], object]


@pytest.fixture(scope="module")
def live(small: Live) -> Live:
    """Files of small worlds."""
    return small


class Side:
    """A sandbox: the API with a token, and the control surface."""

    def __init__(self, live: Live, name: str) -> None:
        self.name = name
        self.control = httpx2.Client(base_url=f"{live.url}/s/{name}/_sandbox", timeout=60, verify=NO_TLS)
        self.api = client(live, name, self.control.get("/credentials").json()["jwt"])

    def snapshot(self, name: str, **more: object) -> Json:
        """A new one."""
        made: Json = created(self.control.post("/snapshots", json={"name": name, **more}))["snapshot"]
        return made

    def listed(self) -> list[Json]:
        """All of them."""
        found: list[Json] = done(self.control.get("/snapshots"))["snapshots"]
        return found

    def close(self) -> None:
        """Close its connections."""
        self.api.close()
        self.control.close()


@pytest.fixture
def sides(live: Live, sandbox_name: str) -> Iterator[tuple[Side, Side]]:
    """Two sandboxes of one server."""
    both = Side(live, sandbox_name), Side(live, f"{sandbox_name}-there")
    yield both
    for side in both:
        side.close()
    live.forget(both[1].name)


def test_a_snapshot_is_restored_where_the_file_was_imported(sides: tuple[Side, Side]) -> None:
    """Each has the state, the description and the times that it was made with, and the same bytes come out again."""
    here, there = sides
    created(here.api.post("/v2/customers", json=customer_body()))
    first = here.snapshot("first", description="One customer")
    was = everything(here.api, here.control)
    sample = here.control.get("/credentials").json()["sample"]
    created(here.api.post("/v2/orders/pix", json=order_body(sample["projectId"], sample["planId"])))
    done(here.control.post("/clock/advance", json={"days": 40}))
    here.snapshot("second")
    there.snapshot("of-before")
    file = exported(here.control)
    assert file == exported(here.control)
    imported(there.control, file)
    assert here.listed() == there.listed()
    assert ["second", "first"] == [snapshot["name"] for snapshot in there.listed()]
    assert first == there.listed()[1]
    restored = done(there.control.post("/snapshots/first/restore"))["sandbox"]
    assert (first["now"], first["records"]) == (restored["now"], restored["records"])
    done(here.control.post("/snapshots/first/restore"))
    assert was == everything(here.api, here.control)
    reads = everything(there.api, there.control)
    assert {"/api-keys 1"} == {name for name in was if was[name] != reads[name]}  # seeded keys follow from the name
    assert done(there.control.get("/invariants"))["ok"]


def test_the_file_that_went_round_is_the_same(sides: tuple[Side, Side]) -> None:
    """Keys follow from a sandbox's name, which is why it comes back to where it was."""
    here, _ = sides
    here.snapshot("a")
    created(here.api.post("/v2/customers", json=customer_body()))
    here.snapshot("b")
    file = exported(here.control, history=True)
    done(here.control.post("/reset"))
    assert [] == here.listed()
    imported(here.control, file)
    assert file == exported(here.control, history=True)


def test_what_a_snapshot_shares_with_its_sandbox_is_not_restored_record_by_record(
    live: Live, sides: tuple[Side, Side]
) -> None:
    here, there = sides
    here.snapshot("a")
    created(here.api.post("/v2/customers", json=customer_body()))
    imported(there.control, exported(here.control))
    done(there.control.post("/snapshots/a/restore"))
    world = live.app.sandboxes.entry(there.name).sandbox
    (step,) = [step for step in world.log if step.restored is not None]
    assert step.restored is not None
    changed = [(table, after) for part in step.restored.parts for table, _, after in part.changes]
    assert [("customers", None)] == changed
    assert ((), ()) == (step.restored.events.oldest_before, step.restored.events.oldest_after)


@pytest.mark.promise("snapshots-without-secrets")
def test_a_file_without_secrets_has_none_in_its_snapshots(sides: tuple[Side, Side], receiver: Receiver) -> None:
    here, there = sides
    body = {"url": receiver.url, "events": ["*"], "headers": [{"name": "X-Token", "value": "a-secret-of-theirs"}]}
    hook = created(here.api.post("/v2/webhooks", json=body))["webhook"]
    sample = here.control.get("/credentials").json()["sample"]
    order = order_body(sample["projectId"], sample["planId"])
    created(here.api.post("/v2/orders/pix", json=order, headers={"Idempotency-Key": "told-to-nobody"}))
    here.snapshot("a")
    done(here.control.post("/rewind", json={"to_step": 0}))  # from here on the snapshot alone has them
    texts = [gzip.decompress(exported(here.control, secrets=told)).decode() for told in (True, False)]
    for secret in (hook["signing_key"], "a-secret-of-theirs", "told-to-nobody"):
        assert [True, False] == [secret in text for text in texts], secret
    imported(there.control, exported(here.control, secrets=False))
    own = there.control.get("/credentials").json()["private_key"]
    done(there.control.post("/snapshots/a/restore"))
    there.api.headers["Authorization"] = f"Bearer {own}"
    assert hook["id"] in [found["id"] for found in done(there.api.get("/v2/webhooks"))["webhooks"]]


def _head(found: list[Line]) -> int:
    return next(place for place, (kind, _) in enumerate(found) if kind == "snapshot")


def _within(kind: str, **members: object) -> Spoil:
    """The first line of a kind in the snapshot, changed."""

    def spoil(found: list[Line]) -> None:
        next(body for told, body in found[_head(found) :] if told == kind).update(members)

    return spoil


def _public(found: list[Line]) -> None:
    next(body for kind, body in found[_head(found) :] if kind == "record")["public"]["surprise"] = 1


def _lacking(found: list[Line]) -> None:
    rows = (body for kind, body in found[_head(found) :] if kind == "record" and body["table"] == "orders")
    del next(rows)["hidden"]["customerId"]


def _again(found: list[Line]) -> None:
    found.extend(found[_head(found) :])


def _many(found: list[Line]) -> None:
    head = found[_head(found)][1]
    for number in range(entry.MOST_SNAPSHOTS):
        found.append(("snapshot", head | {"name": f"s{number}"}))


def _step(found: list[Line]) -> None:
    found.append(next(line for line in found if line[0] == "step"))


def _cut(found: list[Line]) -> None:
    del found[_head(found) + 1 :]


def _first(found: list[Line]) -> None:
    found.insert(1, found[_head(found)])


SPOILT: dict[str, tuple[str, Spoil]] = {
    "a name that is none": ("damaged", _within("snapshot", name="../x")),
    "a member too many": ("damaged", _within("snapshot", more=1)),
    "a state without its name": ("damaged", lambda found: found.pop(_head(found))),
    "a name without its state": ("damaged", _cut),
    "a snapshot before the sandbox": ("damaged", _first),
    "two of one name": ("damaged", _again),
    "more than there may be": ("damaged", _many),
    "a step in a snapshot": ("damaged", _step),
    "another seed": ("damaged", _within("sandbox", seed=7)),
    "another merchant": ("damaged", _within("sandbox", home="00000000-0000-4000-8000-000000000000")),
    "a step that is to come": ("damaged", _within("sandbox", step=1_000)),
    "timers that are to come": ("damaged", _within("sandbox", timers_set=9_000_000)),
    "ids that are to come": ("damaged", _within("sandbox", position=[9_000_000, 0])),
    "a record without what is inside": ("unfit", _lacking),
    "a record that does not fit": ("unfit", _public),
    "an unknown event": ("unfit", _within("event", type="order.teleported")),
    "an unknown job": ("unfit", _within("timer", job="order.teleport")),
    "orders pending past their end": (
        "unfit",
        _within("sandbox", clock={"now": 1_900_000_000_000, "offset": 0, "frozen": True}),
    ),
}


@pytest.fixture(scope="module")
def file(live: Live) -> Iterator[list[Line]]:
    """A file with a snapshot and a history."""
    side = Side(live, "bad-snapshots")
    created(side.api.post("/v2/customers", json=customer_body()))
    side.snapshot("clean")
    yield lines(exported(side.control, history=True))
    side.close()
    live.forget(side.name)


@pytest.mark.parametrize("what", SPOILT)
def test_a_file_whose_snapshot_cannot_be_used_is_refused_and_changes_nothing(
    control: httpx2.Client, file: list[Line], what: str
) -> None:
    kind, spoil = SPOILT[what]
    created(control.post("/snapshots", json={"name": "mine"}))
    before = exported(control)
    found: list[Any] = lines(sealed(file))  # a copy
    spoil(found)
    answer = control.post("/import", content=sealed(found), headers=HEADERS)
    assert (422, "unusable_file") == (answer.status_code, answer.json()["code"]), answer.text
    assert {("file", kind)} == {(detail["field"], detail["code"]) for detail in answer.json()["details"]}, answer.text
    assert before == exported(control)


@pytest.mark.promise("snapshots-of-files")
def test_snapshots_that_do_not_fit_are_refused_before_anything_changes(
    live: Live, control: httpx2.Client, file: list[Line]
) -> None:
    """Those that they take the place of make room."""
    budget = live.app.sandboxes.entry("default").snapshots.budget
    imported(control, sealed(file))
    used = budget.used
    imported(control, sealed(file))
    assert used == budget.used
    before = exported(control)
    with patch.object(entry, "MOST_SNAPSHOT_BYTES", 1_000):
        answer = control.post("/import", content=sealed(file), headers=HEADERS)
    assert (422, "too_large") == (answer.status_code, answer.json()["details"][0]["code"])
    with patch.object(budget, "most", used - 1):
        answer = control.post("/import", content=sealed(file), headers=HEADERS)
    assert (422, "too_large") == (answer.status_code, answer.json()["details"][0]["code"])
    assert before == exported(control)
    with patch.object(budget, "most", used):
        imported(control, sealed(file))
