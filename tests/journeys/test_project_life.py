"""The states of a project and of an API key: every move by each of its triggers, every
other one refused.
"""

import httpx2
import pytest

from ..support.contract import document
from ..support.make import Json, created, done, make_project
from .stage import Stage
from .steps import events_of, refused

PROJECT = document().lifecycles["Project"]
KEY = document().lifecycles["ApiKey"]
ACTIONS = {"activateProject": "activate", "suspendProject": "suspend", "archiveProject": "archive"}
GOALS = {"activateProject": "active", "suspendProject": "suspended", "archiveProject": "archived"}


def ask(stage: Stage, ident: str, by: str, to: str) -> httpx2.Response:
    """Ask for a state through one of the operations."""
    if by in ACTIONS:
        assert GOALS[by] == to
        return stage.api.post(f"/v2/projects/{ident}/{ACTIONS[by]}")
    if by == "updateProjectStatus":
        return stage.api.patch(f"/v2/projects/{ident}/status", json={"status": to})
    if by == "updateProject":
        return stage.api.put(f"/v2/projects/{ident}", json={"status": to})
    assert by == "deleteProject"
    return stage.api.delete(f"/v2/projects/{ident}")


@pytest.mark.parametrize(
    ("from_", "to", "by"), [(m.from_, m.to, by) for m in PROJECT.moves for by in m.by]
)
def test_every_move_of_a_project_happens_and_is_told_once(
    stage: Stage, from_: str, to: str, by: str
) -> None:
    move = PROJECT.find(from_, to)
    assert move is not None
    if from_ == "new":
        project = make_project(stage.api, status=to)
        told = []
    else:
        project = stage.project(from_)
        told = stage.events(project["id"])
        done(ask(stage, project["id"], by, to))
    if to == "deleted":
        assert stage.api.get(f"/v2/projects/{project['id']}").status_code == 404
    else:
        assert to == stage.get_project(project["id"])["status"]
    assert [*told, *move.events] == stage.events(project["id"])


ASKABLE = [("updateProjectStatus", to) for to in PROJECT.states]
ASKABLE += [("updateProject", to) for to in PROJECT.states] + list(GOALS.items())
OTHERS = [
    (f, t, by) for f in PROJECT.states for by, t in ASKABLE if f != t and PROJECT.find(f, t) is None
]


@pytest.mark.parametrize(("from_", "to", "by"), OTHERS)
def test_every_other_move_of_a_project_is_409_and_says_what_is_allowed(
    stage: Stage, from_: str, to: str, by: str
) -> None:
    """From, to, the exits of the state and who opens them, and the way to the goal where
    there is one.
    """
    project = stage.project(from_)
    told = stage.events(project["id"])
    response = ask(stage, project["id"], by, to)
    refused(response, 409, "invalid_state_transition")
    body = response.json()
    where = "body" if by.startswith("update") else "path"  # one that asks for the status sends it
    assert [
        {"field": "status", "in": where, "code": "not_allowed", "message": f"{from_} → {to}"}
    ] == body["details"]
    exits = [move for move in PROJECT.exits(from_) if move.to != "deleted"]
    for move in exits:
        assert all(word in body["message"] for word in (move.to, *move.by)), body["message"]
    assert ("is final" in body["message"]) is (not exits)
    if (from_, to) == ("draft", "suspended"):
        assert "draft → active → suspended" in body["message"]
    assert (from_, told) == (
        stage.get_project(project["id"])["status"],
        stage.events(project["id"]),
    )


def test_the_event_of_a_move_has_its_reason(stage: Stage) -> None:
    """Whatever asked for it; null where none was given, whichever the move before had.

    The project does not show it.
    """
    project = stage.project("draft")
    path = f"/v2/projects/{project['id']}"
    answers = [
        stage.api.post(f"{path}/activate", json={"reason": "Turma pronta"}),
        stage.api.post(f"{path}/suspend", json={"reason": "Férias da equipe"}),
        stage.api.put(path, json={"status": "active", "description": "De volta"}),
        stage.api.patch(f"{path}/status", json={"status": "suspended", "reason": "Reforma"}),
        stage.api.post(f"{path}/activate"),
        stage.api.post(f"{path}/archive", json={"reason": None}),
    ]
    told = [event["data"] for event in events_of(stage.control, project["id"])]
    assert [None, "Turma pronta", "Férias da equipe", None, None, "Reforma", None, None] == [
        data.get("reason") for data in told
    ]
    assert ["reason" in data for data in told] == [False, True, True, False, True, True, True, True]
    assert [project.keys()] * 6 == [done(answer)["data"]["project"].keys() for answer in answers]


# -- API keys


def shown(stage: Stage, key: Json) -> str:
    """The state that a key shows, or that it is gone."""
    keys = done(stage.api.get("/api-keys", params={"limit": 100}))["api_keys"]
    found = [each for each in keys if each["id"] == key["id"]]
    if not found:
        return "deleted"
    ends = found[0]["expires_at"]
    if ends is not None and ends <= stage.now():
        assert found[0]["is_active"] is False
        return "expired"
    return "active" if found[0]["is_active"] else "inactive"


# A rotation ends the credentials of its sandbox: `tests/surfaces/test_generations.py` has it delete
# keys.
MOVES_OF_KEYS = [(m.from_, m.to, by) for m in KEY.moves for by in m.by if by != "rotateSandbox"]


@pytest.mark.parametrize(("from_", "to", "by"), MOVES_OF_KEYS)
def test_every_move_of_an_api_key_happens_and_is_told_once(
    stage: Stage, from_: str, to: str, by: str
) -> None:
    move = KEY.find(from_, to)
    assert move is not None
    key = stage.key("active" if from_ == "new" else from_)
    told = [] if from_ == "new" else stage.events(key["id"])
    path = f"/api-keys/{key['id']}"
    if to == "expired" and by == "createApiKey":
        key = stage.key("expired")
        told = []
    elif to == "expired" and by == "updateApiKey":
        done(stage.api.put(path, json={"expires_at": stage.now()}))
        told = [*told, "api_key.updated"]
    elif by == "clock":
        ends = stage.after(60)
        body = {"name": "Chave", "scopes": ["orders:read"], "expires_at": ends}
        key = created(stage.api.post("/api-keys", json=body))["api_key"]
        told = ["api_key.created"]
        stage.go_to(ends)
    elif by == "deleteApiKey":
        done(stage.api.delete(path))
    elif by == "updateApiKey":
        revive = {"expires_at": None} if from_ == "expired" else {}
        done(stage.api.put(path, json={"is_active": to == "active"} | revive))
    assert to == shown(stage, key)
    assert [*told, *move.events] == stage.events(key["id"])
