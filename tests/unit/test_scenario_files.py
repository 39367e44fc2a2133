"""A scenario that cannot be used is refused with file, key and reason."""

from pathlib import Path

import pytest

from stub_server.contract.source import ContractError
from stub_server.core.ids import named_uuid
from stub_server.data.scenario import ScenarioError
from stub_server.engine.sandbox import Sandbox
from tests.support.live import NOW
from tests.support.worlds import FIXTURES, world

HEAD = "merchant: { name: Loja, city: Recife }\n"
ANA = "story: none, customer: { name: Ana, email: ana@example.com, document: '34712695846' }"
SHOP = (
    HEAD
    + """
records:
  projects: [{ key: clube, name: Clube do Bolo, status: active }]
  plans: [{ key: clube/mensal, projectId: "@clube", name: Mensal, amount: 20 }]
"""
)


def load(folder: Path, text: str, now: str = NOW) -> Sandbox:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return world(str(path), now=now)


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(
        ScenarioError, match=r"no scenario 'defualt'.*busy, default, empty, extremes, past_due"
    ):
        world("defualt")


def test_a_missing_file_is_named() -> None:
    with pytest.raises(ContractError, match=r"gone\.yaml: no such file"):
        world("./gone.yaml")


@pytest.mark.check
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("merchant: [", r"mine.yaml:2: "),
        (HEAD + "description: !!binary aGVsbG8=", r"mine.yaml:2: .*binary"),
        (
            HEAD + "orders: 5\nprojects: [{ slug: canto-livre, status: draft }]",
            r"mine.yaml:\d+: orders: nothing can be",
        ),
        (
            HEAD + "customers: 5\neverybody: owes",
            r"mine.yaml:\d+: everybody: nothing can be bought",
        ),
        (
            HEAD + "everybody: owes\nprojects: [{ slug: canto-livre, status: active, plans: "
            "[{ name: Anual, amount: 9, interval: year }] }]",
            r"mine.yaml:\d+: everybody: past-due members need a monthly plan",
        ),
        (
            HEAD + "orders: 10\nprojects: 2",
            r"mine.yaml:\d+: orders: nobody is left to buy: raise `customers`",
        ),
        (
            HEAD + "orders: 900000\nscale: 2",
            r"mine.yaml:\d+: orders: times scale is 1800000; at most 1000000",
        ),
        (
            HEAD + "personas: [{ story: none, customer: {} }]",
            r"personas\[0\]: \"name\" is a required property",
        ),
        (
            HEAD + "projects: [{ slug: nada, status: active }]",
            r"projects\[0\].slug: the catalogue has no project 'nada'",
        ),
        (
            HEAD + "projects: [{ slug: canto-livre, status: active }, { slug: canto-livre, status:"
            " draft }]",
            r"projects\[1\]: another project has this name, key or id",
        ),
        (
            HEAD
            + "projects: [{ slug: canto-livre, status: active, plans: [{ name: M, amount: -1 }] }]",
            r"projects\[0\].plans\[0\].amount: .* \(by PlanCreate of the contract\)",
        ),
        (
            HEAD + "personas: [nobody]",
            r"personas\[0\]: there is no persona 'nobody'; known ones are .*past_due_br",
        ),
        (
            HEAD + "personas: [past_due_br]",
            r"the story 'past_due' needs a monthly plan.*plans of `records` do not count",
        ),
        (
            HEAD + "months: 3\nprojects: 2\npersonas: [loyal_member]",
            r"the story 'loyal' begins on .*, or raise `months`",
        ),
        (
            HEAD + "personas: [{ name: a, story: none, customer: { id: x, name: A, email: a@b.com,"
            " document: AB123 } }]",
            r"personas\[0\].customer.id: \"x\" does not match",
        ),
        (
            HEAD
            + "keys: [{ key: k, state: active, name: K, scopes: ['orders:read'], allowed_projects:"
            " [nada] }]",
            r"keys\[0\].allowed_projects: there is no project 'nada'",
        ),
        (
            HEAD
            + "records: { customers: [{ name: A, email: a@example.com, document: '34712695846',"
            " type: company }] }",
            r"records.customers\[0\]: type is company",
        ),
        (
            HEAD + f"personas: [{{ name: a, {ANA} }}, {{ name: b, {ANA} }}]",
            "another customer has this document",
        ),
        (SHOP + "  orders: [{ planId: '@clube/mensal' }]", r"records.orders\[0\]: .*required"),
        (
            SHOP + "  products: [{ projectId: '@nada', name: P }]",
            r"records.products\[0\]: projectId names no project",
        ),
        (
            SHOP
            + "  customers: [{ name: A, email: a@example.com, document: AB123, created: ontem }]",
            r"customers\[0\].created: \"ontem\" is not a \"date-time\"",
        ),
        *(
            (
                SHOP
                + f"  customers: [{{ name: {{ repeat: x, length: {length} }}, email: a@example.com,"
                " document: AB1 }]",
                r"mine.yaml:\d+: records.customers\[0\].name.length: .*(maximum|minimum|integer)",
            )
            for length in ("1.0e400", "-1", "many")
        ),
    ],
)
def test_a_fault_is_named_with_file_key_and_reason(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises((ContractError, ScenarioError), match=reason):
        load(tmp_path, text)


ORDER = """  orders:
    - {{ key: first, projectId: "@clube", planId: "@clube/mensal", totalAmount: 20, {more},
        items: [{{ description: Bolo, quantity: 1, amount: 20 }}],
        customer: {{ name: Ana Lima, email: ana@example.com, document: AB123 }} }}
"""


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("days_ago: 3", "by pix is expired by now, not pending: change its days_ago"),
        ("status: done", "status: 'done' is not one of pending"),
        ("days_ago: 0, status: paid", "by pix is pending by now, not paid"),
        ("days_ago: 500, status: paid", "created is"),
        ("days_ago: 385, status: paid", "older than its plan"),
    ],
)
def test_an_order_that_cannot_be_is_refused(tmp_path: Path, more: str, reason: str) -> None:
    with pytest.raises(ScenarioError, match=reason):
        load(tmp_path, SHOP + ORDER.format(more=more))


def test_a_world_of_ones_own(tmp_path: Path) -> None:
    ident = "7f7f7f7f-0000-4000-8000-00000000000a"
    path = tmp_path / "mine.yaml"
    path.write_text(
        SHOP
        + ORDER.format(more="days_ago: 40, status: paid")
        + f"personas: [{{ name: ana, story: none, customer: {{ id: {ident}, name: Ana, email:"
        " A@example.com, document: '347.126.958-46' } }]\n",
        encoding="utf-8",
    )
    sandbox = world(str(path))
    assert sandbox.origin.personas == {"ana": ident}
    persona = sandbox.store.customers.open(ident)
    assert persona is not None
    assert (persona.public["document"], persona.public["email"]) == ("34712695846", "a@example.com")
    order = sandbox.store.orders.open(named_uuid("order", "first"))
    assert order is not None
    assert (order.public["status"], order.hidden["planId"]) == (
        "paid",
        named_uuid("plan", "clube", "mensal"),
    )
    assert sandbox.store.subscriptions.count("planId", order.hidden["planId"]) == 1
    assert sandbox.store.orders.count("customerId", order.hidden["customerId"]) == 2, (
        "the renewal of the second month"
    )


def test_ids_in_capitals_name_the_same_records(tmp_path: Path) -> None:
    """As they do in a request: the order counts for its project, and paying it opens a subscription
    of its plan.
    """
    path = tmp_path / "mine.yaml"
    ids = (
        named_uuid("project", "clube"),
        named_uuid("plan", "clube", "mensal"),
    )
    order = ORDER.format(more="days_ago: 40, status: paid").replace("@clube/mensal", ids[1].upper())
    path.write_text(SHOP + order.replace("@clube", ids[0].upper()), encoding="utf-8")
    store = world(str(path)).store
    assert store.orders.count("projectId", ids[0]) == store.orders.count("planId", ids[1]) == 2
    assert store.subscriptions.count("planId", ids[1]) == 1


def test_the_example_of_the_readme_can_be_used(tmp_path: Path) -> None:
    readme = (FIXTURES / "scenarios" / "README.md").read_text(encoding="utf-8")
    path = tmp_path / "example.yaml"
    path.write_text(readme.partition("```yaml\n")[2].partition("```")[0], encoding="utf-8")
    sandbox = world(str(path))
    counts = sandbox.store.counts()
    assert (counts["customers"], counts["orders"], counts["projects"]) == (1, 1, 1)
    assert sandbox.store.orders.count("customerId", sandbox.origin.personas["ana"]) == 1


def test_every_mistake_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "merchant: { name: Loja }\ncustmers: 3\nordres: 2\norders: many\nrecords:\n  customers:\n    - { name:"
        " Ana }\n",
        encoding="utf-8",
    )
    with pytest.raises(ScenarioError) as caught:
        world(str(file))
    said = str(caught.value).splitlines()
    assert ["mine.yaml:1", "mine.yaml:1", "mine.yaml:4"] == sorted(
        line.split(": ")[0] for line in said
    )
    assert any('"city"' in line for line in said)
    assert any("'custmers'" in line and "'ordres'" in line for line in said)
