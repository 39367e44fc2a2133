"""Mutants that follow from the contract: one for each promise that it makes, each of which departs
in that alone.
"""

from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from orjson import dumps

from stub_server.contract.document import Document, Operation
from stub_server.contract.source import Json
from stub_server.domain.cpf import cpf_with_check_digits
from stub_server.tools.verify.catalogue import Catalogue, Resource, at, is_list, queried, record_of
from stub_server.tools.verify.exchange import Answer, Request

from .backend import (
    Act,
    Ask,
    as_owner,
    is_for,
    json_of,
    own,
    rewritten,
    with_body,
    with_json,
    without_query,
)
from .mutants import Mutant

Path = tuple[str, ...]
Found = Iterator[tuple[str, str, Callable[[], Act]]]
"""What departs and where, the classes by which it may be found, and what makes an act with a memory
of its own.
"""
_BOUNDS = ("minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems")
_UNKNOWN = "ffffffff-ffff-4fff-8fff-ffffffffffff"
_GONE = object()
_random = Random(1)


def generated(document: Document) -> dict[str, Mutant]:
    """All of them by name, which has what departs, the operation, and the place."""
    catalogue = Catalogue(document)
    found: dict[str, Mutant] = {}
    for operation in document.operations.values():
        for departs, kinds, make in _all(catalogue, operation):
            verb, _, place = departs.partition(" ")
            name = f"{verb} {operation.id} {place}".rstrip()
            found[name] = Mutant(name, frozenset(kinds.split()), frozenset((operation.id,)), make)
    return found


def _all(catalogue: Catalogue, operation: Operation) -> Found:
    for resource in catalogue.resources.values():
        if operation in (*resource.creates, resource.update):
            yield from _of_records(catalogue, resource, operation)
        if f"{{{resource.key}}}" in operation.path:
            yield from _moves(catalogue, resource, operation)
    for name, (_, schema) in queried(operation).items() if is_list(operation) else ():
        if name == "sort":
            for option in schema["enum"]:
                yield f"missorts {option}", "sort", partial(_missorts, operation, option)
        elif name not in ("page", "limit"):
            yield f"ignores {name}", "filter", partial(_ignores, operation, name)
    if operation.scopes:
        yield "opens", "scope", partial(_opens, operation)
    yield from _of_bounds(catalogue, operation)
    for status, response in operation.responses.items():
        for code in response.codes:
            yield (
                f"renames {status} {code}",
                "error-code",
                partial(_renames, operation, status, code),
            )


def _of_records(catalogue: Catalogue, resource: Resource, operation: Operation) -> Found:
    document = catalogue.document
    for path in shown_members(catalogue, resource, operation):
        member, loses = ".".join(path), partial(_loses, resource, operation, path)
        lost = initial(document, document.schema(resource.schema), path)
        kinds = "not-persisted schema" if lost is _GONE else "not-persisted"
        yield f"drops {member}", kinds, partial(loses, lost)
        if operation is resource.update:
            yield f"keeps {member}", "not-persisted", loses
    for key in document.unique.get(resource.schema, ()):
        if key.code and len(key.members) == 1:
            member = key.members[0]
            shares = partial(_shares, operation, member, key.code)
            yield f"shares {member}", "uniqueness", shares
            for ignored in key.ignores:
                yield f"spells {member} {ignored}", "uniqueness", partial(shares, ignored)


def _of_bounds(catalogue: Catalogue, operation: Operation) -> Found:
    document = catalogue.document
    slots = [
        (Slot(operation, (f"?{name}",)), document.resolve(node))
        for name, (_, node) in queried(operation).items()
    ]
    for path, node, is_required in members(document, document.resolve(operation.body or {})):
        if is_required:
            yield (
                f"misses {'.'.join(path)}",
                "incomplete",
                partial(_mends, Slot(operation, path), "required", 0),
            )
        slots.append((Slot(operation, path), node))
    for slot, node in slots:
        for bound in _BOUNDS:
            is_void = (
                bound.startswith("min")
                and node.get(bound) == 0
                and (bound != "minimum" or slot.is_query)
            )
            if bound in node and not is_void:
                place = f"{'.'.join(slot.path)} {bound}"
                yield f"exceeds {place}", "laxer", partial(_mends, slot, bound, node[bound])
                yield f"narrows {place}", "stricter", partial(_narrows, slot, bound, node[bound])


# -- what the contract says of bodies and records


def members(
    document: Document, schema: Json, above: Path = ()
) -> Iterator[tuple[Path, Json, bool]]:
    """The members of a body, also of objects in it: place, schema, and whether its object
    must have it.
    """
    for name, inner in schema.get("properties", {}).items():
        node = document.resolve(inner)
        yield (*above, name), node, name in schema.get("required", ())
        if node.get("type") == "object" and len(above) < 2:
            yield from members(document, node, (*above, name))


def shown_members(catalogue: Catalogue, resource: Resource, operation: Operation) -> list[Path]:
    """The optional members of a body that the record shows."""
    document = catalogue.document
    found = []
    for path, _, is_required in members(document, document.resolve(operation.body or {})):
        node = document.schema(resource.schema)
        for step in path:
            node = document.resolve(node.get("properties", {}).get(step, {}))
        if node and (not is_required or operation is resource.update):
            found.append(path)
    return found


def initial(document: Document, schema: Json, path: Path) -> Any:
    """What a record has in place of a member that was never written."""
    for step in path:
        is_required = step in schema.get("required", ())
        schema = document.resolve(schema["properties"][step])
    if "default" in schema:
        return schema["default"]
    if schema.get("nullable"):
        return None
    if schema.get("type") in ("object", "array") and is_required:
        return {} if schema["type"] == "object" else []
    return _GONE


def put(record: Json, path: Path, value: Any) -> None:
    """Set, or remove, the member at a path."""
    holder = at(record, path[:-1])
    if not isinstance(holder, dict):
        return
    if value is _GONE:
        holder.pop(path[-1], None)
    elif path[-1] in holder or value is not None:
        holder[path[-1]] = value


def value_of(body: Any, path: Path) -> Any:
    """The member at a path, or _GONE."""
    holder = at(body, path[:-1])
    return holder.get(path[-1], _GONE) if isinstance(holder, dict) else _GONE


class Shown:
    """What records show in place of what is stored, by id."""

    def __init__(self, path: Path) -> None:
        self._path, self.instead, self.seen = path, dict[str, Any](), dict[str, Any]()

    def look(self, answer: Answer) -> None:
        """Remember what records had before."""

        def note(it: Json) -> Json:
            if isinstance(it.get("id"), str) and value_of(it, self._path) is not _GONE:
                self.seen[it["id"]] = value_of(it, self._path)
            return it

        rewritten(answer, note)

    def show(self, answer: Answer) -> Answer:
        def change(it: Json) -> Json:
            if it.get("id") in self.instead:
                put(it, self._path, self.instead[it["id"]])
            return it

        return rewritten(answer, change) if self.instead and answer.status < 300 else answer


class Slot(NamedTuple):
    """A value in the requests of an operation: a member of the body, or, as `?name`, a parameter of
    the query.
    """

    operation: Operation
    path: Path

    @property
    def is_query(self) -> bool:
        return self.path[0].startswith("?")

    def get(self, request: Request) -> Any:
        """The value, or _GONE."""
        if not is_for(request, self.operation.id):
            return _GONE
        if self.is_query:
            query = parse_qs(request.query, keep_blank_values=True)
            return query.get(self.path[0][1:], [_GONE])[0]
        return value_of(json_of(request), self.path)

    def put(self, request: Request, value: Any) -> Request:
        if self.is_query:
            return without_query(request, self.path[0][1:])
        body = json_of(request)
        put(body, self.path, value)
        return with_json(request, body)


# -- acts


def _loses(resource: Resource, operation: Operation, path: Path, *lost: Any) -> Act:
    """A member is not stored: it is what was `lost` from then on, or else what it was before."""
    shown, writers = Shown(path), [*resource.creates, *filter(None, (resource.update,))]

    async def act(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        writer = next((each for each in writers if is_for(request, each.id)), None)
        if (
            writer is not None
            and answer.status < 300
            and value_of(json_of(request), path) is not _GONE
        ):
            ident = record_of(json_of(answer))["id"]
            shown.instead.pop(ident, None)
            if writer is operation:
                shown.instead[ident] = lost[0] if lost else shown.seen.get(ident, _GONE)
        said = shown.show(answer) if writer is None or answer.status >= 300 else None
        shown.look(answer)
        return said or shown.show(answer)

    return act


def _shares(operation: Operation, member: str, code: str, ignored: str = "") -> Act:
    """A second record may have the value, or only the value in a spelling that differs in
    what is `ignored`.
    """
    shown, sent = Shown((member,)), set[str]()

    async def act(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        body = json_of(request)
        value = body.get(member) if isinstance(body, dict) else None
        if not isinstance(value, str):
            return shown.show(answer)
        if is_for(request, operation.id) and json_of(answer).get("code") == code:
            spelled = {
                "punctuation": any(char in value for char in ".-"),
                "blanks": value != " ".join(value.split()),
                "case": value.upper() == value and value != value.lower(),
            }
            if not ignored or (value not in sent and spelled[ignored]):
                answer = await ask(with_json(request, body | {member: _fresh(member, value)}))
                if answer.status < 300:
                    shown.instead[record_of(json_of(answer))["id"]] = value
        elif answer.status < 300:
            sent.add(value)
        return shown.show(answer)

    return act


def _fresh(member: str, value: Any) -> Any:
    if member == "document":
        return cpf_with_check_digits("".join(_random.choices("0123456789", k=9)))
    return f"{value[:40]}{_random.randrange(10**9)}" if member in ("name", "sku", "url") else value


def _ignores(operation: Operation, name: str) -> Act:
    async def act(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        if is_for(request, operation.id) and answer.status == 200:
            return await ask(without_query(request, name))
        return answer

    return act


def _missorts(operation: Operation, option: str) -> Act:
    other = option[1:] if option.startswith("-") else f"-{option}"

    async def act(request: Request, ask: Ask) -> Answer:
        if is_for(request, operation.id) and parse_qs(request.query).get("sort") == [option]:
            return await ask(without_query(request, "sort", ("sort", other)))
        return await ask(request)

    return act


def _opens(operation: Operation) -> Act:
    async def act(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        if is_for(request, operation.id) and json_of(answer).get("code") == "insufficient_scope":
            return await ask(await as_owner(request, ask))
        return answer

    return act


def _renames(operation: Operation, status: int, code: str) -> Act:
    async def act(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        is_so = is_for(request, operation.id) and answer.status == status
        if is_so and json_of(answer).get("code") == code:
            return with_body(answer, dumps(json_of(answer) | {"code": "renamed_code"}))
        return answer

    return act


def _excess(value: Any, bound: str, limit: Any) -> Any:
    """By how much a value exceeds a bound: 0 exactly at it, None of a value without such a size."""
    size = value
    if bound.endswith(("Length", "Items")):
        size = len(value) if isinstance(value, str | list) else None
    elif isinstance(value, str) and value.isdecimal():
        size = int(value)
    if isinstance(size, bool) or not isinstance(size, int | float):
        return None
    return limit - size if bound.startswith("min") else size - limit


def _mends(slot: Slot, rule: str, limit: Any) -> Act:
    """What breaks one rule is accepted, with a value that was accepted before in its place, or
    without it.
    """
    good: list[Any] = [""] if slot.is_query else []

    async def act(request: Request, ask: Ask) -> Answer:
        value = slot.get(request)
        is_asked = is_for(request, slot.operation.id)
        is_broken = value is _GONE if rule == "required" else (_excess(value, rule, limit) or 0) > 0
        if is_asked and is_broken and good:
            return await ask(slot.put(request, _fresh(slot.path[-1], good[-1])))
        answer = await ask(request)
        if answer.status < 300 and value is not _GONE:
            good.append(value)
        return answer

    return act


def _narrows(slot: Slot, bound: str, limit: Any) -> Act:
    """A value exactly at a bound is refused."""

    async def act(request: Request, ask: Ask) -> Answer:
        value = slot.get(request)
        if _excess(value, bound, limit) != 0:
            return await ask(request)
        if slot.is_query:
            return await ask(without_query(request, "limit", ("limit", "none")))
        return await ask(slot.put(request, 5 if isinstance(value, dict) else {"verify": []}))

    return act


# -- moves


def _moves(catalogue: Catalogue, resource: Resource, operation: Operation) -> Found:
    lifecycle = resource.lifecycle
    legal = (
        [(move.from_, move.to) for move in lifecycle.moves if operation.id in move.by]
        if lifecycle
        else []
    )
    for start, end in legal:
        yield (
            f"refuses {start} {end}",
            "lifecycle stricter",
            partial(_refuses, catalogue, resource, operation, start, end),
        )
    if lifecycle is None or resource.key != "projectId":
        return
    for start in lifecycle.states:
        for end in {end for _, end in legal} - {"deleted", start}:
            if (start, end) not in legal:
                yield (
                    f"allows {start} {end}",
                    "lifecycle",
                    partial(_allows, catalogue, resource, operation, start, end),
                )


class Move(NamedTuple):
    """A request that moves a record: its id, and the state that it names, or None."""

    ident: str
    end: Any


def _state(value: Any) -> Any:
    return {True: "active", False: "inactive"}.get(value, value)


def _move(request: Request, operation: Operation, field: str) -> Move:
    body = json_of(request)
    end = _state(body.get(field)) if isinstance(body, dict) else None
    return Move(request.path.removeprefix(operation.path.partition("{")[0]).partition("/")[0], end)


def _names_state(catalogue: Catalogue, operation: Operation, field: str) -> bool:
    schema = catalogue.document.resolve(operation.body or {})
    return field in schema.get("properties", {})


def _refuses(
    catalogue: Catalogue, resource: Resource, operation: Operation, start: str, end: str
) -> Act:
    assert resource.lifecycle is not None
    field, read = resource.lifecycle.field, resource.read
    shown = Shown((field,))

    async def is_hidden(ident: str, request: Request, ask: Ask) -> bool:
        if read is None:
            return False
        path = read.path.replace(f"{{{resource.key}}}", ident)
        return (await ask(request._replace(method="GET", path=path, body=b""))).status >= 400

    async def act(request: Request, ask: Ask) -> Answer:
        move = _move(request, operation, field)
        is_move = move.end == end or not _names_state(catalogue, operation, field)
        is_asked = is_for(request, operation.id)
        if is_asked and is_move and _state(shown.seen.get(move.ident)) == start:
            if await is_hidden(move.ident, request, ask):
                return await ask(request)  # whoever may not see the record is refused as ever
            answer = await ask(request._replace(path=request.path.replace(move.ident, _UNKNOWN)))
            body = json_of(answer) | {"status": 409, "code": "invalid_state_transition"}
            return (
                with_body(answer._replace(status=409), dumps(body))
                if answer.status == 404
                else answer
            )
        answer = await ask(request)
        shown.look(answer)
        return answer

    return act


def _allows(
    catalogue: Catalogue, resource: Resource, operation: Operation, start: str, end: str
) -> Act:
    assert resource.lifecycle is not None
    assert resource.read is not None
    field, read = resource.lifecycle.field, resource.read
    shown = Shown((field,))

    async def act(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        if is_for(request, operation.id) and answer.status == 409:
            move = _move(request, operation, field)
            is_move = move.end == end or (
                move.end is None and not _names_state(catalogue, operation, field)
            )
            if is_move and shown.seen.get(move.ident) == start:
                shown.instead[move.ident] = end
                path = read.path.replace(f"{{{resource.key}}}", move.ident)
                answer = await ask(await as_owner(own("GET", path), ask))
        shown.look(answer)
        return shown.show(answer)

    return act
