"""Records, stored and parsed; the members that events add to them; and of bodies how large they
are, and how they differ.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, final

import orjson

Body = dict[str, Any]

ABSENT = object()
"""No value, as JSON's null is one."""
Difference = tuple[str, Any, Any]
"""A place such as `body.items[0].amount`, and the two values there."""


BELOW_INSTANT = 192
"""Bits of a record's key below its instant: 128 of the id, and 64 of a salt."""


def place(created: int, ident: str) -> int:
    """The key of a record: its creation in ms, then its id, then a salt of this process.

    Without the salt the author of a file could choose ids whose keys all have one hash, and a dict
    of them would take the square of their number.
    """
    number = int(ident.replace("-", ""), 16)
    return created << BELOW_INSTANT | number << 64 | hash(ident) & (1 << 64) - 1


class Record(NamedTuple):
    """One version of a resource, never changed: `public` is the JSON that callers get, `hidden` is
    internal JSON.

    `key` sorts records by creation.
    """

    id: str
    key: int
    version: int
    public: bytes
    hidden: bytes

    @property
    def created(self) -> int:
        """When the record was created, in ms."""
        return self.key >> BELOW_INSTANT


@final
@dataclass(slots=True)
class Row:
    """A parsed record of a table. Its parts are for reading alone: rules make new rows of it.

    `before` is what a row was before a rule changed it.
    """

    table: str
    record: Record
    public: Body
    hidden: Body
    before: "Row | None" = None

    def __getitem__(self, member: str) -> Any:
        """The value of a hidden member, or else of one that callers see: an overlay may add any."""
        return self.hidden[member] if member in self.hidden else self.public[member]

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def status(self) -> str:
        """The state that it is in, of records that have one."""
        found: str = self.public["status"]
        return found

    @property
    def project(self) -> str | None:
        """The project that it is, or belongs to, if any."""
        if self.table == "projects":
            return self.record.id
        found: str | None = self.hidden.get("projectId", self.public.get("projectId"))
        return found

    def changed(self, public: Body, hidden: Body | None = None) -> "Row":
        """The row with other values of these members of each part."""
        kept = self.hidden if hidden is None else self.hidden | hidden
        return self.replaced(self.public | public, kept)

    def keeping(self, hidden: Body) -> "Row":
        """The row with other values of these members of its hidden part."""
        return self.replaced(self.public, self.hidden | hidden)

    def replaced(self, public: Body, hidden: Body) -> "Row":
        """The row with these parts."""
        return Row(self.table, self.record, public, hidden, self.before or self)

    @property
    def is_new(self) -> bool:
        """Whether it was never stored."""
        return self.record.version == 0

    @property
    def differs(self) -> bool:
        """Whether it has other values than before."""
        was = self.before or self
        return was.public != self.public or was.hidden != self.hidden


class UniqueKey(NamedTuple):
    """Members that no two records have in common (`x-unique`); a record that has null in one of
    them has no key.

    `scope` is the member within whose values that holds, null among them; None is the whole
    merchant. `ignores` are differences that do not count: "case" and "punctuation". `code` is that
    of the refusal, None for a key that no request can choose.
    """

    members: tuple[str, ...]
    scope: str | None
    ignores: tuple[str, ...]
    code: str | None

    @property
    def name(self) -> str:
        """What tables call it."""
        return "+".join(self.members)


class Extras(NamedTuple):
    """Members of an event's payload beside the record:

    `names` are copied from its hidden part, `others` are given: names and values as JSON.
    """

    names: tuple[str, ...] = ()
    others: bytes = b"[]"


NO_EXTRAS = Extras()


@lru_cache(maxsize=64)
def moved_from(previous: str | None, *names: str) -> Extras:
    """Extras of a move: the hidden members `names`, then `previous_status`."""
    return Extras(names, orjson.dumps([("previous_status", previous)]))


def without(members: Body, *names: str) -> Body:
    """The members of an object but those of these names."""
    return {name: value for name, value in members.items() if name not in names}


def object_in(text: bytes | None) -> Body:
    """The JSON object that a text is; empty where it is something else."""
    try:
        found = orjson.loads(text or b"")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def may_have_more_values(text: bytes | bytearray, most: int) -> bool:
    """Whether JSON may have more than so many values: each comes after a comma, or first."""
    return text.count(b",") + text.count(b"[") + text.count(b"{") >= most


def has_more_lists(text: bytes, most: int) -> bool:
    """Whether JSON has more than so many lists and objects, without reading it: half a million
    of them take 100 ms.
    """
    if text.count(b"[") + text.count(b"{") <= most:
        return False
    outside = b"".join(text.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])
    return outside.count(b"[") + outside.count(b"{") > most


def has_more_values(value: Any, most: int) -> bool:
    """Whether a body has more than so many values: validating half a million takes a second."""
    count = 0
    pending: list[Any] = [[value]]
    while pending:
        node = pending.pop()
        count += len(node)
        if count > most:
            return True
        inner = node.values() if isinstance(node, dict) else node
        pending += [child for child in inner if isinstance(child, (dict, list))]
    return False


def is_deeper_than(value: Any, levels: int) -> bool:
    """Whether a body has objects or lists below so many levels of them."""
    layer = [value]
    for _ in range(levels):
        below: list[Any] = []
        for node in layer:
            if isinstance(node, dict):
                below += node.values()
            elif isinstance(node, list):
                below += node
        layer = below
    return any(isinstance(node, (dict, list)) for node in layer)


def differences(
    one: Any, other: Any, place: str, same: Callable[[Any, Any], bool], *, in_full: bool
) -> Iterator[Difference]:
    """The places at which two values differ.

    Unless they are compared `in_full`, the other may have more members.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        for name in {**one, **other} if in_full else one:
            inner = f"{place}.{name}" if place else name
            pair = one.get(name, ABSENT), other.get(name, ABSENT)
            yield from differences(*pair, inner, same, in_full=in_full)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, pair in enumerate(zip(one, other, strict=True)):
            yield from differences(*pair, f"{place}[{number}]", same, in_full=in_full)
    elif not same(one, other):
        yield place, one, other
