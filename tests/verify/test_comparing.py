"""Which values of an answer are compared: what follows from something, and what twins
merely share.
"""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

import pytest

from stub_server.tools.verify.comparing import Comparing, Difference
from stub_server.tools.verify.probes import Roles

from ..support.contract import document

HOUR = 3_600.0
NOW = 1_700_000_000.0


def comparing(
    roles: Roles | None = None,
    constants: dict[tuple[str, ...], tuple[Any, Any]] | None = None,
    states: Collection[Any] = (),
) -> Comparing:
    return Comparing(roles or Roles(), {} if constants is None else constants, {"status": states})


def found(judge: Comparing, target: Any, first: Any, second: Any) -> list[Difference]:
    return [*judge.differences(target, first, second)]


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def test_what_twins_merely_share_is_learned_and_must_stay() -> None:
    constants: dict[tuple[str, ...], tuple[Any, Any]] = {}
    twin = {"environment": "sandbox"}
    assert [] == found(comparing(constants=constants), {"environment": "production"}, twin, twin)
    assert [] == found(comparing(constants=constants), {"environment": "production"}, twin, twin)
    (difference,) = found(comparing(constants=constants), {"environment": "staging"}, twin, twin)
    assert ("production", "staging") == (difference.expected, difference.got)


@pytest.mark.parametrize(
    ("made", "expires", "expected"),
    [
        (NOW + 5_000, NOW + 5_000 + HOUR, []),  # a clock of its own
        (NOW, NOW + HOUR, []),
        (NOW, NOW + 2 * HOUR, [("expiresAt",)]),
        (NOW, NOW, [("expiresAt",)]),
    ],
)
def test_instants_are_compared_by_the_time_between_them(
    made: float, expires: float, expected: list[tuple[str, ...]]
) -> None:
    twin = {"id": "1", "createdAt": iso(NOW + 20), "expiresAt": iso(NOW + 20 + HOUR)}
    target = {"id": "1", "createdAt": iso(made), "expiresAt": iso(expires)}
    assert expected == [each.at for each in found(comparing(), target, twin, twin)]


def test_only_what_was_written_to_a_record_is_not_persisted() -> None:
    judge, twin = comparing(), {"id": "1", "type": "cpf", "metadata": {"a": 1}, "lists": ["x", "y"]}
    judge.wrote(document().operations["createCustomer"], "1", {"metadata": {"a": 1}})
    target: Any = {"id": "1", "type": None, "metadata": {}, "lists": ["y", "x"]}
    differences = found(judge, target, twin, twin)
    assert [(("type",), "value"), (("metadata", "a"), "not-persisted")] == [
        (each.at, each.kind) for each in differences
    ]
