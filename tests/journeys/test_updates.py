"""An update says when it was: `updatedAt` is the instant of the change, `createdAt` stays."""

import pytest

from ..support.make import Json, make_customer, make_plan
from .stage import Stage
from .steps import done, make_product

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
    return make_product(stage.api, stage.project()["id"])


@pytest.mark.parametrize("what", CHANGES)
def test_an_update_moves_updated_at_and_nothing_else_that_was_not_asked_for(stage: Stage, what: str) -> None:
    """The answer shows it, and so does the next read."""
    new = made(stage, what)
    path, member = f"/v2/{what}/{new['id']}", what.removesuffix("s")
    before = done(stage.api.get(path))[member]
    assert before["createdAt"] == before["updatedAt"] == stage.now()
    stage.advance(MINUTE)
    expected = before | CHANGES[what] | {"updatedAt": stage.now()}
    assert expected != before | CHANGES[what]
    assert expected == done(stage.api.put(path, json=CHANGES[what]))[member]
    assert expected == done(stage.api.get(path))[member]


@pytest.mark.parametrize("what", CHANGES)
def test_a_read_moves_nothing(stage: Stage, what: str) -> None:
    """Time alone changes no record of these."""
    new = made(stage, what)
    path, member = f"/v2/{what}/{new['id']}", what.removesuffix("s")
    before = done(stage.api.get(path))[member]
    stage.advance(MINUTE)
    assert before == done(stage.api.get(path))[member]


def test_contacts_that_do_not_fit_are_warned_of_when_they_are_sent(stage: Stage) -> None:
    """A telephone of Rio at an address in São Paulo; an update of something else says nothing of them."""
    path = f"/v2/customers/{make_customer(stage.api)['id']}"
    elsewhere = {"mobile_phone": {"country_code": "55", "area_code": "21", "number": "987654321"}}
    changes: list[Json] = [{"phones": elsewhere}, {"name": "Marina"}, {"address": {"state": "SP"}}, {"address": {}}]
    answers = [stage.api.put(path, json=change) for change in changes]
    assert [200] * 4 == [answer.status_code for answer in answers]
    warned = [answer.headers.get("x-sandbox-warnings") for answer in answers]
    assert ["ddd_state_mismatch", None, "ddd_state_mismatch", None] == warned
