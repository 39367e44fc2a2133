"""What the contract and the rules list: events, scopes, magic values, fault presets."""

from typing import Any

from stub_server.app import data_dir
from stub_server.contract import bundle
from stub_server.contract.document import Document
from stub_server.core.clock import SECOND
from stub_server.domain.orders import BEHAVIOURS, MAGIC, MagicOutcome
from stub_server.engine.fault_rules import PRESETS

from .writing import code, codes, json_block, line, page, table

API, CONTROL = map(Document, bundle.contracts(data_dir("openapi"))[:2])
_BY_HAND = "triggerEvent"
_DONE = {"order.pay": "paid", "order.refund": "refunded"}


def events() -> str:
    """The page of the events."""
    kinds: dict[str, list[str]] = {}
    for name in API.events:
        kinds.setdefault(name.partition(".")[0], []).append(name)
    return page(
        "Events",
        """A [webhook](../webhooks.md) subscribes to an event, such as `order.paid`, or to all of a kind, such as
        `order.*`. A delivery is a POST of such a payload, whose `data` contains the record under the name of its kind.
        Below, one payload of each kind is shown in full.""",
        "`POST /_sandbox/events` sends any of them without a cause.",
        table(
            ("Kind", "Events"),
            (
                (code(f"{kind}.*"), ", ".join(f"[`{name}`](#{name.replace('.', '')})" for name in names))
                for kind, names in kinds.items()
            ),
        ),
        *(_kind(kind, names) for kind, names in kinds.items()),
    )


def _kind(kind: str, names: list[str]) -> str:
    first = API.events[names[0]]
    parts = [f"## {kind}"]
    for name in names:
        event = API.events[name]
        by = ["the clock" if each == "clock" else code(each) for each in event["emitted_by"] if each != _BY_HAND]
        parts.append(
            f"### {name}\n\n{line(event['description'] or event['summary'])}"
            + (f"\n\nRaised by: {', '.join(by)}." if by else "")
        )
    parts += [f"### The payload of {names[0]}", json_block(first["example"])]
    return "\n\n".join(parts)


def scopes() -> str:
    """The page of the scopes."""
    return page(
        "Scopes",
        """A credential has scopes; an operation requires one. Without it the answer is 403
        [`insufficient_scope`](errors.md#insufficient_scope).
        [API keys](../api.md#create-an-api-key-with-fewer-scopes) have the scopes that you choose; a token
        has all.""",
        *map(_scope, API.scopes),
    )


def _scope(scope: dict[str, Any]) -> str:
    taken = codes(o.id for o in API.operations.values() if scope["name"] in o.scopes)
    note = "" if scope["assignable"] else " Only a token has it, no API key."
    return f"## {scope['name']}\n\n{scope['description']}{note}\n\nOperations: {taken}."


def magic_values() -> str:
    """The page of the magic values."""
    behaviours = {word: name for name, word in BEHAVIOURS.items()}
    return page(
        "Magic values",
        """A word in the part of the customer's e-mail address before the `@` decides what happens to an
        [order](../payments.md#choose-by-e-mail-address), such as `rui+fail_immediately@example.com`. Times are of the
        sandbox clock. The answer names the word in `X-Sandbox-Simulated`. A
        [behaviour](../payments.md#make-a-card-or-a-payment-fail) of the customer, with the `payment` of the last
        column, does the same for all of the customer's orders.""",
        table(
            ("Word", "Effect", "`payment`"),
            ((code(word), _effect(outcome), code(behaviours.get(word, ""))) for word, outcome in MAGIC.items()),
        ),
        "## No CPF, card number or amount makes a payment fail",
        "Only the e-mail address decides, or the customer's behaviour.",
    )


def _effect(outcome: MagicOutcome) -> str:
    if outcome.fails:
        return "fails at once; the answer is still 201"
    if outcome.life is not None:
        return f"expires {_after(outcome.life)}"
    return ", ".join(f"{_DONE[job]} {_after(delay)}" for job, delay in outcome.jobs) or "unpaid until it expires"


def _after(delay: int) -> str:
    return "at once" if not delay else f"after {delay // SECOND} second{'s' if delay > SECOND else ''}"


def presets() -> str:
    """The page of the fault presets."""
    texts = CONTROL.schema("FaultPreset")["x-presets"]
    return page(
        "Fault presets",
        """A preset is a ready [fault rule](../faults.md#all-requests-of-a-kind): `stub-server faults add flaky`, or
        `POST /_sandbox/faults` with `{"preset": "flaky"}`. Members that you send with it replace the preset's.""",
        *(f"## {name}\n\nIt {text}.\n\n{json_block(PRESETS[name])}" for name, text in texts.items()),
    )
