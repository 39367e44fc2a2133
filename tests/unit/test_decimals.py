"""The quick check of decimals says what the schema says, word for word, of every number."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stub_server.contract.schema import DECIMAL, Validator, quicken

from ..support.contract import schemas

AMOUNT = {"type": "number", "minimum": 0.01, "maximum": 999999.99, "multipleOf": 0.01}
OPEN = {"type": "number", "minimum": -1.5, "exclusiveMinimum": True, "maximum": 7.25, "exclusiveMaximum": True}
FREE = {"type": "number", "multipleOf": 0.001}
HALVES = {"multipleOf": 0.5}
SCHEMAS = (AMOUNT, OPEN, FREE, HALVES)

_cents = st.integers(-(10**9), 10**9).map(lambda cents: cents / 100)
_nearly = st.tuples(_cents, st.sampled_from((1, -1))).map(lambda pair: pair[0] * (1 + pair[1] * 2**-52))
_numbers = st.one_of(
    _cents,
    _nearly,
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-10, 10),
    st.integers(-(2**63), 2**64 - 1),
    st.sampled_from((-1.5, 7.25, 0.01, 999999.99, 1e15, 1e15 + 0.5, 0, -0.0)),
)


@given(value=_numbers, number=st.sampled_from(range(len(SCHEMAS))))
@example(value=0.1 + 0.2, number=0)
@example(value=123456789012345.67, number=2)
@example(value=1.005, number=0)
def test_both_ways_agree_on_every_number(value: float, number: int) -> None:
    """Within bounds and between steps, at the edges and far outside."""
    validator = Validator(SCHEMAS[number], {})
    assert validator.exact.is_valid(value) == validator.is_valid(value)


@pytest.mark.parametrize("value", [None, True, "12.5", [0.5], {"amount": 0.5}])
def test_what_is_no_number_is_left_to_the_type(value: Any) -> None:
    """Only `type` minds a text or a truth value."""
    assert Validator(HALVES, {}).is_valid(value)
    assert not Validator(AMOUNT, {}).is_valid(value)


@pytest.mark.parametrize("value", [0, -0.01, 1_000_000, 12.345, "12.00"])
def test_what_is_wrong_is_said_in_the_words_of_the_schema(value: Any) -> None:
    """A refusal names the contract's keyword, never ours."""
    validator = Validator({"properties": {"amount": AMOUNT}}, {})
    assert not validator.is_valid({"amount": value})
    errors = list(validator.iter_errors({"amount": value}))
    assert errors
    assert not any(DECIMAL in str(error.schema_path) for error in errors)
    assert errors[0].message == getattr(validator.first_error({"amount": value}), "message", None)
    assert validator.first_error({"amount": 49.9}) is None


def test_only_bounds_of_decimals_are_moved() -> None:
    """Whole bounds are quick as they are, steps that do not divide one stay, and the schema itself is never changed."""
    whole = {"properties": {"minimum": {"type": "integer", "minimum": 1}}}
    third = {"type": "number", "multipleOf": 0.03}
    assert quicken(whole) is whole
    assert quicken(third) is third
    assert quicken({"items": [AMOUNT]}) == {
        "items": [{"type": "number", DECIMAL: {"minimum": 0.01, "maximum": 999999.99, "multipleOf": 0.01}}]
    }
    assert AMOUNT["multipleOf"] == 0.01


def test_the_contract_has_such_numbers() -> None:
    """Else all of this were for nothing."""
    sent = {"description": "x", "quantity": 1, "amount": 49.9}
    item = schemas().component("OrderItemInput", request=True)
    assert item.is_valid(sent)
    assert not item.is_valid(sent | {"amount": 49.999})
