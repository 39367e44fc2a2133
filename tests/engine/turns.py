"""What random sequences of the engine are made of, and the sequence that ends each."""

from hypothesis import strategies as st

from .actions import ACTIONS
from .shop import REPEAT, Turn

CODA = [
    Turn(action, who, a, b, None)
    for action, who, a, b in (
        ("create webhook", 0, 0, 10), ("snapshot", 0, 0, 0),
        ("create project", 0, 1, 1), ("create plan", 0, 1, 1), ("create plan", 0, 2, 1), ("delete plan", 0, 0, 0),
        ("place order", 0, 0, 14), ("pay order", 0, 0, 0), ("advance", 0, 0, 5), ("advance", 0, 0, 5),
        ("fail order", 0, 0, 1), ("advance", 0, 0, 5), ("place order", 0, 0, 0), ("pay order", 0, 0, 0),
        ("advance", 0, 0, 8), ("place order", 0, 0, 4), ("pay order", 0, 0, 0), ("advance", 0, 0, 6),
        ("expire subscription", 0, 0, 0), ("place order", 0, 2, 8), ("advance", 0, 0, 2), ("place order", 0, 0, 12),
        ("create key", 0, 0, 1), ("malformed", 6, 0, 0), ("delete key", 0, 0, 0),
        ("place order", 0, 0, 0), ("pay order", 0, 0, 0), ("set project status", 0, 0, 2),
        ("set project status", 0, 0, 0), ("advance", 0, 0, 1), ("set project status", 0, 0, 6),
        ("create project", 0, 1, 1), ("create plan", 0, 1, 2), ("place order", 0, 0, 0), ("pay order", 0, 0, 0),
        ("advance", 0, 0, 7), ("place order", 0, 0, 4), ("fail order", 0, 0, 0), ("restore", 0, 0, 0),
        ("advance", 0, 0, 1), ("rewind", 0, 0, 1),
    )
]  # fmt: skip
"""A project that sells by days: a member lapses, one is ended, one is paid back, one waits when it is archived.
It stands still in between, while a member's period runs. A declined card is charged again.

And a key that is used is deleted before that use was recorded, the server answers for a webhook at a reserved name, a
trial ends, and a snapshot from before all of it is restored, which is undone by a rewind.
"""
OFTEN = (
    "place order", "place order", "pay order", "pay order", "refund order", "fail order", "read", "advance",
    "advance to next", "create plan", "renew subscription", "test webhook", "cancel order", "retry delivery",
    "expire subscription", "snapshot", "restore", "rewind",
)  # fmt: skip
"""Asked more often than the rest."""
NAMES = [*sorted(ACTIONS), *sorted(OFTEN) * 2, *[REPEAT] * 6]
TURNS = st.builds(
    Turn,
    st.sampled_from(NAMES),
    st.integers(0, 9),
    st.integers(0, 10),
    st.integers(0, 10),
    st.sampled_from((None, None, None, None, "one", "two", '"two"', "three", "four", "five")),
)
