"""Values for requests: new ones that no record has, and those at each limit of a schema and just beyond it."""

from collections.abc import Iterator, Mapping
from random import Random
from string import ascii_lowercase, digits
from typing import Any, NamedTuple

from ..contract.document import Document
from ..contract.formats import Formats
from ..contract.schema import Schemas
from ..contract.source import Json
from ..domain.documents import cpf_with_check_digits
from ..explain.mending import Mender, samples
from .catalogue import Places, at, below, with_leaves

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
_LONGEST = 20_000
_SOME_ID = "00000000-0000-4000-8000-000000000000"
_DEEPEST = 3


class Fresh:
    """Draws new values for one journey. `run` differs from run to run, so that runs with one seed do not collide."""

    def __init__(self, run: str, seed: int, journey: str) -> None:
        self._random = Random(f"{run}/{seed}/{journey}")
        self.tag = f"verify-{run}-{self.text(6)}"
        """Names of the journey's records begin with it, so that lists can be filtered by it."""

    def text(self, length: int) -> str:
        """Letters and digits."""
        return "".join(self._random.choices(_LETTERS, k=length))

    def name(self, most: int = 120) -> str:
        """A name that begins with the tag, if it fits."""
        text_ = f"{self.tag}-{self.text(6)}"
        return text_ if len(text_) <= most else self.text(most)

    def document(self) -> str:
        """A valid CPF."""
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

    def renewed(self, value: Any, kept: frozenset[tuple[str, ...]] = frozenset(), at: tuple[str, ...] = ()) -> Any:
        """The body with new values in such members, except at the places `kept`."""
        if not isinstance(value, Mapping):
            return value
        renewed = {}
        for member, inner in value.items():
            place = (*at, member)
            own = self.value(member) if isinstance(inner, str) and place not in kept else None
            renewed[member] = self.renewed(inner, kept, place) if own is None else own
        if "document" in renewed and "document" in value and (*at, "document") not in kept:
            follows = {(*at, name) for name in ("document_type", "type")} - kept
            renewed = {name: inner for name, inner in renewed.items() if (*at, name) not in follows}
        return renewed


class Variant(NamedTuple):
    """A value, whether the contract accepts it, what it tries, and the pointer to the rule.

    `places` are the members that were changed.
    """

    value: Any
    is_accepted: bool
    tries: str
    pointer: str
    places: frozenset[tuple[str, ...]]


class Variants:
    """Makes variants of bodies and parameters from the schemas of one contract."""

    def __init__(self, document: Document, formats: Formats, now: str) -> None:
        """`now` is an instant (RFC 3339) for members that need one."""
        self._document, self._now = document, now
        self._places, self._mender = Places(document), Mender(document, Schemas(document.raw, formats))

    def accepts(self, schema: Json, value: Any) -> bool:
        """Whether a schema of a request accepts a value."""
        return self._mender.accepts(schema, with_leaves(value, _named))

    def of_body(self, schema: Json, pointer: str, base: Any, fresh: Fresh) -> Iterator[Variant]:
        """Variants of a body that a schema accepts, `base`. The smallest body comes first, then the fullest."""
        pointer, root = self._places.followed(pointer, schema)
        smallest = {name: base[name] for name in root.get("required", ()) if name in base}
        for variant in self._whole(root, pointer, base, smallest):
            if self.accepts(schema, variant.value) is variant.is_accepted:
                yield variant
        base = base if self.accepts(schema, base) else smallest
        for place, node, where in self._members(root, pointer, (), 0):
            for value, is_accepted, tries in self._values(node, at(base, place), fresh):
                changed = replaced_at(base, place, value)
                if changed is not None and self.accepts(schema, changed) is is_accepted:
                    yield Variant(changed, is_accepted, f"{'.'.join(place)}: {tries}", where, frozenset((place,)))

    def of_parameter(self, schema: Json, pointer: str, name: str, fresh: Fresh) -> Iterator[Variant]:
        """Values of one parameter."""
        where, node = self._places.followed(pointer, schema)
        for value, is_accepted, tries in self._values(node, None, fresh):
            if value is None or value is GONE or isinstance(value, (list, dict)):
                continue
            if node.get("type") == "string" and not isinstance(value, str):
                continue  # a parameter is text
            if self.accepts(schema, value) is is_accepted:
                yield Variant(value, is_accepted, f"{name}: {tries}", where, frozenset(((name,),)))

    def _whole(self, root: Json, pointer: str, base: Any, smallest: Any) -> Iterator[Variant]:
        none: frozenset[tuple[str, ...]] = frozenset()
        if smallest or not root.get("minProperties"):
            yield Variant(smallest, True, "only the required members", pointer, none)
        fullest = dict(base)
        for name, inner in root.get("properties", {}).items():
            if name not in fullest:
                value = self.sample(self._document.resolve(inner))
                if value is not None:
                    fullest[name] = value
        yield Variant(fullest, True, "all members", pointer, none)
        for name in root.get("properties", {}):
            if name in fullest and name not in smallest:
                alone = {**smallest, name: fullest[name]}
                where = below(pointer, "properties", name)
                yield Variant(alone, True, f"the required members and {name}", where, none)
        if root.get("additionalProperties") is False:
            yield Variant({**base, _UNKNOWN: 1}, False, "a member that is not known", pointer, none)

    def _members(
        self, root: Json, pointer: str, at: tuple[str, ...], depth: int
    ) -> Iterator[tuple[tuple[str, ...], Json, str]]:
        for name, inner in root.get("properties", {}).items():
            where, node = self._places.followed(below(pointer, "properties", name), inner)
            is_required = name in root.get("required", ())
            yield (*at, name), {**node, "x-required": is_required}, where
            if node.get("type") == "object" and depth < _DEEPEST:
                yield from self._members(node, where, (*at, name), depth + 1)

    def _values(self, node: Json, value: Any, fresh: Fresh) -> Iterator[tuple[Any, bool, str]]:
        """Values of one member: (value, whether it is accepted, what that tries)."""
        kind = node.get("type")
        if node.get("x-required"):
            yield GONE, False, "left out"
        if node.get("nullable"):
            yield None, True, "null"
        elif kind is not None:
            yield None, False, "null"
        if kind in _OTHER:
            yield _OTHER[kind], False, f"another type than {kind}"
        yield from self._of_enum(node)
        if kind == "boolean":
            yield True, True, "true"
            yield False, True, "false"
        if kind == "string" and "enum" not in node:
            yield from self._texts(node, fresh)
        elif kind in ("integer", "number"):
            yield from self._numbers(node)
        elif kind == "array":
            yield from self._lists(node, value)
        elif isinstance(node.get("additionalProperties"), dict):
            yield {}, True, "no entries"
            yield {"": "verify"}, True, "an entry without a name"

    def _of_enum(self, node: Json) -> Iterator[tuple[Any, bool, str]]:
        options = node.get("enum") or [
            option for part in node.get("oneOf", ()) for option in self._document.resolve(part).get("enum", ())
        ]
        for option in options:
            if option is not None:
                yield option, True, f"the value {option}"
        if options:
            yield "verify-unknown", False, "a value that is not listed"

    def _texts(self, node: Json, fresh: Fresh) -> Iterator[tuple[Any, bool, str]]:
        least, most = node.get("minLength", 0), node.get("maxLength")
        is_plain = "format" not in node
        if is_plain and least:
            yield fresh.text(least), True, f"{least} characters"
        if least:
            yield fresh.text(least)[1:], False, f"{least - 1} characters"
        if most is not None and most <= _LONGEST:
            if is_plain:
                yield fresh.text(most), True, f"{most} characters"
            yield self._long(node, most + 1, fresh), False, f"{most + 1} characters"
        if not is_plain:
            yield "verify", False, f"not a valid {node['format']}"
        if "pattern" in node:
            yield "\0", False, "text that the pattern excludes"
            yield "verify verify", False, "text that the pattern excludes"

    def _long(self, node: Json, length: int, fresh: Fresh) -> str:
        if node.get("format") == "uri":
            return ("https://verify.invalid/" + fresh.text(length))[:length]
        if node.get("format") == "email":
            return (fresh.text(length) + "@example.com")[-length:]
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
            yield [several[0]] * (most + 1), False, f"{most + 1} entries"

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
        return next((v for n in nodes for v in samples(n, self._now) if v is not None and self.accepts(node, v)), None)


def _named(value: Any) -> Any:
    """An id in place of a role."""
    return _SOME_ID if isinstance(value, str) and value.startswith("{the ") else value


def replaced_at(base: Any, at: tuple[str, ...], value: Any) -> Any:
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
