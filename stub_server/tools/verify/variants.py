"""Values for requests: new ones that no record has, and those at each limit of a schema and just
beyond it.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from random import Random
from string import ascii_lowercase, digits
from typing import Any, NamedTuple

from ...contract.source import Json
from ...domain.cpf import cpf_with_check_digits
from ...domain.documents import cnpj_with_check_digits, normalise
from ...server.explain.mending import Mender, samples
from .catalogue import Steps, at, below, with_leaves

NOWHERE = "https://verify.invalid/"
_LETTERS = ascii_lowercase + digits
GONE = object()
"""In place of the value of a member that is left out."""
_OTHER = {
    "string": 12345,
    "integer": "many",
    "number": "many",
    "boolean": "perhaps",
    "array": "none",
    "object": "none",
}
"""A value of another type, by type."""
_TEXTS = (
    "SP",
    "RJ",
    "BR",
    "PT",
    "21",
    "11",
    "351",
    "55",
    "912345678",
    "987654321",
    "20040002",
    "01310100",
)
"""Texts that patterns of addresses and telephones accept, two of each kind."""
_LONGEST = 20_000
_SOME_ID = "00000000-0000-4000-8000-000000000000"
_DEEPEST = 3
_UNIQUE = ("name", "sku", "url")
_BOUND = ("type", "document_type")
"""Members of which a rule accepts a value only beside a document of that kind."""
_CNPJ = 14  # characters


class Variant(NamedTuple):
    """A value of the member at a place, what it tries, the pointer to the rule, and whether the
    schema accepts it.
    """

    value: Any
    tries: str
    pointer: str
    place: Steps
    is_accepted: bool


class _Try(NamedTuple):
    """A value, what it tries, and the keyword of the schema that decides about it."""

    value: Any
    tries: str
    keyword: str = ""


class Variants:
    """Makes values for some journeys: new ones, and variants of bodies and parameters from the
    schemas of the contract.
    """

    def __init__(self, mender: Mender, now: str, run: str, seed: str) -> None:
        """`now` is an instant (RFC 3339) for members that need one.

        `run` differs from run to run, so that runs with one seed do not collide.
        """
        self._mender, self._resolve, self._now = mender, mender.resolve, now
        self._random, self._run = Random(f"{run}/{seed}"), run
        self._singles = count(self._random.randrange(len(_LETTERS)))
        self._of_parts: dict[Steps, str] = {}
        self.begin_anew()

    def begin_anew(self) -> None:
        """Draw another tag.

        Names of records begin with it, so that lists can be filtered by it.
        """
        self.tag = f"verify-{self._run}-{self.text(6)}"

    def text(self, length: int, letters: str = _LETTERS) -> str:
        """Letters and digits."""
        if length == 1:  # drawn at random, two of a few dozen are soon the same
            return letters[next(self._singles) % len(letters)]
        return "".join(self._random.choices(letters, k=length))

    def document(self, like: str = "") -> str:
        """A valid CPF, or a CNPJ in place of another one."""
        if len(normalise(like)) == _CNPJ:
            return cnpj_with_check_digits(self.text(12, digits))
        return cpf_with_check_digits(self.text(9, digits))

    def value(self, member: str) -> str | None:
        """A new value for a member that must be unique, or must reach nobody; None for
        other members.
        """
        name = f"{self.tag}-{self.text(6)}"
        match member:
            case "document":
                return self.document()
            case "email":
                return f"{name}@example.com"
            case "name" | "sku":
                return name
            case "url":
                return NOWHERE + name
        return None

    def renewed(self, value: Any, kept: Iterable[Steps] = (), at: Steps = ()) -> Any:
        """The body with new values in such members, except at the places `kept`.

        A part of the body, such as the customer of an order, is always the same: it need not be
        created often.
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
            for name in _BOUND:
                if (*at, name) not in kept:
                    renewed.pop(name, None)
        return renewed

    def with_parts(self, base: Any, parts: Iterable[Variant]) -> Any:
        """A new body with the values of variants, of which a second record may have each."""
        drawn = [part._replace(value=self._redrawn(part)) for part in parts]
        return self.renewed(applied(base, drawn), [part.place for part in drawn])

    def _redrawn(self, part: Variant) -> Any:
        """The value, or a new text of its length; what is refused, no record has."""
        if not part.is_accepted or not isinstance(part.value, str):
            return part.value
        if part.place[-1] == "email" and "@" in part.value:
            local, _, host = part.value.partition("@")
            return f"{self.text(len(local))}@{host}"
        if part.place[-1] not in _UNIQUE:
            return part.value
        size = min(len(part.value), 12)
        return part.value[: len(part.value) - size] + self.text(size)

    def example(self, value: Any) -> Any:
        """An example of the contract as a new record, whose document is of the same kind."""
        kinds = {name: value[name] for name in _BOUND if name in value}
        if "document" in value:
            kinds["document"] = self.document(value["document"])
            if len(kinds["document"]) == _CNPJ:
                kinds |= {"type": "company", "document_type": "cnpj"}
        return self.renewed(value) | kinds

    def accepts(self, schema: Json, value: Any) -> bool:
        """Whether a schema of a request accepts a value."""
        return self._mender.accepts(schema, with_leaves(value, _named))

    def smallest(self, schema: Json, base: Any) -> Any:
        """The required members of a body."""
        required = self._resolve(schema).get("required", ())
        return {name: base[name] for name in required if name in base}

    def fullest(self, schema: Json, base: Any) -> Any:
        """A body with all members that go together."""
        full = dict(base)
        for name, node in self._resolve(schema).get("properties", {}).items():
            value = None if name in full else self.another(node, name, None)
            if value is not None and self.accepts(schema, {**full, name: value}):
                full[name] = value
        return full

    # -- a body at each limit and just beyond it

    def of_body(self, schema: Json, pointer: str, base: Any) -> Iterator[Variant]:
        """Values of each member of a body, and of the objects in it."""
        where, root = schema.get("$ref") or pointer, self._resolve(schema)
        if root.get("additionalProperties") is False:
            yield Variant(
                1, "a member that is not known", where, ("verify_unknown",), is_accepted=False
            )
        for place, inner, node, is_required in self._leaves(root, where, ()):
            tries = self._tries(node, at(base, place))
            for value, what, keyword in [_Try(GONE, "left out"), *tries] if is_required else tries:
                changed = replaced_at(base, place, value)
                if changed is None:
                    continue
                rule = below(inner, keyword) if keyword in node else inner
                is_accepted = self.accepts(schema, changed)
                # which of these texts a pattern excludes only it knows
                if not is_accepted or keyword != "pattern":
                    yield Variant(value, f"{'.'.join(place)}: {what}", rule, place, is_accepted)

    def groups(self, schema: Json, base: Any, accepted: Iterable[Variant]) -> list[list[Variant]]:
        """As few bodies as have each of the values: those of a group go together in one."""
        groups: list[list[Variant]] = []
        alone: list[list[Variant]] = []
        for part in accepted:
            places = [each.place for group in groups for each in group]
            if part.place[-1] in _BOUND and part.place in places:
                alone.append([part])
                continue
            for group in groups:
                if self._go_together(schema, base, [*group, part]):
                    group.append(part)
                    break
            else:
                groups.append([part])
        return groups + alone

    def _go_together(self, schema: Json, base: Any, parts: list[Variant]) -> bool:
        if parts[-1].place in [part.place for part in parts[:-1]]:
            return False
        body = applied(base, parts)
        return all(at(body, part.place) == part.value for part in parts) and self.accepts(
            schema, body
        )

    def of_parameter(self, schema: Json, pointer: str, name: str) -> Iterator[Variant]:
        """Values of one parameter."""
        node = self._resolve(schema)
        for value, what, keyword in self._tries(node, None):
            is_text = node.get("type") != "string" or isinstance(value, str)
            if is_text and value is not None and not isinstance(value, (list, dict)):
                rule = below(pointer, keyword) if keyword in node else pointer
                yield Variant(value, f"{name}: {what}", rule, (name,), self.accepts(schema, value))

    def _leaves(
        self, root: Json, pointer: str, above: Steps
    ) -> Iterator[tuple[Steps, str, Json, bool]]:
        """Place, pointer and schema of each member, and whether its object must have it."""
        for name, inner in root.get("properties", {}).items():
            where, node = (
                inner.get("$ref") or below(pointer, "properties", name),
                self._resolve(inner),
            )
            yield (*above, name), where, node, name in root.get("required", ())
            if node.get("type") == "object" and len(above) < _DEEPEST:
                yield from self._leaves(node, where, (*above, name))

    def _tries(self, node: Json, usual: Any) -> Iterator[_Try]:
        kind = node.get("type")
        if kind is not None:
            yield _Try(None, "null")
            yield _Try(_OTHER[kind], f"another type than {kind}")
        options = self.options(node)
        yield from (_Try(option, f"the value {option}", "enum") for option in options)
        if options:
            yield _Try("verify-unknown", "a value that is not listed", "enum")
        elif kind == "boolean":
            yield _Try(True, "true")
            yield _Try(False, "false")
        elif kind == "string":
            yield from self._texts(node)
        elif kind in ("integer", "number"):
            yield from self._numbers(node)
        elif kind == "array":
            yield from self._lists(node, usual)
        elif isinstance(node.get("additionalProperties"), dict):
            yield _Try({}, "no entries")

    def options(self, node: Json) -> list[Any]:
        """The values that a schema lists."""
        parts = [node, *map(self._resolve, node.get("oneOf", ()))]
        return [option for part in parts for option in part.get("enum", ()) if option is not None]

    def _texts(self, node: Json) -> Iterator[_Try]:
        for keyword, step in (("minLength", -1), ("maxLength", 1)):
            limit = node.get(keyword, 0)
            for length in (limit, limit + step) if 0 < limit <= _LONGEST else ():
                yield _Try(self._long(node.get("format"), length), f"{length} characters", keyword)
        if "format" in node:
            yield _Try("verify", f"not a valid {node['format']}", "format")
        if "pattern" in node:
            yield _Try("\0", "text that the pattern excludes", "pattern")
            yield _Try("verify verify", "text that the pattern excludes", "pattern")

    def _long(self, form: str | None, length: int) -> str:
        """A text of a length, as its format has it."""
        text = self.text(length)
        if form == "uri":
            return (NOWHERE + text)[:length]
        if form == "email":
            host = "@" + ".".join(self.text(50) for _ in range(length // 60)) + ".example.com"
            return text[len(host) :] + host
        return text

    def _numbers(self, node: Json) -> Iterator[_Try]:
        step = node.get("multipleOf", 1)
        for name, word, sign in (("minimum", "below", -1), ("maximum", "above", 1)):
            if name in node:
                yield _Try(node[name], f"the {name}, {node[name]}", name)
                yield _Try(round(node[name] + sign * step, 6), f"{word} the {name}", name)
        if step < 1:
            yield _Try(
                round(node.get("minimum", 0) + 1 + step / 2, 6),
                f"not a multiple of {step}",
                "multipleOf",
            )

    def _lists(self, node: Json, usual: Any) -> Iterator[_Try]:
        items, most = self._resolve(node.get("items", {})), node.get("maxItems", 0)
        options = self.options(items)
        several, entry = options or usual or [], self.another(items, "", None)
        if not several and entry is not None:
            several = [entry]
        least = several[: node.get("minItems", 0)]
        yield _Try([], "no entries", "minItems")
        if least:
            yield _Try(least, f"{len(least)} entries", "minItems")
        if options:
            yield _Try(options[: most or 20], "all values")
            yield _Try(["verify-unknown"], "a value that is not listed")
        if several and node.get("uniqueItems"):
            yield _Try(several[:1] * 2, "a duplicate entry", "uniqueItems")
        elif several and 0 < most <= 200:
            yield _Try(several[:1] * most, f"{most} entries", "maxItems")
            yield _Try(several[:1] * (most + 1), f"{most + 1} entries", "maxItems")

    # -- another value

    def another(self, node: Json, name: str, old: Any) -> Any:
        """A value that a schema accepts and that differs from `old` wherever it can; None if there
        is none.
        """
        node = self._resolve(node)
        for value in self._others(node, name, old):
            if value not in (old, None) and self.accepts(node, value):
                return value
        return None

    def _others(self, node: Json, name: str, old: Any) -> Iterator[Any]:
        kind, form, own = node.get("type"), node.get("format"), self.value(name)
        if form == "uuid":  # it would be the id of a record
            return
        if own is not None and kind == "string":
            yield own
        yield from self.options(node)
        if kind == "boolean":
            yield not old
        elif kind in ("integer", "number"):
            step = max(node.get("multipleOf", 1), 1)
            usual = node.get("minimum", 0) if old is None else old
            yield from (usual + step, usual - step)
        elif kind == "array":
            yield from self._other_lists(node, name, old)
        elif kind == "object":
            yield self._other_object(node, old or {})
        elif form == "uri":
            yield NOWHERE + self.text(12)
        elif form == "date-time":
            yield from (f"{int(self._now[:4]) + years}-06-01T00:00:00.000Z" for years in (1, 2))
        elif kind == "string":
            yield from (self.text(12), *_TEXTS)
        yield from samples(node, self._now)

    def _other_lists(self, node: Json, name: str, old: Any) -> Iterator[Any]:
        items = self._resolve(node.get("items", {}))
        options = self.options(items)
        yield [option for option in options if option not in (old or ())][:2]
        yield from (options[:1], [self.another(items, name, None)], [])

    def _other_object(self, node: Json, old: Mapping[str, Any]) -> Any:
        if not node.get("properties"):
            return {f"verify_{self.text(4)}": self.text(8)}
        others = dict(old)
        for name, inner in node["properties"].items():
            for value in self._others(self._resolve(inner), name, old.get(name)):
                changed = {**others, name: value}
                # a rule may bind members together
                is_accepted = self.accepts(node, changed) if old else self.accepts(inner, value)
                if is_accepted and value not in (old.get(name), None):
                    others = changed
                    break
        return others


def _named(value: Any) -> Any:
    """An id in place of a role."""
    return _SOME_ID if isinstance(value, str) and value.startswith("{the ") else value


def applied(base: Any, parts: Iterable[Variant]) -> Any:
    """A body with the values of several parts; None where one of them has no place."""
    body = base
    for part in parts:
        body = None if body is None else replaced_at(body, part.place, part.value)
    return body


def replaced_at(base: Any, at: Steps, value: Any) -> Any:
    """A copy with another value at a place; None where the place is not there, or nothing
    would change.
    """
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
