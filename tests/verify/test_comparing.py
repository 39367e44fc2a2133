"""Which values of an answer are compared: what follows from something, and what is the
twin's alone.
"""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from stub_server.tools.verify.comparing import Comparing, Difference
from stub_server.tools.verify.probes import Names, Roles

from ..support.contract import document

HOUR = 3_600.0
NOW = 1_700_000_000.0


def comparing(roles: Roles | None = None, states: Collection[Any] = ()) -> Comparing:
    return Comparing(roles or Roles(), states, set())


def found(judge: Comparing, target: Any, twin: Any, took: float = 0.1) -> list[Difference]:
    return [*judge.differences(target, twin, took)]


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def test_what_is_the_twins_alone_is_not_compared() -> None:
    judge, twin = comparing(states=["active"]), {"environment": "sandbox", "status": "active"}
    target = {"environment": "production", "status": "inactive"}
    assert [("status",)] == [each.at for each in found(judge, target, twin)]


def test_instants_are_compared_by_their_distance_from_the_first_created() -> None:
    judge, twin = comparing(), {"createdAt": iso(NOW), "expiresAt": iso(NOW + HOUR)}
    ahead = {"createdAt": iso(NOW + 500), "expiresAt": iso(NOW + 500 + HOUR)}  # a clock of its own
    assert [] == found(judge, ahead, twin)
    again = {"createdAt": iso(NOW + 20), "updatedAt": iso(NOW + 50)}
    moved = {"createdAt": iso(NOW + 520), "updatedAt": iso(NOW + 520)}
    assert [("updatedAt",)] == [each.at for each in found(judge, moved, again)]
    late = {**ahead, "expiresAt": iso(NOW + 500 + HOUR + 120)}
    assert [("expiresAt",)] == [each.at for each in found(judge, late, twin)]
    assert [] == found(judge, late, twin, took=120)


def test_only_what_was_written_to_a_record_is_not_persisted() -> None:
    judge = comparing()
    twin: Any = {"id": "1", "type": "cpf", "metadata": {"a": 1}, "lists": ["x", "y"]}
    judge.wrote(document().operations["createCustomer"], "1", {"metadata": {"a": 1}})
    twin["notes"] = None  # which was left out
    target: Any = {"id": "1", "type": None, "metadata": {}, "lists": ["y", "x"], "notes": ""}
    differences = found(judge, target, twin)
    assert [
        (("type",), "default"),
        (("metadata", "a"), "not-persisted"),
        (("notes",), "default"),
    ] == [(each.at, each.kind) for each in differences]


def test_ids_of_a_list_that_are_shown_as_text_are_persisted() -> None:
    own, twin = "0b1f6c1e-6a0e-4f0b-9a53-6a3f3c1c9b55", "2b8f1c1e-8a47-4f0e-9a37-5d0c6f3e7a21"
    roles = Roles()
    roles.play("the project", Names(own, twin))
    judge, shown = comparing(roles), {"id": "1", "allowed_projects": twin}
    judge.wrote(document().operations["updateApiKey"], "1", {"allowed_projects": [twin]})
    assert [] == found(judge, shown | {"allowed_projects": own}, shown)
    for without in ({"id": "1", "allowed_projects": ""}, {"id": "1"}):
        (lost,) = found(judge, without, shown)
        assert "not-persisted" == lost.kind
