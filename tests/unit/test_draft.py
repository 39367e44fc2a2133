"""A draft alone: it shows what it holds, holds versions to contract and keys, and changes nothing until recorded."""

import pytest

from stub_server.app import create_app
from stub_server.contract.schema import ContractViolation
from stub_server.engine.draft import Draft
from stub_server.engine.sandbox import Sandbox
from stub_server.kernel.ids import NextIds
from stub_server.kernel.record import Body, Record
from stub_server.store.table import Table
from stub_server.store.tables import UniqueViolation

from ..engine.state import unfold
from ..support.live import FROZEN
from ..support.worlds import drafted


@pytest.fixture(scope="module")
def seeded() -> Sandbox:
    """A world that every test copies."""
    return create_app(FROZEN).sandboxes.default


@pytest.fixture
def world(seeded: Sandbox) -> Sandbox:
    """A world of the test's own."""
    return seeded.fork("own")


@pytest.fixture
def customers(seeded: Sandbox, world: Sandbox) -> Table:
    """Its customers, which it has taken from the seeded world by a write: until then the two share them."""
    draft = drafted(world)
    row = next(world.store.customers.all_rows())
    draft.update(draft.store.customers, row, row.public)
    draft.record()
    assert world.store.customers is not seeded.store.customers
    return world.store.customers


def body(world: Sandbox, document: str) -> tuple[Body, Body]:
    """A customer like a seeded one, with another document."""
    row = next(world.store.customers.all_rows())
    return row.public | {"document": document, "name": "Nova"}, row.hidden


def added(draft: Draft, document: str) -> Record:
    """A new customer in a draft."""
    public, hidden = body(draft.sandbox, document)
    ident = draft.ids.uuid()
    return draft.create(draft.store.customers, ident, public | {"id": ident}, hidden)


@pytest.mark.check
def test_a_draft_shows_what_it_holds_and_the_world_does_not(world: Sandbox, customers: Table) -> None:
    draft, count = drafted(world), len(customers)
    made = added(draft, "11144477735")
    opened = draft.open(customers, made.id)
    assert opened is not None
    assert (made, "Nova") == (opened.record, opened.public["name"])
    assert (None, None, count) == (customers.find(made.id), customers.open(made.id), len(customers))
    step = draft.record()
    assert step is not None
    assert (made, count + 1) == (customers.find(made.id), len(customers))
    assert opened == customers.open(made.id)


def test_a_draft_shows_stored_records_it_does_not_change(world: Sandbox, customers: Table) -> None:
    draft, row = drafted(world), next(customers.all_rows())
    assert row == draft.open(customers, row.id)
    assert draft.open(customers, "nobody") is None


def test_a_dropped_record_is_gone_for_the_draft_alone(world: Sandbox, customers: Table) -> None:
    draft, row = drafted(world), next(customers.all_rows())
    draft.update(customers, row, row.public | {"name": "Antes"})
    draft.drop(customers, row)
    assert draft.open(customers, row.id) is None
    assert row.record is customers.find(row.id)
    step = draft.record()
    assert step is not None
    assert [(row.record, None)] == [(before, after) for _, before, after in step.changes]
    assert customers.find(row.id) is None


def test_what_is_dropped_is_the_stored_version(world: Sandbox, customers: Table) -> None:
    """Also where the draft had changed the record before; one that the draft has made is not in the step at all."""
    draft, row = drafted(world), next(customers.all_rows())
    draft.update(customers, row, row.public | {"name": "Antes"})
    for ident in (row.id, added(draft, "11144477735").id):
        opened = draft.open(customers, ident)
        assert opened is not None
        draft.drop(customers, opened)
    step = draft.record()
    assert step is not None
    assert [(row.record, None)] == [(before, after) for _, before, after in step.changes]
    assert (None, None) == (customers.find(row.id), customers.holder("document", "11144477735"))
    unfold(world, step)
    assert row == customers.open(row.id)


def test_two_updates_in_one_draft_are_one_version(world: Sandbox, customers: Table) -> None:
    draft, row = drafted(world), next(customers.all_rows())
    draft.update(customers, row, row.public | {"name": "Primeira"})
    between = draft.open(customers, row.id)
    assert between is not None
    assert "Primeira" == between.public["name"]
    last = draft.update(customers, between, between.public | {"email": "segunda@example.com"})
    step = draft.record()
    assert step is not None
    assert [(last, row.record)] == [(after, before) for _, before, after in step.changes]
    assert row.record.version + 1 == last.version
    stored = customers.open(row.id)
    assert stored is not None
    assert ("Primeira", "segunda@example.com") == (stored.public["name"], stored.public["email"])
    unfold(world, step)
    assert row == customers.open(row.id)


def test_a_record_that_is_made_and_changed_in_one_draft_is_one_new_version(world: Sandbox, customers: Table) -> None:
    draft = drafted(world)
    row = draft.open(customers, added(draft, "11144477735").id)
    assert row is not None
    last = draft.update(customers, row, row.public | {"name": "Depois"})
    step = draft.record()
    assert step is not None
    assert [(last, None)] == [(after, before) for _, before, after in step.changes]
    assert 1 == last.version
    assert last.id == customers.holder("document", "11144477735")


def test_a_unique_key_is_held_against_the_world_and_against_the_draft(world: Sandbox, customers: Table) -> None:
    draft = drafted(world)
    taken = next(customers.all_rows()).public["document"]
    with pytest.raises(UniqueViolation):
        added(draft, taken)
    first = added(draft, "11144477735")
    with pytest.raises(UniqueViolation, match=first.id):
        added(draft, "11144477735")
    second = added(draft, "52998224725")
    held = [draft.open(customers, record.id) for record in (first, second)]
    assert [first, second] == [row.record for row in held if row is not None]


def test_a_key_that_an_update_takes_is_taken_in_the_same_draft(world: Sandbox, customers: Table) -> None:
    draft, rows = drafted(world), customers.all_rows()
    one, two = next(rows), next(rows)
    draft.update(customers, one, one.public | {"document": "11144477735"})
    with pytest.raises(UniqueViolation):
        draft.update(customers, two, two.public | {"document": "11144477735"})
    draft.update(customers, two, two.public | {"name": "Outra"})
    assert draft.record() is not None
    assert one.id == customers.holder("document", "11144477735")


def test_a_version_that_breaks_the_contract_is_refused_when_it_is_added(world: Sandbox, customers: Table) -> None:
    draft, row = drafted(world), next(customers.all_rows())
    with pytest.raises(ContractViolation):
        draft.update(customers, row, row.public | {"name": 7})
    assert row == draft.open(customers, row.id)
    assert draft.is_empty
    assert draft.record() is None


def test_ids_move_with_the_step_and_not_before(world: Sandbox, customers: Table) -> None:
    before = world.ids.position
    abandoned, draft = drafted(world), drafted(world)
    assert added(abandoned, "11144477735").id == added(draft, "11144477735").id
    assert draft.ids.secret_bytes() == abandoned.ids.secret_bytes()
    assert before == world.ids.position
    step = draft.record()
    assert step is not None
    assert (before, world.ids.position) == (step.position_before, step.position)
    assert (before[0] + 1, before[1] + 1) == world.ids.position
    assert abandoned.ids.uuid() == NextIds(world.ids).uuid()


def test_timers_are_numbered_on_from_the_worlds(world: Sandbox) -> None:
    draft, last = drafted(world), world.timers.last
    for number in range(3):
        draft.at(draft.now + number, "order.expire", f"subject-{number}")
    assert last == world.timers.last
    step = draft.record()
    assert step is not None
    assert [last + 1, last + 2, last + 3] == [seq for _, seq, *_ in step.timers_set]
    assert (last, last + 3) == (step.timers_before, world.timers.last)


def test_an_empty_draft_makes_no_step(world: Sandbox) -> None:
    number = world.log.number
    draft = drafted(world)
    draft.ids.uuid()
    assert draft.is_empty
    assert draft.record() is None
    assert number == world.log.number


def test_a_change_that_the_contract_does_not_name_is_a_defect(world: Sandbox, customers: Table) -> None:
    """A misspelt one would otherwise raise no event, and nobody would see it."""
    draft = drafted(world)
    made = added(draft, "11144477735")
    with pytest.raises(KeyError, match="renamed"):
        draft.emit_change(customers, made, "renamed")
    draft.emit_change(customers, made, "updated")
    step = draft.record()
    assert step is not None
    assert ["customer.updated"] == [event.type for event in step.events]
