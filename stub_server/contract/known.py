"""Checks that a contract with overlays keeps the parts of the shipped one that the server's rules need."""

from .document import Document
from .source import ContractError, Json, json_path


def check_states(document: Document, shipped: Document) -> None:
    """Raises ContractError if a state, a set of states or the member that holds the state is missing."""
    for name, old in shipped.lifecycles.items():
        place: list[str | int] = ["components", "schemas", name, "x-lifecycle"]
        new = document.lifecycles.get(name)
        if new is None:
            raise _fault(place, "the server needs the states of this resource: keep its x-lifecycle")
        if new.field != old.field:
            raise _fault([*place, "field"], f"the server stores the state in {old.field}: do not change it")
        for state in old.states:
            if state not in new.states:
                reason = f"the rules of the server need the state {state}: keep it, without moves if it never occurs"
                raise _fault([*place, "states"], reason)
        for key in old.sets:
            if key not in new.sets:
                reason = f"the rules of the server need the set {key}: keep it, empty if it has no state"
                raise _fault([*place, "sets"], reason)


def check_payloads(document: Document, shipped: Document) -> None:
    """Raises ContractError if a payload requires a member that the server never sends or forbids one that it sends."""
    sent: dict[str | None, set[str]] = {}
    envelope: set[str] = set()
    for event in shipped.events.values():
        body, data = _parts(shipped, event)
        envelope |= set(body["properties"])
        sent.setdefault(event["record"], set()).update(set(data["properties"]) - {event["payload_key"]})
    for name, event in document.events.items():
        if event["record"] not in sent:
            continue  # no move and no change raises it: its payload is its example
        body, data = _parts(document, event)
        members = sent[event["record"]] | {event["payload_key"]}
        for schema, known, of in ((body, envelope, "the payload"), (data, members, "data")):
            asked = sorted(set(schema.get("required", ())) - known)
            if asked:
                raise _misfit(name, f"the server has nothing to send as {asked[0]} of {of}: do not require it")
            lacking = sorted(known - set(schema.get("properties", ())))
            if lacking and schema.get("additionalProperties") is False:
                raise _misfit(name, f"the server sends {lacking[0]} in {of}: keep it in the properties")


def _parts(document: Document, event: Json) -> tuple[Json, Json]:
    body = document.resolve(event["schema"])
    return body, document.resolve(body["properties"]["data"])


def _misfit(event: str, reason: str) -> ContractError:
    return _fault(["x-webhooks", event, "post", "requestBody", "content", "application/json", "schema"], reason)


def _fault(place: list[str | int], reason: str) -> ContractError:
    return ContractError(f"{json_path(place)}: {reason}")
