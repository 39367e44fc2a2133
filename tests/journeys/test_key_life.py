"""API keys with an end in the past. When a key ends otherwise is held to the model."""

from ..support.make import Json, created, done
from .stage import DAY, Stage


def shown(stage: Stage, key: Json) -> bool:
    """Whether a key is shown as active."""
    keys = done(stage.api.get("/api-keys", params={"limit": 100}))["api_keys"]
    return bool(next(each for each in keys if each["id"] == key["id"])["is_active"])


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
            (shown(stage, key), answer.headers.get("x-sandbox-warnings"))
            for answer in (made, changed, named)
        ]
