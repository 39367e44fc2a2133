"""API keys and time: a key ends at its instant, once, and not at an end that it no longer has."""

from datetime import datetime

import pytest

from ..support.make import Json, created
from .stage import DAY, Stage
from .steps import done


def lasting(stage: Stage, days: float) -> Json:
    """A new key that ends after so many days."""
    body = {"name": "Chave", "scopes": ["orders:read"], "expires_at": stage.after(days * DAY)}
    return dict(created(stage.api.post("/api-keys", json=body))["api_key"])


def shown(stage: Stage, key: Json) -> bool:
    """Whether a key is shown as active."""
    keys = done(stage.api.get("/api-keys", params={"limit": 100}))["api_keys"]
    return bool(next(each for each in keys if each["id"] == key["id"])["is_active"])


def test_a_key_ends_at_its_instant_and_that_is_told_once(stage: Stage) -> None:
    key = lasting(stage, 2)
    stage.advance(2 * DAY - 0.001)
    assert (True, ["api_key.created"]) == (shown(stage, key), stage.events(key["id"]))
    stage.advance(0.001)
    assert (False, ["api_key.created", "api_key.expired"]) == (shown(stage, key), stage.events(key["id"]))
    (event,) = done(stage.control.get("/events", params={"resource_id": key["id"], "limit": 1}))["events"]
    assert datetime.fromisoformat(key["expires_at"]) == datetime.fromisoformat(event["timestamp"])
    assert not event["data"]["api_key"]["is_active"]
    stage.advance(30 * DAY)
    assert 2 == len(stage.events(key["id"]))


@pytest.mark.parametrize("end", [5, None])
def test_a_key_does_not_end_at_an_end_that_it_no_longer_has(stage: Stage, end: int | None) -> None:
    key = lasting(stage, 2)
    done(stage.api.put(f"/api-keys/{key['id']}", json={"expires_at": end and stage.after(end * DAY)}))
    stage.advance(4 * DAY)
    assert (True, ["api_key.created", "api_key.updated"]) == (shown(stage, key), stage.events(key["id"]))
    stage.advance(DAY)
    assert (end is None) is shown(stage, key)


def test_a_key_that_was_switched_off_does_not_end_again(stage: Stage) -> None:
    key = lasting(stage, 2)
    done(stage.api.put(f"/api-keys/{key['id']}", json={"is_active": False}))
    stage.advance(3 * DAY)
    assert (False, ["api_key.created", "api_key.updated"]) == (shown(stage, key), stage.events(key["id"]))


def test_a_key_with_an_end_in_the_past_is_warned_of(stage: Stage) -> None:
    """It is made and changed all the same, and admits nobody."""
    body = {"name": "Chave", "scopes": ["orders:read"]}
    for days, warned in ((-1, "expires_at_past"), (0, "expires_at_past"), (1, None)):
        ends = {"expires_at": stage.after(days * DAY)}
        made = stage.api.post("/api-keys", json=body | ends)
        key = created(made)["api_key"]
        changed = stage.api.put(f"/api-keys/{key['id']}", json=ends)
        named = stage.api.put(f"/api-keys/{key['id']}", json={"name": "Outra"})
        assert [(warned is None, warned), (warned is None, warned), (warned is None, None)] == [
            (shown(stage, key), answer.headers.get("x-sandbox-warnings")) for answer in (made, changed, named)
        ]
