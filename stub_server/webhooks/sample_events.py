"""Events that are sent to a receiver while it is judged: about different real records, and none of
them happened.
"""

from collections.abc import Sequence
from hashlib import blake2b
from itertools import count, cycle
from typing import Any

import orjson

from ..core.clock import iso, wall_ms
from ..core.record import Body, Record
from ..engine.draft import Draft
from ..engine.samples import newest, sample
from ..engine.sandbox import Sandbox
from ..engine.step import Cause
from ..engine.tables.store import Store

RECORDS = 24
LARGE = 250_000  # bytes
_ENTRY = "x" * 500


class Samples:
    """Payloads of one type, each under an id of its own and, as long as there are enough records,
    about another one.

    A receiver may remember which events it has seen: no id comes again, in this run or in another.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        store: Store,
        entry: Body,
        type_: str,
        *,
        project: str | None,
        run: str,
    ) -> None:
        """`entry` is the type's in the contract's catalogue; `run` names this run and no other."""
        self.type = type_
        self._run = run
        self._numbers = count(1)
        # to look through, never recorded
        draft = Draft(sandbox, store, Cause("control", run, "certify"))
        records: Sequence[Record | None] = newest(draft, type_, entry, project, RECORDS) or [None]
        self._events = cycle([sample(draft, type_, entry, record) for record in records])

    def next(self, ago: int = 0) -> Body:
        """A further event that happened so many ms ago by the machine's clock, with which receivers
        compare theirs.
        """
        event = next(self._events)._replace(at=wall_ms() - ago)
        return self._under_new_id(_with_whole_numbers(orjson.loads(event.payload())))

    def older(self, newer: Body) -> Body:
        """Another event about the same record, from the second before."""
        return self._under_new_id(newer | {"timestamp": iso(wall_ms() - 1000)})

    def of_unknown_type(self) -> Body:
        """A type that came with a later version of the service."""
        base = self.next()
        data = {"membership": {"id": base["id"], "level": "gold"}}
        return self._under_new_id(base | {"type": "membership.upgraded", "data": data})

    def with_unknown_fields(self) -> Body:
        """Members that came with a later version of the service, at every level."""
        new: Body = {"added_later": {"a": [1, None]}}
        base = self.next()
        data = dict(base["data"])
        for name, value in data.items():
            if isinstance(value, dict):
                data[name] = value | new
        return self._under_new_id(base | {"data": data | new} | new)

    def large(self) -> Body:
        """A body of 250 kB: much metadata, of a record that has some if there is one."""
        base = self.next()
        parts = [part for part in base["data"].values() if isinstance(part, dict)] or [base["data"]]
        holder = max(parts, key=lambda part: "metadata" in part)
        holder["metadata"] = {}
        for number in range(LARGE // len(_ENTRY)):
            holder["metadata"][f"key_{number}"] = _ENTRY
        return self._under_new_id(base)

    def _under_new_id(self, payload: Body) -> Body:
        digest = blake2b(f"{self._run}/{next(self._numbers)}".encode(), digest_size=13).hexdigest()
        return payload | {"id": f"evt_{digest}"}


def _with_whole_numbers(value: Any) -> Any:
    """The same with 80 for 80.0, as JavaScript writes it.

    A receiver that signs what it has parsed and written again then breaks the rule about that
    alone.
    """
    if isinstance(value, dict):
        return {name: _with_whole_numbers(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_with_whole_numbers(member) for member in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
