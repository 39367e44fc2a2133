"""What a receiver is certified with: events as the contract has them, of every type, each under an id of its own."""

import orjson
import pytest

from stub_server.app import create_app
from stub_server.certify import sample_events
from stub_server.certify.receiver_rules import LATE
from stub_server.certify.sample_events import Samples
from stub_server.engine.sandbox import Sandbox
from stub_server.kernel.clock import parse_iso

from ..support.contract import document, schemas, violations
from ..support.live import FROZEN, NOW

AT = parse_iso(NOW)


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's clock stands."""
    monkeypatch.setattr(sample_events, "wall_ms", lambda: AT)


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    """A seeded world."""
    return create_app(FROZEN).sandboxes.default


def samples(sandbox: Sandbox, type_: str, project: str | None = None, run: str = "req_1") -> Samples:
    """The events of one run."""
    return Samples(sandbox, sandbox.store, document().events[type_], type_, project, run)


@pytest.mark.parametrize("type_", document().events)
def test_every_type_is_sent_as_the_contract_has_it(sandbox: Sandbox, type_: str) -> None:
    made = samples(sandbox, type_)
    schema = schemas().compile(document().events[type_]["schema"], request=False)
    sent = [made.next() for _ in range(3)]
    sent += [made.older(sent[0]), made.next(LATE)]
    for one in sent:
        assert [] == violations(schema, one)
        assert type_ == one["type"]
    assert (NOW, "2026-11-20T14:32:04.123Z", "2026-11-17T11:32:05.123Z") == tuple(
        sent[number]["timestamp"] for number in (0, 3, 4)
    )
    assert sent[0]["data"] == sent[3]["data"]


@pytest.mark.parametrize("type_", document().events)
def test_every_type_has_a_large_one_and_one_with_unknown_fields(sandbox: Sandbox, type_: str) -> None:
    made = samples(sandbox, type_)
    assert 250_000 < len(orjson.dumps(made.large())) < 300_000
    known = made.next()
    strange = made.with_unknown_fields()
    assert {"added_later"} == strange.keys() - known.keys() == strange["data"].keys() - known["data"].keys()
    assert made.of_unknown_type()["type"] not in document().events


def test_events_are_about_different_records_while_there_are_enough(sandbox: Sandbox) -> None:
    made = samples(sandbox, "order.paid")
    orders = [made.next()["data"]["order"] for _ in range(20)]
    assert 20 == len({order["id"] for order in orders})
    assert {"paid"} == {order["status"] for order in orders}


def test_a_webhook_of_one_project_is_sent_records_of_that_project(sandbox: Sandbox) -> None:
    project = sandbox.sample["projectId"]
    made = samples(sandbox, "order.paid", project)
    assert {project} == {made.next()["data"]["projectId"] for _ in range(10)}


def test_ids_never_come_again_in_this_run_or_in_another(sandbox: Sandbox) -> None:
    """And making them takes none of the world's."""
    before = sandbox.ids.position
    idents = [samples(sandbox, "order.paid", run=run).next()["id"] for run in ("req_1", "req_2")]
    made = samples(sandbox, "order.paid", run="req_3")
    idents += [made.next()["id"] for _ in range(50)]
    assert 52 == len(set(idents))
    assert {30} == {len(ident) for ident in idents}
    assert before == sandbox.ids.position
