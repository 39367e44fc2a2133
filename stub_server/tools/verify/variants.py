"""Values for requests: new ones that no record has, and those at each limit of a schema and just beyond it."""

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from string import ascii_lowercase, digits
from typing import Any, NamedTuple

from ...contract.document import Document
from ...contract.formats import Formats
from ...contract.schema import Schemas
from ...contract.source import Json
from ...domain.documents import cnpj_with_check_digits, cpf_with_check_digits, normalise
from ...server.explain.mending import Mender, samples
from .catalogue import Places, Steps, at, below, with_leaves

NOWHERE = "https://verify.invalid/"
_LETTERS = ascii_lowercase + digits
GONE = object()
"""In place of the value of a member that is left out."""
_UNKNOWN = "verify_unknown"
_OTHER = {
    "string": 12345,
    "integer": "many",
    "number": "many",
    "boolean": "perhaps",
    "array": "none",
    "object": "none",
}
"""A value of another type, by type."""
_KEYWORDS = {
    "minimum": "minimum",
    "maximum": "maximum",
    "multiple": "multipleOf",
    "not listed": "enum",
    "pattern": "pattern",
    "not a valid": "format",
    "duplicate": "uniqueItems",
}
"""Keywords of schemas by words of what a value tries."""
_TEXTS = ("SP", "RJ", "BR", "PT", "21", "11", "351", "55", "912345678", "987654321", "20040002", "01310100")
"""Texts that patterns of addresses and telephones accept, two of each kind."""
_LONGEST = 20_000
_SOME_ID = "00000000-0000-4000-8000-000000000000"
_DEEPEST = 3
_UNIQUE = ("name", "sku", "url")
_CNPJ = 14  # characters


class Variant(NamedTuple):
    """A value, what it tries, and the pointer to the rule. `place` is that of the member that was changed."""

    value: Any
    tries: str
    pointer: str
    place: Steps = ()


class Fresh:
    """Draws new values for some journeys. `run` differs from run to run, so that runs with one seed do not collide."""

    def __init__(self, run: str, seed: int, journey: str) -> None:
        self._random = Random(f"{run}/{seed}/{journey}")
        self._of_parts: dict[Steps, str] = {}
        self.tag = f"verify-{run}-{self.text(6)}"
        """Names of the journeys' records begin with it, so that lists can be filtered by it."""

    def text(self, length: int) -> str:
        """Letters and digits."""
        return "".join(self._random.choices(_LETTERS, k=length))

    def number(self, most: int) -> int:
        """A number from 1."""
        return self._random.randint(1, most)

    def name(self, most: int = 120) -> str:
        """A name that begins with the tag, if it fits."""
        text_ = f"{self.tag}-{self.text(6)}"
        return text_ if len(text_) <= most else self.text(most)

    def document(self, like: str = "") -> str:
        """A valid CPF, or a CNPJ in place of another one."""
        if len(normalise(like)) == _CNPJ:
            return cnpj_with_check_digits("".join(self._random.choices(digits, k=12)))
        return cpf_with_check_digits("".join(self._random.choices(digits, k=9)))

    def value(self, member: str) -> str | None:
        """A new value for a member that must be unique, or must reach nobody; None for other members."""
        match member:
            case "document":
                return self.document()
            case "email":
                return f"{self.tag}-{self.text(6)}@example.com"
            case "name" | "sku":
                return self.name(64)
            case "url":
                return f"{NOWHERE}{self.tag}-{self.text(6)}"
        return None

    def renewed(self, value: Any, kept: frozenset[Steps] = frozenset(), at: Steps = ()) -> Any:
        """The body with new values in such members, except at the places `kept`.

        A part of the body, such as the customer of an order, is always the same: it need not be created often.
        """
        if not isinstance(value, Mapping):
            return value
        renewed = {}
        for member, inner in value.items():
            place = (*at, member)
            own = self.value(member) if isinstance(inner, str) and place not in kept else None
            if own is not None and at:
                own = self._of_parts.setdefault(place, own)
            renewed[member] = self.renewed(inner, kept, place) if own is None else own
        if "document" in renewed and (*at, "document") not in kept:
            follows = {(*at, name) for name in ("document_type", "type")} - kept
            renewed = {name: inner for name, inner in renewed.items() if (*at, name) not in follows}
        return renewed

    def redrawn(self, part: Variant) -> Variant:
        """The part with a new text of the same length, if a second record may not have it."""
        if part.place[-1] not in _UNIQUE or not isinstance(part.value, str):
            return part
        size = min(len(part.value), 12)
        return part._replace(value=part.value[: len(part.value) - size] + self.text(size))

    def example(self, value: Any) -> Any:
        """An example of the contract as a new record, whose document is of the same kind."""
        kinds = {name: value[name] for name in ("type", "document_type") if name in value}
        if "document" in value:
            kinds["document"] = self.document(value["document"])
            if len(kinds["document"]) == _CNPJ:
                kinds |= {"type": "company", "document_type": "cnpj"}
        return self.renewed(value) | kinds


class Leaf(NamedTuple):
    """A member of a body, or of an object in it: its place, its schema, and whether its object must have it."""

    place: Steps
    node: Json
    pointer: str
    is_required: bool


class Variants:
    """Makes variants of bodies and parameters from the schemas of one contract."""

    def __init__(self, document: Document, formats: Formats, now: str) -> None:
        """`now` is an instant (RFC 3339) for members that need one."""
        self._document, self._now = document, now
        self._places, self._mender = Places(document), Mender(document, Schemas(document.raw, formats))

    def accepts(self, schema: Json, value: Any) -> bool:
        """Whether a schema of a request accepts a value."""
        return self._mender.accepts(schema, with_leaves(value, _named))

    def smallest(self, schema: Json, base: Any) -> Any:
        """The required members of a body."""
        required = self._document.resolve(schema).get("required", ())
        return {name: base[name] for name in required if name in base}

    def fullest(self, schema: Json, base: Any) -> Any:
        """A body with all members that go together."""
        full = dict(base)
        for name, inner in self._document.resolve(schema).get("properties", {}).items():
            value = None if name in full else self.sample(self._document.resolve(inner))
            if value is not None and self.accepts(schema, {**full, name: value}):
                full[name] = value
        return full

    def groups(self, schema: Json, pointer: str, base: Any, fresh: Fresh) -> list[list[Variant]]:
        """Values that a schema accepts, as few bodies as have each of them: those of a group go together in one."""
        columns = [
            [Variant(value, f"{'.'.join(leaf.place)}: {tries}", leaf.pointer, leaf.place) for value, tries in accepted]
            for leaf in self.leaves(schema, pointer)
            if leaf.place[-1] != "document"  # each one makes a customer that stays behind
            if (accepted := [(v, tries) for v, is_accepted, tries in self._values(leaf, base, fresh) if is_accepted])
        ]
        groups: list[list[Variant]] = []
        for number in range(max(map(len, columns), default=0)):
            group: list[Variant] = []
            for part in [column[number] for column in columns if number < len(column)]:
                if not _is_bound(part, number) and self._fits(schema, base, [*group, part]):
                    group.append(part)
                elif self._fits(schema, base, [part]):
                    groups.append([part])
            groups.append(group)
        return [group for group in groups if group]

    def _fits(self, schema: Json, base: Any, parts: Sequence[Variant]) -> bool:
        body = applied(base, parts)
        return body is not None and self.accepts(schema, body)

    def refused(self, schema: Json, pointer: str, base: Any, fresh: Fresh) -> Iterator[Variant]:
        """Bodies that a schema refuses, each for one reason."""
        where, root = self._places.followed(pointer, schema)
        if root.get("additionalProperties") is False:
            yield Variant({**base, _UNKNOWN: 1}, "a member that is not known", where)
        for leaf in self.leaves(schema, pointer):
            for value, is_accepted, tries in self._values(leaf, base, fresh):
                changed = None if is_accepted else replaced_at(base, leaf.place, value)
                if changed is not None and not self.accepts(schema, changed):
                    yield Variant(changed, f"{'.'.join(leaf.place)}: {tries}", leaf.pointer, leaf.place)

    def of_parameter(self, schema: Json, pointer: str, name: str, fresh: Fresh) -> Iterator[tuple[Variant, bool]]:
        """Values of one parameter, and whether the schema accepts each."""
        where, node = self._places.followed(pointer, schema)
        for value, is_accepted, tries in self._values(Leaf((), node, where, False), None, fresh):
            if value is None or value is GONE or isinstance(value, (list, dict)):
                continue
            if node.get("type") == "string" and not isinstance(value, str):
                continue  # a parameter is text
            if self.accepts(schema, value) is is_accepted:
                yield Variant(value, f"{name}: {tries}", where, (name,)), is_accepted

    def another(self, node: Json, name: str, old: Any, fresh: Fresh) -> Any:
        """A value of a member that differs from `old` wherever it can; None if there is none."""
        node = self._document.resolve(node)
        candidates = [value for value in self._others(node, name, old, fresh) if value not in (old, None)]
        return next((value for value in candidates if self.accepts(node, value)), None)

    def _others(self, node: Json, name: str, old: Any, fresh: Fresh) -> Iterator[Any]:
        kind, own = node.get("type"), fresh.value(name)
        if own is not None and kind == "string":
            yield own
        yield from self._options(node)
        if kind == "boolean":
            yield from (not old, True)
        elif kind in ("integer", "number"):
            step = node.get("multipleOf", 1)
            usual = old if isinstance(old, (int, float)) else node.get("minimum", 0)
            yield from (usual + max(step, 1), usual - max(step, 1))
        elif kind == "array":
            yield from self._other_lists(node, name, old, fresh)
        elif kind == "object":
            yield self._other_object(node, old if isinstance(old, Mapping) else {}, fresh)
        elif node.get("format") == "uri":
            yield f"{NOWHERE}{fresh.text(12)}"
        elif node.get("format") == "date-time":
            yield f"{int(self._now[:4]) + fresh.number(9)}-06-01T00:00:00.000Z"
        elif kind == "string":
            yield from (fresh.text(12), *_TEXTS)

    def _other_lists(self, node: Json, name: str, old: Any, fresh: Fresh) -> Iterator[Any]:
        items = self._document.resolve(node.get("items", {}))
        if options := [*self._options(items)]:
            held = old if isinstance(old, list) else []
            yield [option for option in options if option not in held][:2]
            yield options[:1]
            yield options[1:2]
        if items.get("format") == "uuid":
            yield []
            return
        inner = self.another(items, name, None, fresh)
        if inner is not None:
            yield [inner]
        yield [self.sample(items)]
        yield []

    def _other_object(self, node: Json, old: Mapping[str, Any], fresh: Fresh) -> Any:
        if not node.get("properties"):
            return {f"verify_{fresh.text(4)}": fresh.text(8)}
        made = dict(old) or self.sample(node) or {}
        for name, inner in node["properties"].items():
            for value in self._others(self._document.resolve(inner), name, made.get(name), fresh):
                if value not in (made.get(name), None) and self.accepts(node, {**made, name: value}):
                    made[name] = value
                    break
        return made

    def leaves(self, schema: Json, pointer: str) -> Iterator[Leaf]:
        """The members of a body and of the objects in it."""
        where, root = self._places.followed(pointer, schema)
        yield from self._leaves(root, where, ())

    def _leaves(self, root: Json, pointer: str, above: Steps) -> Iterator[Leaf]:
        for name, inner in root.get("properties", {}).items():
            where, node = self._places.followed(below(pointer, "properties", name), inner)
            yield Leaf((*above, name), node, where, name in root.get("required", ()))
            if node.get("type") == "object" and len(above) < _DEEPEST:
                yield from self._leaves(node, where, (*above, name))

    def _values(self, leaf: Leaf, base: Any, fresh: Fresh) -> Iterator[tuple[Any, bool, str]]:
        """Values of one member: (value, whether it is accepted, what that tries)."""
        node = leaf.node
        kind = node.get("type")
        if leaf.is_required:
            yield GONE, False, "left out"
        if node.get("nullable"):
            yield None, True, "null"
        elif kind is not None:
            yield None, False, "null"
        if kind in _OTHER:
            yield _OTHER[kind], False, f"another type than {kind}"
        options = [*self._options(node)]
        yield from ((option, True, f"the value {option}") for option in options)
        if options:
            yield "verify-unknown", False, "a value that is not listed"
        if kind == "boolean":
            yield True, True, "true"
            yield False, True, "false"
        elif kind == "string" and "enum" not in node:
            yield from self._texts(node, fresh)
        elif kind in ("integer", "number"):
            yield from self._numbers(node)
        elif kind == "array":
            yield from self._lists(node, at(base, leaf.place))
        elif isinstance(node.get("additionalProperties"), dict):
            yield {}, True, "no entries"
            yield {"": "verify"}, True, "an entry without a name"

    def _options(self, node: Json) -> Iterator[Any]:
        for part in (node, *map(self._document.resolve, node.get("oneOf", ()))):
            yield from (option for option in part.get("enum", ()) if option is not None)

    def _texts(self, node: Json, fresh: Fresh) -> Iterator[tuple[Any, bool, str]]:
        least, most = node.get("minLength", 0), node.get("maxLength")
        is_plain = "format" not in node
        if is_plain and least:
            yield fresh.text(least), True, f"{least} characters"
        if least:
            yield fresh.text(least)[1:], False, f"{least - 1} characters"
        if most is not None and most <= _LONGEST:
            yield self._long(node, most, fresh), True, f"{most} characters"
            yield self._long(node, most + 1, fresh), False, f"{most + 1} characters"
        if not is_plain:
            yield "verify", False, f"not a valid {node['format']}"
        if "pattern" in node:
            yield "\0", False, "text that the pattern excludes"
            yield "verify verify", False, "text that the pattern excludes"

    def _long(self, node: Json, length: int, fresh: Fresh) -> str:
        if node.get("format") == "uri":
            return (NOWHERE + fresh.text(length))[:length]
        if node.get("format") == "email":
            host = "@" + ".".join(fresh.text(50) for _ in range(length // 60)) + ".example.com"
            return fresh.text(length - len(host)) + host if length > len(host) else fresh.text(length)
        return fresh.text(length)

    def _numbers(self, node: Json) -> Iterator[tuple[Any, bool, str]]:
        step = node.get("multipleOf", 1)
        for name, sign in (("minimum", -1), ("maximum", 1)):
            if name in node:
                limit = node[name]
                yield limit, True, f"the {name}, {limit}"
                yield round(limit + sign * step, 6), False, f"{'below' if sign < 0 else 'above'} the {name}"
        if step < 1:
            yield round(node.get("minimum", 0) + 1 + step / 2, 6), False, f"not a multiple of {step}"

    def _lists(self, node: Json, value: Any) -> Iterator[tuple[Any, bool, str]]:
        items = self._document.resolve(node.get("items", {}))
        options = items.get("enum", [])
        several = [*options] or (value if isinstance(value, list) else [])
        least, most = node.get("minItems", 0), node.get("maxItems")
        yield [], not least, "no entries"
        if options:
            yield options[: most or 20], True, "all values"
            yield ["verify-unknown"], False, "a value that is not listed"
        if node.get("uniqueItems") and several:
            yield [several[0], several[0]], False, "a duplicate entry"
        if most is not None and several and not node.get("uniqueItems") and most <= 200:
            yield [several[0]] * most, True, f"{most} entries"
            yield [several[0]] * (most + 1), False, f"{most + 1} entries"

    def sized(self, node: Json, size: Any, like: Any, fresh: Fresh) -> Any:
        """A value of a size that a schema accepts, or None. A list has entries such as `like` has."""
        value = size
        if node.get("type") == "string":
            value = fresh.text(size)
        elif node.get("type") == "array":
            items = [*self._options(self._document.resolve(node.get("items", {})))]
            value = items[:size] if items else (like or [])[:1] * size
        return value if self.accepts(node, value) else None

    def sample(self, node: Json) -> Any:
        """A value that a schema accepts, or None. Ids of records are left out."""
        if node.get("format") == "uuid":
            return None
        if node.get("type") == "object":
            made = {name: self.sample(self._document.resolve(s)) for name, s in node.get("properties", {}).items()}
            value: Any = {name: inner for name, inner in made.items() if inner is not None}
            return value if self.accepts(node, value) else None
        if node.get("type") == "array":
            inner = self.sample(self._document.resolve(node.get("items", {})))
            return [] if inner is None else [inner]
        nodes = [node, *(self._document.resolve(part) for part in node.get("oneOf", ()))]
        return next((v for n in nodes for v in samples(n, self._now) if v is not None and self.accepts(n, v)), None)


def _named(value: Any) -> Any:
    """An id in place of a role."""
    return _SOME_ID if isinstance(value, str) and value.startswith("{the ") else value


def _is_bound(part: Variant, number: int) -> bool:
    """Whether a rule may refuse a value together with others: a document is of one kind and type."""
    name = part.place[-1]
    return part.value == {"": "verify"} or (name in ("type", "document_type") and number > 0)


def keyword_of(tries: str, node: Json) -> str:
    """The keyword of a schema at whose limit, or beyond it, a value is; empty where there is none."""
    tries = tries.rpartition(": ")[2]
    size = next(iter(tries.split()), "")
    for ending, least, most in (("characters", "minLength", "maxLength"), ("entries", "minItems", "maxItems")):
        if tries.endswith(ending):
            found = most if size.isdecimal() and int(size) >= node.get(most, int(size) + 1) else least
            return found if found in node else ""
    for text, keyword in _KEYWORDS.items():
        if text in tries and keyword in node:
            return keyword
    return ""


def size_of(value: Any) -> Any:
    """The length of a text or list, and any other value itself."""
    return len(value) if isinstance(value, (str, list)) else value


def applied(base: Any, parts: Sequence[Variant]) -> Any:
    """A body with the values of several parts; None where one of them has no place."""
    body = base
    for part in parts:
        body = None if body is None else replaced_at(body, part.place, part.value)
    return body


def replaced_at(base: Any, at: Steps, value: Any) -> Any:
    """A copy with another value at a place; None where the place is not there, or nothing would change."""
    if not isinstance(base, Mapping):
        return None
    copy = dict(base)
    if len(at) > 1:
        inner = replaced_at(copy.get(at[0]), at[1:], value)
        if inner is None:
            return None
        copy[at[0]] = inner
    elif value is GONE:
        if copy.pop(at[0], None) is None:
            return None
    else:
        copy[at[0]] = value
    return copy
