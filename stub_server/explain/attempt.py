"""A request that may succeed: what would be sent, the calls to make first, and how it differs from what was sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import orjson

from .rehearsal import Question

BEFORE = "before"
NOTHING = object()  # as a body: none is sent


class Change(NamedTuple):
    """One difference. `where` is a part of the request, or `before` for a call that is made first."""

    where: str
    from_: Any
    to: Any
    why: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request on its way to one that succeeds. It never changes: repairs make new ones."""

    question: Question
    before: tuple[Question, ...] = ()
    changes: tuple[Change, ...] = field(default=())

    @property
    def body(self) -> Any:
        """The body as JSON; `NOTHING` where there is none, or none that can be read."""
        try:
            return orjson.loads(self.question.body)
        except ValueError:
            return NOTHING

    def member(self, *path: str) -> Any:
        """A member of the body; None where it has none."""
        node = self.body
        for step in path:
            if not isinstance(node, dict):
                return None
            node = node.get(step)
        return None if node is NOTHING else node

    def told(self, changes: Sequence[Change]) -> Attempt:
        """The same with further changes told. One at the same place as an earlier one takes that one's place."""
        kept = list(self.changes)
        for change in changes:
            earlier = next((c for c in kept if c.where == change.where and c.where != BEFORE), None)
            if earlier is not None:
                kept[kept.index(earlier)] = change._replace(from_=earlier.from_, why=earlier.why)
            else:
                kept.append(change)
        return replace(self, changes=tuple(c for c in kept if c.where == BEFORE or c.from_ != c.to))

    def asking(self, *changes: Change, **parts: Any) -> Attempt:
        """With other parts of the request: `method`, `path`, `query`, `headers` or `body` (bytes)."""
        return replace(self, question=self.question._replace(**parts)).told(changes)

    def with_header(self, name: str, value: str, why: str) -> Attempt:
        """With another value of a header; its name is in lower case."""
        shown = "-".join(part.capitalize() for part in name.split("-"))
        change = Change(f"header.{shown}", self.question.headers.get(name), value, why)
        return self.asking(change, headers={**self.question.headers, name: value})

    def with_body(self, body: Any, *changes: Change) -> Attempt:
        """With another body, which is JSON."""
        headers = {**self.question.headers, "content-type": "application/json"}
        return self.asking(*changes, body=orjson.dumps(body), headers=headers)

    def with_member(self, path: Sequence[str], value: Any, why: str) -> Attempt:
        """With another value of one member of the body."""
        body = self.body
        whole = node = dict(body) if isinstance(body, dict) else {}
        for step in path[:-1]:
            inner = node.get(step)
            node[step] = dict(inner) if isinstance(inner, dict) else {}
            node = node[step]
        change = Change(f"body.{'.'.join(path)}", node.get(path[-1]), value, why)
        node[path[-1]] = value
        return self.with_body(whole, change)

    def without_members(self, names: Sequence[str], why: str) -> Attempt:
        """Without some members of the body."""
        body = {name: value for name, value in self.body.items() if name not in names}
        return self.with_body(body, *(Change(f"body.{name}", self.body[name], None, why) for name in names))

    def after(self, call: Question, why: str) -> Attempt:
        """With a call made first."""
        told = Change(BEFORE, None, f"{call.method} {call.path}{' ' + call.body.decode() if call.body else ''}", why)
        return replace(self, before=(*self.before, call)).told((told,))
