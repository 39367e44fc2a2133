"""How far the sequences of the model must come: what none of them meets, none of them proves."""

from collections.abc import Iterator

from ..support.refusals import MODELLED
from .bench import Tally

REACHED = {
    *(
        f"order {status}"
        for status in ("pending", "paid", "failed", "expired", "canceled", "refunded", "disputed")
    ),
    *(
        "dispute won",
        "dispute lost",
        *(f"disputed over an end, {status}" for status in ("active", "past_due")),
    ),
    *(
        f"subscription {status}"
        for status in ("trialing", "active", "past_due", "canceled", "expired")
    ),
    *(f"project {status}" for status in ("draft", "active", "suspended", "archived", "deleted")),
    *(
        "partial refund",
        "trial",
        "renewal paid while active",
        "renewal paid while past_due",
        "renewed 3+",
    ),
    *(f"canceled with an open bill, {verb} (S1)" for verb in ("cancel", "later")),
    *(
        "open bill dropped (S1, S2)",
        "renewed after a suspension (T1)",
        "payable after its end (T1)",
    ),
    *(f"paid again (S2) while {status}" for status in ("trialing", "active", "past_due")),
    *(f"suspended for a while, {status} (T1)" for status in ("trialing", "active", "past_due")),
    *("renewed early (S4)", "start moved (S4)", "card charged (S5)", "card refused (S5)"),
    *("renewal addressed anew (S6)", "month of Brazil (S8)"),
    *(f"{place} period refunded (S7)" for place in ("older", "running", "future")),
    *(
        "card paid as it was ordered (T7)",
        "card charged again (T7)",
        "the method follows the payment (T6)",
    ),
    *("cancellation taken back by a payment (T3)", "resumed (T3)"),
    *("boleto paid late (T10)", "opened in an archived project (T10)"),
    *("inactive, but not for its subscribers (T2)", "ordered at the old price (T8)"),
    "money taken back once",
    *("seat held by an open order (O36)", "sold out, but not for its holders (O36)"),
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
    yield from (f"never refused: {code}" for code in sorted(MODELLED - set(tally.refusals)))
