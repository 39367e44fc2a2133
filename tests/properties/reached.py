"""How far the sequences of the model must come: what none of them meets, none of them proves."""

from collections.abc import Iterator

from .bench import Tally

REACHED = {
    *(f"order {status}" for status in ("pending", "paid", "failed", "expired", "canceled", "refunded", "disputed")),
    *("dispute won", "dispute lost", *(f"disputed over an end, {status}" for status in ("active", "past_due"))),
    *(f"subscription {status}" for status in ("trialing", "active", "past_due", "canceled", "expired")),
    *(f"project {status}" for status in ("draft", "active", "suspended", "archived", "deleted")),
    *("partial refund", "trial", "renewal paid while active", "renewal paid while past_due", "renewed 3+"),
    *(f"canceled with an open bill, {verb} (S1)" for verb in ("cancel", "later")),
    *("open bill dropped (S1, S2)", "renewed after a suspension (T1)", "payable after its end (T1)"),
    *(f"paid again (S2) while {status}" for status in ("trialing", "active", "past_due")),
    *(f"suspended for a while, {status} (T1)" for status in ("trialing", "active", "past_due")),
    *("renewed early (S4)", "start moved (S4)", "card charged (S5)", "card refused (S5)"),
    *("renewal addressed anew (S6)", "month of Brazil (S8)"),
    *(f"{place} period refunded (S7)" for place in ("older", "running", "future")),
    *("card paid as it was ordered (T7)", "card charged again (T7)", "the method follows the payment (T6)"),
    *("cancellation taken back by a payment (T3)", "resumed (T3)"),
    *("boleto paid late (T10)", "opened in an archived project (T10)"),
    *("inactive, but not for its subscribers (T2)", "ordered at the old price (T8)"),
    "money taken back once",
    *("seat held by an open order (O36)", "sold out, but not for its holders (O36)"),
}
REFUSED = {
    *("not_found", "reference_not_found", "duplicate_name", "duplicate_document", "duplicate_sku"),
    *("document_type_conflict", "invalid_state_transition", "project_not_active", "project_archived"),
    *("project_has_activity", "plan_not_active", "plan_sold_out", "plan_in_use", "payment_method_not_allowed"),
    *("order_already_paid", "order_not_payable", "order_not_refundable", "refund_exceeds_amount"),
    *("refund_window_closed", "idempotency_key_reused", "insufficient_scope", "project_not_allowed"),
    *("failure_code_not_applicable", "jwt_required", "invalid_token", "api_key_inactive", "api_key_expired"),
}


def missing(tally: Tally, sequences: int) -> list[str]:
    """What was too seldom, or never, met."""
    return [*_missing(tally, sequences)]


def _missing(tally: Tally, sequences: int) -> Iterator[str]:
    if tally.full < sequences:
        yield f"only {tally.full} sequences were of full length"
    for mark, share in (("order paid", 0.7), ("renewed", 0.4)):
        if tally.reached[mark] <= tally.sequences * share:
            yield f"too few sequences reach: {mark}"
    yield from (f"not reached: {name}" for name in sorted(REACHED - set(tally.reached)))
    yield from (f"never refused: {code}" for code in sorted(REFUSED - set(tally.refusals)))
