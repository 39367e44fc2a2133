"""Mutants that follow from the contract: one for each promise that it makes, each of which departs in that alone."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any
from urllib.parse import parse_qs

from orjson import dumps

from stub_server.contract.document import Document, Operation
from stub_server.contract.source import Json
from stub_server.domain.cpf import cpf_with_check_digits
from stub_server.tools.verify.catalogue import Catalogue, Resource, at
from stub_server.tools.verify.exchange import Answer, Request

from .backend import Act, Ask, as_owner, is_for, json_of, own, rewritten, with_body, with_json, without_query
from .mutants import Mutant

Path = tuple[str, ...]
_BOUNDS = ("minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems")
_UNKNOWN = "ffffffff-ffff-4fff-8fff-ffffffffffff"
_GONE = object()
_random = Random(1)


def generated(document: Document) -> dict[str, Mutant]:
    """All of them by name, which has what departs and the operation."""
    found: dict[str, Mutant] = {}
    for name, kinds, operation, make in _all(Catalogue(document)):
        found[name] = Mutant(name, frozenset(kinds.split()), frozenset((operation,)), make)
    return found


def _all(catalogue: Catalogue) -> Iterator[tuple[str, str, str, Callable[[], Act]]]:
    document = catalogue.document
    for resource in catalogue.resources.values():
        writers = [*resource.creates, *([resource.update] if resource.update else [])]
        for operation in writers:
            for path in shown_members(catalogue, resource, operation):
                member = ".".join(path)
                lost = initial(document, document.schema(resource.schema), path)
                yield (
                    f"drops {operation.id} {member}",
                    "not-persisted schema" if lost is _GONE else "not-persisted",
                    operation.id,
                    _loses(resource, operation, path, lost, catalogue),
                )
                if operation is resource.update:
                    yield (
                        f"keeps {operation.id} {member}",
                        "not-persisted",
                        operation.id,
                        _loses(resource, operation, path, None, catalogue),
                    )
            for key in document.unique.get(resource.schema, ()):
                if key.code and len(key.members) == 1:
                    yield (
                        f"shares {operation.id} {key.members[0]}",
                        "uniqueness",
                        operation.id,
                        _shares(operation, key.members[0], key.code, exact=True, catalogue=catalogue),
                    )
                    for ignored in key.ignores:
                        yield (
                            f"spells {operation.id} {key.members[0]} {ignored}",
                            "uniqueness",
                            operation.id,
                            _shares(
                                operation, key.members[0], key.code, exact=False, catalogue=catalogue, ignored=ignored
                            ),
                        )
        yield from _moves(catalogue, resource)
    for operation in document.operations.values():
        if catalogue.entries_at(operation):
            for parameter in operation.parameters:
                if parameter.place != "query" or parameter.name in ("page", "limit"):
                    continue
                if parameter.name != "sort":
                    yield (
                        f"ignores {operation.id} {parameter.name}",
                        "filter",
                        operation.id,
                        _ignores(operation, parameter.name),
                    )
                    continue
                schema = document.resolve(parameter.schema)
                for option in schema["enum"]:
                    other = option[1:] if option.startswith("-") else f"-{option}"
                    yield f"missorts {operation.id} {option}", "sort", operation.id, _missorts(operation, option, other)
        if operation.scopes:
            yield f"opens {operation.id}", "scope", operation.id, _opens(operation)
        schema = catalogue.body(operation)
        if schema is not None:
            for path, node, is_required in members(document, schema):
                member = ".".join(path)
                if is_required:
                    yield (
                        f"misses {operation.id} {member}",
                        "laxer",
                        operation.id,
                        _mends(operation, path, "required", 0),
                    )
                for bound in _BOUNDS:
                    if bound in node and not (bound.startswith("min") and node[bound] == 0 and bound != "minimum"):
                        yield (
                            f"exceeds {operation.id} {member} {bound}",
                            "laxer",
                            operation.id,
                            _mends(operation, path, bound, node[bound]),
                        )
                        yield (
                            f"narrows {operation.id} {member} {bound}",
                            "stricter",
                            operation.id,
                            _narrows(operation, path, bound, node[bound]),
                        )
        for parameter in operation.parameters:
            node = document.resolve(parameter.schema)
            for bound in _BOUNDS:
                if parameter.place == "query" and bound in node and node[bound]:
                    yield (
                        f"exceeds {operation.id} ?{parameter.name} {bound}",
                        "laxer",
                        operation.id,
                        _mends_query(operation, parameter.name, bound, node[bound]),
                    )
                    yield (
                        f"narrows {operation.id} ?{parameter.name} {bound}",
                        "stricter",
                        operation.id,
                        _narrows_query(operation, parameter.name, bound, node[bound]),
                    )
        for status, response in operation.responses.items():
            for code in response.codes:
                yield (
                    f"renames {operation.id} {status} {code}",
                    "error-code",
                    operation.id,
                    _renames(operation, status, code),
                )


# -- what the contract says of bodies and records


def members(document: Document, schema: Json, above: Path = ()) -> Iterator[tuple[Path, Json, bool]]:
    """The members of a body, also of objects in it: place, schema, and whether its object must have it."""
    for name, inner in schema.get("properties", {}).items():
        node = document.resolve(inner)
        yield (*above, name), node, name in schema.get("required", ())
        if node.get("type") == "object" and len(above) < 2:
            yield from members(document, node, (*above, name))


def shown_members(catalogue: Catalogue, resource: Resource, operation: Operation) -> list[Path]:
    """The optional members of a body that the record shows."""
    document = catalogue.document
    found = []
    for path, _, is_required in members(document, catalogue.body(operation) or {}):
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


def has(body: Any, path: Path) -> bool:
    return path[-1] in (at(body, path[:-1]) or {}) if isinstance(at(body, path[:-1]), dict) else False


class Shown:
    """What records show in place of what is stored, by id."""

    def __init__(self, path: Path) -> None:
        self._path, self.instead, self.seen = path, dict[str, Any](), dict[str, Any]()

    def look(self, answer: Answer) -> None:
        """Remember what records had before."""

        def note(it: Json) -> Json:
            if isinstance(it.get("id"), str) and has(it, self._path):
                self.seen[it["id"]] = at(it, self._path)
            return it

        rewritten(answer, note)

    def show(self, answer: Answer) -> Answer:
        def change(it: Json) -> Json:
            if it.get("id") in self.instead:
                put(it, self._path, self.instead[it["id"]])
            return it

        return rewritten(answer, change) if self.instead and answer.status < 300 else answer


def _record(catalogue: Catalogue, operation: Operation, answer: Answer) -> Json:
    place = catalogue.record_at(operation)
    return at(json_of(answer), place[0]) if place else {}


# -- acts


def _loses(resource: Resource, operation: Operation, path: Path, lost: Any, catalogue: Catalogue) -> Callable[[], Act]:
    """A member is not stored: it is `lost` from then on, or (None, of an update) what it was before."""
    keeps = lost is None and operation is resource.update
    writers = [*resource.creates, *([resource.update] if resource.update else [])]

    def make() -> Act:
        shown = Shown(path)

        async def act(request: Request, ask: Ask) -> Answer:
            answer = await ask(request)
            writer = next((each for each in writers if is_for(request, each.method, each.path)), None)
            if writer is None or answer.status >= 300:
                answer_ = shown.show(answer)
                shown.look(answer)
                return answer_
            ident = _record(catalogue, writer, answer)["id"]
            if has(json_of(request), path):
                shown.instead.pop(ident, None)
                if writer is operation:
                    before = shown.seen.get(ident, _GONE)
                    shown.instead[ident] = before if keeps else lost
            shown.look(answer)
            return shown.show(answer)

        return act

    return make


def _shares(
    operation: Operation, member: str, code: str, *, exact: bool, catalogue: Catalogue, ignored: str = ""
) -> Callable[[], Act]:
    """A second record may have the value, or the value in another spelling."""

    def make() -> Act:
        shown, sent = Shown((member,)), set[str]()

        async def act(request: Request, ask: Ask) -> Answer:
            answer = await ask(request)
            body = json_of(request)
            value = body.get(member) if isinstance(body, dict) else None
            if not isinstance(value, str):
                return shown.show(answer)
            if is_for(request, operation.method, operation.path) and json_of(answer).get("code") == code:
                spelled = {
                    "punctuation": any(char in value for char in ".-"),
                    "blanks": value != " ".join(value.split()),
                    "case": value.upper() == value and value != value.lower(),
                }
                is_new = value not in sent and spelled.get(ignored, False)
                if exact or is_new:
                    answer = await ask(with_json(request, body | {member: _fresh(member, value)}))
                    if answer.status < 300:
                        shown.instead[_record(catalogue, operation, answer)["id"]] = value
            elif answer.status < 300:
                sent.add(value)
            return shown.show(answer)

        return act

    return make


def _fresh(member: str, value: Any) -> Any:
    if member == "document":
        return cpf_with_check_digits("".join(_random.choices("0123456789", k=9)))
    if member in ("name", "sku"):
        return f"{value[:40]}{_random.randrange(10**9)}"
    if member == "url":
        return f"{value[:60]}{_random.randrange(10**9)}"
    return value


def _ignores(operation: Operation, name: str) -> Callable[[], Act]:
    async def act(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        if is_for(request, "GET", operation.path) and answer.status == 200:
            return await ask(without_query(request, name))
        return answer

    return lambda: act


def _missorts(operation: Operation, option: str, other: str) -> Callable[[], Act]:
    async def act(request: Request, ask: Ask) -> Answer:
        if is_for(request, "GET", operation.path) and parse_qs(request.query).get("sort") == [option]:
            return await ask(without_query(request, "sort", ("sort", other)))
        return await ask(request)

    return lambda: act


def _opens(operation: Operation) -> Callable[[], Act]:
    async def act(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        if is_for(request, operation.method, operation.path) and json_of(answer).get("code") == "insufficient_scope":
            return await ask(await as_owner(request, ask))
        return answer

    return lambda: act


def _renames(operation: Operation, status: int, code: str) -> Callable[[], Act]:
    async def act(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        if (
            is_for(request, operation.method, operation.path)
            and answer.status == status
            and json_of(answer).get("code") == code
        ):
            return with_body(answer, dumps(json_of(answer) | {"code": "renamed_code"}))
        return answer

    return lambda: act


def _beyond(value: Any, bound: str, limit: Any) -> bool:
    """Whether a value exceeds a bound."""
    size = len(value) if bound.endswith(("Length", "Items")) and isinstance(value, str | list) else value
    if not isinstance(size, int | float) or isinstance(size, bool) or (size is value and "imum" not in bound):
        return False
    return bool(size < limit if bound.startswith("min") else size > limit)


def _is_at(value: Any, bound: str, limit: Any) -> bool:
    size = len(value) if bound.endswith(("Length", "Items")) and isinstance(value, str | list) else value
    return isinstance(size, int | float) and not isinstance(size, bool) and size == limit


def _mends(operation: Operation, path: Path, rule: str, limit: Any) -> Callable[[], Act]:
    """A body that breaks one rule is accepted, with a value that was accepted before in that place."""

    def make() -> Act:
        good: dict[str, Any] = {}

        async def act(request: Request, ask: Ask) -> Answer:
            body = json_of(request)
            if not is_for(request, operation.method, operation.path) or not isinstance(body, dict):
                return await ask(request)
            holder = at(body, path[:-1])
            is_broken = isinstance(holder, dict) and (
                path[-1] not in holder if rule == "required" else _beyond(holder.get(path[-1]), rule, limit)
            )
            if is_broken and good:
                put(body, path, _fresh(path[-1], good["value"]))
                return await ask(with_json(request, body))
            answer = await ask(request)
            if answer.status < 300 and has(body, path):
                good["value"] = at(body, path)
            return answer

        return act

    return make


def _narrows(operation: Operation, path: Path, bound: str, limit: Any) -> Callable[[], Act]:
    async def act(request: Request, ask: Ask) -> Answer:
        body = json_of(request)
        if (
            is_for(request, operation.method, operation.path)
            and isinstance(body, dict)
            and has(body, path)
            and _is_at(at(body, path), bound, limit)
        ):
            put(body, path, {"verify": []} if not isinstance(at(body, path), dict) else 5)
            return await ask(with_json(request, body))
        return await ask(request)

    return lambda: act


def _queried(request: Request, name: str, bound: str) -> Any:
    found = parse_qs(request.query).get(name, [""])[0]
    return int(found) if bound.endswith("imum") and found.isdecimal() else found


def _mends_query(operation: Operation, name: str, bound: str, limit: Any) -> Callable[[], Act]:
    async def act(request: Request, ask: Ask) -> Answer:
        if is_for(request, operation.method, operation.path) and _beyond(_queried(request, name, bound), bound, limit):
            return await ask(without_query(request, name))
        return await ask(request)

    return lambda: act


def _narrows_query(operation: Operation, name: str, bound: str, limit: Any) -> Callable[[], Act]:
    async def act(request: Request, ask: Ask) -> Answer:
        if is_for(request, operation.method, operation.path) and _is_at(_queried(request, name, bound), bound, limit):
            return await ask(without_query(request, "limit", ("limit", "none")))
        return await ask(request)

    return lambda: act


# -- moves


def _moves(catalogue: Catalogue, resource: Resource) -> Iterator[tuple[str, str, str, Callable[[], Act]]]:
    lifecycle = resource.lifecycle
    if lifecycle is None:
        return
    for operation in catalogue.document.operations.values():
        if f"{{{resource.key}}}" not in operation.path:
            continue
        legal = [(m.from_, m.to) for m in lifecycle.moves if operation.id in m.by]
        for start, end in legal:
            yield (
                f"refuses {operation.id} {start} {end}",
                "lifecycle stricter",
                operation.id,
                _refuses(catalogue, resource, operation, start, end),
            )
        ends = {end for _, end in legal} - {"deleted"}
        for start in lifecycle.states:
            for end in ends:
                if legal and (start, end) not in legal and start != end and resource.key == "projectId":
                    yield (
                        f"allows {operation.id} {start} {end}",
                        "lifecycle",
                        operation.id,
                        _allows(catalogue, resource, operation, start, end),
                    )


def _state(value: Any) -> Any:
    return {True: "active", False: "inactive"}.get(value, value)


def _end_of(request: Request, field: str) -> Any:
    body = json_of(request)
    return _state(body.get(field)) if isinstance(body, dict) and field in body else None


def _refuses(catalogue: Catalogue, resource: Resource, operation: Operation, start: str, end: str) -> Callable[[], Act]:
    def make() -> Act:
        assert resource.lifecycle is not None
        field = resource.lifecycle.field
        shown = Shown((field,))
        folder = operation.path.partition("{")[0]

        async def act(request: Request, ask: Ask) -> Answer:
            if is_for(request, operation.method, operation.path):
                ident = request.path.removeprefix(folder).partition("/")[0]
                wanted = _end_of(request, field)
                is_move = wanted == end or field not in (catalogue.body(operation) or {}).get("properties", {})
                if _state(shown.seen.get(ident)) == start and is_move:
                    answer = await ask(request._replace(path=request.path.replace(ident, _UNKNOWN)))
                    body = json_of(answer) | {"status": 409, "code": "invalid_state_transition"}
                    return with_body(answer._replace(status=409), dumps(body)) if answer.status == 404 else answer
            answer = await ask(request)
            shown.look(answer)
            return answer

        return act

    return make


def _allows(catalogue: Catalogue, resource: Resource, operation: Operation, start: str, end: str) -> Callable[[], Act]:
    def make() -> Act:
        assert resource.lifecycle is not None
        assert resource.read is not None
        field, read = resource.lifecycle.field, resource.read
        shown = Shown((field,))
        folder = operation.path.partition("{")[0]

        async def act(request: Request, ask: Ask) -> Answer:
            answer = await ask(request)
            if is_for(request, operation.method, operation.path) and answer.status == 409:
                ident = request.path.removeprefix(folder).partition("/")[0]
                wanted = _end_of(request, field)
                if (
                    shown.seen.get(ident) == start
                    and wanted in (None, end)
                    and (wanted or field not in (catalogue.body(operation) or {}).get("properties", {}))
                ):
                    shown.instead[ident] = end
                    said = await ask(await as_owner(own("GET", read.path.replace(f"{{{resource.key}}}", ident)), ask))
                    answer = said
            shown.look(answer)
            return shown.show(answer)

        return act

    return make
