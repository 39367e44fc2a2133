"""The secrets of a world that changes hands: keys that follow from the server's secret, and files without any."""

from __future__ import annotations

import re

import orjson

from ..domain.api_keys import digest
from ..events.signing import new_key
from ..kernel.ids import derived_text
from ..kernel.record import Body, Record
from ..seeding.keys import pair_of
from ..store.table import encoded
from .reading import Rewrite
from .state import WorldState

REDACTED = "[redacted]"
_USER = re.compile(r"^([^:/?#]+://)[^/?#]*@")
_OURS = ("content-", "user-agent", "webhook-")


def adopted(secret: bytes, name: str, *, anew: bool, keyless: bool = False) -> Rewrite:
    """Records as they are in a world of this name on this server: its seeded keys are those that the server derives.

    With `anew` the file holds no secrets, and keys that users made and signing keys are derived too; `keyless` ones
    hold no digests of API keys.
    """

    def rewrite(state: WorldState, table: str, record: Record) -> Record:
        if table == "api_keys":
            is_seeded = record.id in state.seeded_keys
            if is_seeded or anew or keyless:
                public_key, private_key = pair_of(secret, state.seed, record.id, name)
                public = {"public_key": public_key} if is_seeded else {}
                return changed(record, public, {"digest": digest(private_key)})
        elif table == "webhooks" and anew:
            drawn = derived_text(secret, 32, str(state.seed), "webhook", record.id, name)
            return changed(record, {}, {"signing_keys": [{"key": new_key(drawn.encode()), "until": None}]})
        return record

    return rewrite


def blanked(table: str, record: Record) -> Record:
    """A record as it stands in a file without secrets."""
    if table == "api_keys":
        return changed(record, {}, {"digest": ""})
    if table == "webhooks":
        headers = [{**header, "value": REDACTED} for header in orjson.loads(record.public)["headers"]]
        shown = orjson.loads(record.public)
        return changed(record, {"headers": headers, "url": _nameless(shown["url"])}, {"signing_keys": []})
    if table == "webhook_logs":
        sent = orjson.loads(record.hidden)["request_headers"]
        kept = {name: value if name.startswith(_OURS) else REDACTED for name, value in sent.items()}
        return changed(record, {"url": _nameless(orjson.loads(record.public)["url"])}, {"request_headers": kept})
    return record


def _nameless(url: str) -> str:
    """An address without the name and password that may stand before its host."""
    return _USER.sub(r"\1", url)


def changed(record: Record, public: Body, hidden: Body) -> Record:
    """A record with other members."""
    return record._replace(public=_with(record.public, public), hidden=_with(record.hidden, hidden))


def _with(part: bytes, changes: Body) -> bytes:
    return encoded(orjson.loads(part) | changes) if changes else part
