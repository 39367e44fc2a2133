"""A list that is long to search: others are served meanwhile, and it is of one instant."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from stub_server.app import create_app
from stub_server.core import slices
from stub_server.core.clock import HOUR, iso
from stub_server.core.slices import Sliced
from stub_server.engine.tables import query
from stub_server.server.journal.recordable import chosen
from stub_server.server.work import Work

from ..support.live import FROZEN
from ..support.make import customer_body
from .inside import Answer, Inside

PEOPLE = 60
BY_NAME = f"/v2/customers?metadata=team:red&sort=name&limit={PEOPLE}"
ANY_NAME = f"/v2/customers?search=ana&limit={PEOPLE}"


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> Iterator[Inside]:
    """A sandbox in which each search is long."""
    monkeypatch.setattr(slices, "AT_ONCE", 1)
    monkeypatch.setattr(query, "SORTED_OUTRIGHT", 1)
    monkeypatch.setattr(slices, "SLICE", 0.00001)
    found = Inside(create_app(replace(FROZEN, scenario="empty")))
    yield found
    found.close()


Asked = tuple[str, str, object]


def together(inside: Inside, token: str, *asked: Asked) -> tuple[list[Answer], list[str]]:
    """The answers to requests that are sent at once, and their methods in the order in which they
    were answered.
    """
    answered: list[str] = []

    async def ask(method: str, path: str, body: object) -> Answer:
        answer = await inside.asking(method, path, body, token)
        answered.append(method)
        return answer

    async def all_of_them() -> list[Answer]:
        return await asyncio.gather(*(ask(*each) for each in asked))

    return inside.run(all_of_them()), answered


@pytest.mark.parametrize("path", [BY_NAME, ANY_NAME])
def test_others_are_served_while_a_long_list_is_searched(inside: Inside, path: str) -> None:
    token = inside.app.server.ready_token(inside.app.sandboxes.default)
    people = []
    inside.ask("POST", "/v2/customers", customer_body(name="Bia"), token)
    for number in range(PEOPLE):
        body = customer_body(name=f"Ana {number:02}", metadata={"team": "red"})
        people.append(inside.ask("POST", "/v2/customers", body, token).json()["customer"]["id"])
    change = "PUT", f"/v2/customers/{people[0]}", {"name": "Zoe"}
    (listed, changed), answered = together(inside, token, ("GET", path, None), change)
    assert (200, 200) == (listed.status, changed.status)
    assert ["PUT", "GET"] == answered, "nobody was served before the list had been searched"
    names = sorted(each["name"] for each in listed.json()["customers"])
    assert [f"Ana {number:02}" for number in range(PEOPLE)] == names
    recorded, _ = chosen(inside.app.sandboxes.default)
    # in this order they are answered alike again
    assert ["GET", "PUT"] == [trace.method for trace in recorded[-2:]]
    now = inside.ask("GET", path, None, token).json()
    found = {"Zoe"} if path == BY_NAME else set()
    assert {*names[1:], *found} == {each["name"] for each in now["customers"]}


@pytest.mark.parametrize("path", ["timers", "events?type=plan.*", "steps?cause=none"])
def test_others_are_served_while_jobs_events_or_steps_are_listed(inside: Inside, path: str) -> None:
    """A hundred thousand jobs held everybody up for a fifth of a second."""
    token = inside.app.server.ready_token(inside.app.sandboxes.default)
    inside.ask("POST", "/_sandbox/reset", {"scenario": "default"})
    for number in range(PEOPLE):
        inside.ask("POST", "/v2/customers", customer_body(name=f"Ana {number:02}"), token)
    listing = ("GET", f"/_sandbox/{path}", None)
    other = ("HEAD", "/v2/plans", None)
    (listed, _), answered = together(inside, token, listing, other)
    assert 200 == listed.status
    assert ["HEAD", "GET"] == answered, "nobody was served before the list had been searched"


def test_events_that_are_read_while_the_sandbox_goes_back_begin_anew(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a reader would have missed what is raised then, up to where it was."""
    raised = {"type": "order.paid"}
    for _ in range(3):
        inside.ask("POST", "/_sandbox/events", raised)
    in_slices = Work.in_slices

    async def rewound(work: Work, search: Sliced[Any]) -> Any:
        monkeypatch.setattr(Work, "in_slices", in_slices)
        await inside.asking("POST", "/_sandbox/rewind", {"to_step": 1})
        return await in_slices(work, search)

    monkeypatch.setattr(Work, "in_slices", rewound)
    begin = inside.ask("GET", "/_sandbox/events?wait=0").json()
    again = inside.ask("GET", f"/_sandbox/events?after={begin['next']}").json()
    assert again["began_anew"], (begin, again)


def test_lists_of_one_state_at_several_instants_do_not_mix_them_up(inside: Inside) -> None:
    token = inside.app.server.ready_token(inside.app.sandboxes.default)
    for number in range(PEOPLE):
        inside.ask("POST", "/v2/customers", customer_body(name=f"Ana {number}"), token)
    assert 200 == inside.ask("POST", "/_sandbox/clock/advance", {"hours": 3}).status
    instants = [iso((FROZEN.now or 0) + hours * HOUR) for hours in (1, 2)]

    async def both() -> list[Answer]:
        lists = [inside.asking("GET", ANY_NAME, token=token, as_of=instant) for instant in instants]
        return await asyncio.gather(*lists)

    inside.run(inside.asking("GET", ANY_NAME, token=token, as_of=instants[0]))
    assert instants == [answer.header("x-sandbox-now") for answer in inside.run(both())]


def test_others_are_served_while_a_key_of_a_project_lists_customers(inside: Inside) -> None:
    """Which ones it sees was found in one turn, before any limit counted the request."""
    token = inside.app.server.ready_token(inside.app.sandboxes.default)
    project = inside.ask("POST", "/v2/projects", {"name": "Clube"}, token).json()["data"]["project"]
    wanted = {"scopes": ["customers:read", "customers:write"], "allowed_projects": [project["id"]]}
    made = inside.ask("POST", "/api-keys", {"name": "Chave", **wanted}, token).json()["api_key"]
    key = made["private_key"]
    for _ in range(PEOPLE):
        assert 201 == inside.ask("POST", "/v2/customers", customer_body(), key).status
    inside.ask("POST", "/v2/customers", customer_body(), token)
    listing = ("GET", "/v2/customers?limit=1", None)
    other = ("HEAD", "/api-keys/info", None)
    (listed, _), answered = together(inside, key, listing, other)
    assert PEOPLE == listed.json()["pagination"]["total"]
    assert ["HEAD", "GET"] == answered
