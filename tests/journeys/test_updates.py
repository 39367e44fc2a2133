"""An update says when it was: `updatedAt` is the instant of the change, `createdAt` stays."""

import pytest

from ..support.make import Json, done, make_customer, make_plan
from .stage import Stage
from .steps import make_product

MINUTE = 60.0
CHANGES = {
    "customers": {"name": "Marina Duarte Lima"},
    "plans": {"description": "Mais aulas"},
    "products": {"description": "Com apostila"},
    "webhooks": {"name": "Loja"},
}


def made(stage: Stage, what: str) -> Json:
    """A new record."""
    if what == "customers":
        return make_customer(stage.api)
    if what == "plans":
        return make_plan(stage.api)
    if what == "webhooks":
        return stage.webhook()
    if what == "projects":
        return stage.project()
    if what == "api-keys":
        return stage.key()
    return make_product(stage.api, stage.project()["id"])


def path_of(what: str, record: Json) -> str:
    """Where a record is updated."""
    return f"/{'' if what == 'api-keys' else 'v2/'}{what}/{record['id']}"


@pytest.mark.parametrize("what", CHANGES)
def test_an_update_moves_updated_at_and_nothing_else_that_was_not_asked_for(
    stage: Stage, what: str
) -> None:
    """The answer shows it, and so does the next read."""
    new = made(stage, what)
    path = path_of(what, new)
    member = what.removesuffix("s")
    before = done(stage.api.get(path))[member]
    assert before["createdAt"] == before["updatedAt"] == stage.now()
    stage.advance(MINUTE)
    expected = before | CHANGES[what] | {"updatedAt": stage.now()}
    assert expected != before | CHANGES[what]
    assert expected == done(stage.api.put(path, json=CHANGES[what]))[member]
    assert expected == done(stage.api.get(path))[member]


@pytest.mark.parametrize("what", [*CHANGES, "projects", "api-keys"])
def test_an_update_that_changes_nothing_raises_no_event_and_leaves_updated_at(
    stage: Stage, what: str
) -> None:
    """Sent again a minute later, the same values are the same record; others are an
    update once more.
    """
    change = CHANGES.get(what, {"description": "Turma nova"})
    new = made(stage, what)
    path = path_of(what, new)
    born = stage.events(new["id"])
    first = done(stage.api.put(path, json=change))
    told = stage.events(new["id"])
    stage.advance(MINUTE)
    assert (first, told) == (done(stage.api.put(path, json=change)), stage.events(new["id"]))
    assert first != done(stage.api.put(path, json=dict.fromkeys(change, "Outro nome")))
    assert stage.events(new["id"]) == told + told[len(born) :]
    assert (what == "webhooks") == (told == born)


PHONE = {"country_code": "55", "area_code": "11", "number": "987654321"}
MAPS = [
    *(
        (what, "metadata", {"origem": "feira"}, {"turma": "B"})
        for what in (*CHANGES, "projects", "api-keys")
    ),
    ("customers", "phones", {"mobile_phone": PHONE}, {"home_phone": PHONE}),
    ("customers", "address", {"city": "Recife"}, {"state": "PE"}),
]


@pytest.mark.parametrize(("what", "member", "first", "second"), MAPS)
def test_a_map_that_is_sent_replaces_the_one_there_was(
    stage: Stage, what: str, member: str, first: Json, second: Json
) -> None:
    """Nothing of the old one stays in it, and a map that is not sent stays whole."""
    new = made(stage, what)
    path = path_of(what, new)
    for change, expected in (
        ({member: first}, first),
        ({member: second}, second),
        ({"name": "Outra"}, second),
    ):
        body = done(stage.api.put(path, json=change))
        (shown,) = [each for each in body.get("data", body).values() if isinstance(each, dict)]
        kept = {name: value for name, value in shown[member].items() if value is not None}
        assert expected == kept


def test_contacts_that_do_not_fit_are_warned_of_when_they_are_sent(stage: Stage) -> None:
    """A telephone of Rio at an address in São Paulo; an update of something else says
    nothing of them.
    """
    path = f"/v2/customers/{make_customer(stage.api)['id']}"
    elsewhere = {"mobile_phone": {"country_code": "55", "area_code": "21", "number": "987654321"}}
    changes: list[Json] = [
        {"phones": elsewhere},
        {"name": "Marina"},
        {"address": {"state": "SP"}},
        {"address": {}},
    ]
    answers = [stage.api.put(path, json=change) for change in changes]
    assert [200] * 4 == [answer.status_code for answer in answers]
    warned = [answer.headers.get("x-sandbox-warnings") for answer in answers]
    assert ["ddd_state_mismatch", None, "ddd_state_mismatch", None] == warned
