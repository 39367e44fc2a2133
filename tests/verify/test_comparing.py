"""Which values of an answer are compared: what follows from something, and what twins merely share."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

import pytest

from stub_server.tools.verify.comparing import Comparing, Difference, Moment, TargetClock, instant_of
from stub_server.tools.verify.probes import Names, Roles

HOUR = 3_600.0
NOW = 1_700_000_000.0
MOMENT = Moment(NOW, NOW, 0.1)
OWN = Names("11111111-1111-4111-8111-111111111111", "a" * 8 + "-1111-4111-8111-111111111111",
            "b" * 8 + "-1111-4111-8111-111111111111")  # fmt: skip
OTHER = "99999999-9999-4999-8999-999999999999"


def comparing(
    roles: Roles | None = None,
    constants: dict[tuple[str, ...], tuple[Any, Any]] | None = None,
    states: Collection[Any] = (),
) -> Comparing:
    return Comparing(roles or Roles(), {} if constants is None else constants, {"status": states}, TargetClock())


def found(judge: Comparing, target: Any, first: Any, second: Any, **more: Any) -> list[Difference]:
    return [*judge.differences(target, first, second, more.pop("moment", MOMENT), **more)]


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def test_what_twins_do_not_agree_on_says_nothing() -> None:
    assert [] == found(comparing(), {"code": "x"}, {"code": "a"}, {"code": "b"})


def test_a_value_that_was_sent_must_come_back() -> None:
    judge = comparing()
    judge.sent({"name": "Plano", "deep": [{"note": "Oi"}]})
    assert [] == found(judge, {"name": "Plano"}, {"name": "Plano"}, {"name": "Plano"})
    assert [(("note",), "Oi", "oi!")] == [d[:3] for d in found(judge, {"note": "oi!"}, {"note": "Oi"}, {"note": "Oi"})]


def test_what_twins_merely_share_is_learned_and_must_stay() -> None:
    constants: dict[tuple[str, ...], tuple[Any, Any]] = {}
    twin = {"environment": "sandbox"}
    assert [] == found(comparing(constants=constants), {"environment": "production"}, twin, twin)
    assert [] == found(comparing(constants=constants), {"environment": "production"}, twin, twin)
    (difference,) = found(comparing(constants=constants), {"environment": "staging"}, twin, twin)
    assert ("production", "staging") == (difference.expected, difference.got)


@pytest.mark.parametrize(("expected", "got"), [(1, 2), (0.5, 0.25), (None, "text"), ("text", None)])
def test_numbers_and_null_always_follow_from_something(expected: Any, got: Any) -> None:
    assert 1 == len(found(comparing(), {"it": got}, {"it": expected}, {"it": expected}))


def test_states_and_defaults_follow_from_the_contract() -> None:
    judge = comparing(states=("active", "draft"))
    assert 1 == len(found(judge, {"status": "draft"}, {"status": "active"}, {"status": "active"}))


def test_another_type_is_left_to_the_schema() -> None:
    assert [] == found(comparing(), {"it": "1"}, {"it": 1}, {"it": 1})
    assert [] == found(comparing(), {"it": True}, {"it": 1}, {"it": 1})
    assert [] == found(comparing(), {"it": 1.0}, {"it": 1}, {"it": 1})


def test_an_id_that_was_learned_must_be_meant_again() -> None:
    roles = Roles()
    roles.play("the plan", OWN)
    target, first, second = ({"planId": ident} for ident in OWN)
    assert [] == found(comparing(roles), target, first, second)
    (difference,) = found(comparing(roles), {"planId": OTHER}, first, second)
    assert difference.kind == "reference"


def test_an_id_at_the_same_place_is_learned() -> None:
    roles = Roles()
    assert [] == found(comparing(roles), *({"id": ident} for ident in OWN))
    assert OWN.target == roles.role(OWN.first, OWN.second)


def test_a_list_that_is_whole_has_the_journeys_records_and_no_other() -> None:
    roles = Roles()
    roles.play("the plan", OWN)
    own = [{"id": ident} for ident in OWN]
    assert [] == found(comparing(roles), {"plans": [own[0]]}, {"plans": [own[1]]}, {"plans": [own[2]]})
    more = {"plans": [own[0], {"id": OTHER}]}
    assert ["filter"] == [d.kind for d in found(comparing(roles), more, {"plans": [own[1]]}, {"plans": [own[2]]})]
    none: dict[str, Any] = {"plans": []}
    assert "list" in [d.kind for d in found(comparing(roles), none, {"plans": [own[1]]}, {"plans": [own[2]]})]


def test_of_a_list_with_others_the_journeys_own_entries_are_compared() -> None:
    roles = Roles()
    roles.play("the plan", OWN)
    lists = [{"total": n, "plans": [{"id": ident, "price": 5}]} for n, ident in enumerate(OWN)]
    lists[0]["plans"].append({"id": OTHER, "price": 7})  # type: ignore[attr-defined]
    assert [] == found(comparing(roles), *lists, entries=("plans",))
    lists[0]["plans"][0]["price"] = 6  # type: ignore[index]
    assert [("plans", "price")] == [d.at for d in found(comparing(roles), *lists, entries=("plans",))]


def test_instants_are_compared_by_their_distance_from_the_request() -> None:
    judge = comparing()
    first = {"createdAt": iso(NOW), "expiresAt": iso(NOW + HOUR)}
    ahead = {"createdAt": iso(NOW + 500), "expiresAt": iso(NOW + 500 + HOUR)}  # a clock of its own
    assert [] == found(judge, ahead, first, first)
    assert judge.skew == pytest.approx(500, abs=1)
    late = {**ahead, "expiresAt": iso(NOW + 500 + 2 * HOUR)}
    assert [("expiresAt",)] == [d.at for d in found(judge, late, first, first)]


def test_an_instant_that_was_sent_comes_back_as_it_was() -> None:
    judge = comparing()
    judge.sent({"startsAt": "2030-01-01T00:00:00Z"})
    twin = {"startsAt": "2030-01-01T00:00:00Z"}
    assert [] == found(judge, {"startsAt": "2029-12-31T21:00:00.000-03:00"}, twin, twin)
    assert 1 == len(found(judge, {"startsAt": "2030-01-01T00:00:01Z"}, twin, twin))


@pytest.mark.parametrize("text", ["2030-01-01", "2030-01-01T00:00:00", "yesterday", "2030-13-01T00:00:00Z", "x" * 50])
def test_what_is_no_instant(text: str) -> None:
    assert instant_of(text) is None
