"""Amounts, which have a keyword of their own: accepted exactly where the contract's own keywords accept them."""

import math

import pytest

from stub_server.contract.schema import Validator

VALUES = [
    *(cents / 100 for cents in range(0, 2_000, 7)),
    *(math.nextafter(cents / 100, towards) for cents in range(1, 2_000, 13) for towards in (0, 1e9)),
    *(0.015, 0.1 + 0.2, 1.005, 2.675, 49.899999999, 5e-324, -0.0, -0.01, 999_999.98, 999_999.991, 1_000_000, 1e300),
    *(0, 1, -1, 2**70, True, False, None, "1", [1], {"amount": 1}),
]


@pytest.mark.parametrize("least", [0, 0.01])
def test_the_keyword_of_amounts_accepts_what_the_contract_accepts(least: float) -> None:
    validator = Validator({"type": "number", "minimum": least, "maximum": 999_999.99, "multipleOf": 0.01}, {})
    found = [validator.is_valid(value) for value in VALUES]
    assert [validator.first_error(value) is None for value in VALUES] == found
    assert {True, False} == set(found)


def test_other_steps_and_open_bounds_are_the_validators_own() -> None:
    for schema in ({"minimum": 0, "exclusiveMinimum": True, "maximum": 9, "multipleOf": 0.01}, {"multipleOf": 0.01}):
        validator = Validator(schema, {})
        assert (False, True) == (validator.is_valid(0.015), validator.is_valid(1))
        assert validator.is_valid(0) == ("minimum" not in schema)
