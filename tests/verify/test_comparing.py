"""Which values of an answer are compared: what follows from something, and what twins
merely share.
"""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

import pytest

from stub_server.tools.verify.comparing import Comparing, Difference, Moment, TargetClock
from stub_server.tools.verify.probes import Roles

from ..support.contract import document

HOUR = 3_600.0
NOW = 1_700_000_000.0
MOMENT = Moment(NOW, NOW, 0.1)


def comparing(
    roles: Roles | None = None,
    constants: dict[tuple[str, ...], tuple[Any, Any]] | None = None,
    states: Collection[Any] = (),
) -> Comparing:
    return Comparing(
        roles or Roles(), {} if constants is None else constants, {"status": states}, TargetClock()
    )


def found(judge: Comparing, target: Any, first: Any, second: Any, **more: Any) -> list[Difference]:
    return [*judge.differences(target, first, second, more.pop("moment", MOMENT), **more)]


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def test_what_twins_merely_share_is_learned_and_must_stay() -> None:
    constants: dict[tuple[str, ...], tuple[Any, Any]] = {}
    twin = {"environment": "sandbox"}
    assert [] == found(comparing(constants=constants), {"environment": "production"}, twin, twin)
    assert [] == found(comparing(constants=constants), {"environment": "production"}, twin, twin)
    (difference,) = found(comparing(constants=constants), {"environment": "staging"}, twin, twin)
    assert ("production", "staging") == (difference.expected, difference.got)


def test_instants_are_compared_by_their_distance_from_the_request() -> None:
    judge = comparing()
    first = {"createdAt": iso(NOW), "expiresAt": iso(NOW + HOUR)}
    ahead = {"createdAt": iso(NOW + 500), "expiresAt": iso(NOW + 500 + HOUR)}  # a clock of its own
    assert [] == found(judge, ahead, first, first)
    assert judge.skew == pytest.approx(500, abs=1)
    late = {**ahead, "expiresAt": iso(NOW + 500 + 2 * HOUR)}
    assert [("expiresAt",)] == [d.at for d in found(judge, late, first, first)]


def test_instants_of_a_clock_that_does_not_move_are_not_compared() -> None:
    judge = comparing()
    for later in (0, 2, 20):
        twin, moment = {"createdAt": iso(NOW + later)}, Moment(NOW + later, NOW + later, 0.1)
        assert [] == found(judge, {"createdAt": iso(NOW)}, twin, twin, moment=moment)
    moved = comparing()
    for later, count in ((0, 0), (20, 1)):
        twin, moment = {"createdAt": iso(NOW + later)}, Moment(NOW + later, NOW + later, 0.1)
        assert count == len(
            found(moved, {"createdAt": iso(NOW + later / 2)}, twin, twin, moment=moment)
        )


def test_only_what_was_written_to_a_record_is_not_persisted() -> None:
    judge, twin = comparing(), {"id": "1", "type": "cpf", "metadata": {"a": 1}, "lists": ["x", "y"]}
    judge.wrote(document().operations["createCustomer"], "1", {"metadata": {"a": 1}})
    target: Any = {"id": "1", "type": None, "metadata": {}, "lists": ["y", "x"]}
    differences = found(judge, target, twin, twin)
    assert [(("type",), "value"), (("metadata", "a"), "not-persisted")] == [
        (each.at, each.kind) for each in differences
    ]
