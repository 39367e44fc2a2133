"""Values for requests: new ones that no record has, and those at each limit of a schema and just
beyond it.
"""

from collections.abc import Iterable, Iterator
from copy import deepcopy
from itertools import chain, count
from random import Random
from string import ascii_lowercase, digits
from typing import Any, NamedTuple
from uuid import uuid4

from ...contract.pointers import below
from ...contract.source import Json, fixture
from ...core.record import Body
from ...domain.cpf import cpf_with_check_digits
from ...domain.documents import cnpj_with_check_digits, normalise
from ...server.explain.mending import Mender
from .catalogue import Steps, at, with_leaves

NOWHERE = "https://verify.invalid/"
_LETTERS = ascii_lowercase + digits
GONE = object()
"""In place of the value of a member that is left out."""
_OTHER: Body = fixture("verify.yaml")["others"]
"""A value of another type, by type."""
_TEXTS: dict[str, list[str]] = fixture("verify.yaml")["texts"]
"""What members of addresses and telephones may be."""
_SIGNS = 'João & "Conceição" <Cia>'
_BOUNDS = ("minLength", "minItems", "minimum", "maxLength", "maxItems", "maximum")
_LONGEST = 20_000
_LATER = "2037-01-01T00:00:00.000Z"  # by any clock that a target may have
_SOME_ID = "00000000-0000-4000-8000-000000000000"
_DEEPEST = 3
BOUND = ("type", "document_type", "name", "sku", "url")
"""Members of which a rule accepts a value only beside a document of that kind, or only once."""
CNPJ = 14  # characters
UNKNOWN_ID = str(uuid4())
"""The id of no record."""


class Variant(NamedTuple):
    """A value of the member at a place, what it tries, the pointer to the rule, and whether the
    schema accepts it. If a backend accepts it that should not, `suspect` is the class of that.
    """

    value: Any
    tries: str
    pointer: str = ""
    place: Steps = ()
    is_accepted: bool = False
    suspect: str = ""

    def overlaps(self, other: "Variant") -> bool:
        """Whether one of the places is in the other."""
        return self.place[: len(other.place)] == other.place[: len(self.place)]


class Variants:
    """Makes values for some journeys: new ones, and variants of bodies and parameters from the
    schemas of the contract.
    """

    def __init__(self, mender: Mender, run: str, seed: str) -> None:
        """`run` differs from run to run, so that runs with one seed do not collide."""
        self._mender, self._resolve = mender, mender.resolve
        self._random, self._run = Random(f"{run}/{seed}"), run
        self._singles = count(self._random.randrange(len(_LETTERS)))
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
        """A valid CPF, whose first digit a number would lose, or a CNPJ in place of another one."""
        if len(normalise(like)) == CNPJ:
            return cnpj_with_check_digits(self.text(12, digits))
        return cpf_with_check_digits("0" + self.text(8, digits))

    def value(self, member: str, like: str = "") -> str | None:
        """A new value for a member that must be unique, or must reach nobody; None for
        other members.
        """
        name = f"{self.tag}-{self.text(6)}"
        match member:
            case "document":
                return self.document(like)
            case "email":
                return f"{name}@example.com"
            case "name" | "sku":
                return name
            case "url":
                return NOWHERE + name
        return None

    def is_own(self, value: Any) -> bool:
        """Whether a value is of this run."""
        return f"verify-{self._run}" in str(value)

    def accepts(self, schema: Json, value: Any) -> bool:
        """Whether a schema of a request accepts a value."""
        return self._mender.accepts(schema, with_leaves(value, _named))

    # -- a body at each limit and just beyond it

    def of_body(self, schema: Json, pointer: str, base: Any) -> Iterator[Variant]:
        """Values of each member of a body, and of the objects in it."""
        root = self._resolve(schema)
        if root.get("additionalProperties") is False:
            rule = below(pointer, "additionalProperties")
            yield Variant(1, "a member that is not known", rule, ("verify_unknown",))
        for place, where, node, is_required in self._leaves(root, pointer, ()):
            left_out = [Variant(GONE, "left out", suspect="incomplete")] if is_required else []
            for each in chain(left_out, self._tries(node, at(base, place))):
                tried = self._placed(each, node, where, place)
                changed = applied(base, [tried])
                is_accepted = tried.suspect != "reference" and self.accepts(schema, changed)
                # which of these texts a pattern excludes only it knows
                if changed != base and not (is_accepted and each.pointer == "pattern"):
                    yield tried._replace(is_accepted=is_accepted)

    def groups(self, accepted: Iterable[Variant]) -> list[list[Variant]]:
        """As few bodies as have each of the values: those of a group go together in one."""
        groups: list[list[Variant]] = []
        for part in sorted(accepted, key=lambda part: part.place[-1] in BOUND):
            for group in groups:
                if part.place[-1] not in BOUND and not any(map(part.overlaps, group)):
                    group.append(part)
                    break
            else:
                groups.append([part])
        return groups

    def of_parameter(
        self, name: str, schema: Json, pointer: str, more: Iterable[Any]
    ) -> Iterator[Variant]:
        """Values of one parameter of a query, and `more` of them."""
        node = self._resolve(schema)
        if node.get("type") == "array":  # it is sent once
            node = self._resolve(node["items"])
        for each in (*self._tries(node, None), *(Variant(value, str(value)) for value in more)):
            is_text = isinstance(each.value, str) or node.get("type") != "string"
            if is_text and each.value not in (None, "") and not isinstance(each.value, list | dict):
                is_accepted = self.accepts(node, each.value)
                yield self._placed(each, node, pointer, (name,))._replace(is_accepted=is_accepted)

    def _placed(self, tried: Variant, node: Json, pointer: str, place: Steps) -> Variant:
        """A value of a member at a place, whose schema is at a pointer."""
        rule = below(pointer, tried.pointer) if tried.pointer in node else pointer
        tries = f"{'.'.join(place)}: {tried.tries}"
        return tried._replace(tries=tries, pointer=rule, place=place)

    def _leaves(
        self, root: Json, pointer: str, above: Steps
    ) -> Iterator[tuple[Steps, str, Json, bool]]:
        """Place, pointer and schema of each member, and whether its object must have it."""
        for name, inner in root.get("properties", {}).items():
            where, node = below(pointer, "properties", name), self._resolve(inner)
            yield (*above, name), where, node, name in root.get("required", ())
            if node.get("type") == "object" and len(above) < _DEEPEST:
                yield from self._leaves(node, where, (*above, name))

    def _tries(self, node: Json, usual: Any) -> Iterator[Variant]:
        """Values of a schema, in place of a `usual` one: all that it lists, at its limits, and
        just beyond them. Each has the keyword that decides about it in place of a pointer.
        """
        kind, form = node.get("type", ""), node.get("format", "")
        options = self.options(node)
        for option in options:
            yield Variant(option, f"the value {option}", "enum")
        if kind:
            yield Variant(_OTHER[kind], f"another type than {kind}")
        if options and kind != "boolean":
            yield Variant("verify-unknown", "a value that is not listed", "enum")
        yield from self._bounds(node, usual)
        if kind == "array":
            yield from self._lists(node)
        if isinstance(node.get("additionalProperties"), dict):
            yield Variant({}, "no entries")
        if form == "uuid":
            yield Variant(UNKNOWN_ID, "an id that does not exist", suspect="reference")
        if form == "date-time":
            yield Variant(_LATER.replace("Z", "-03:00"), "an instant with an offset")
        if form:
            yield Variant("verify", f"not a valid {form}", "format")
        if "pattern" in node:
            yield Variant("\0", "text that the pattern excludes", "pattern")
            yield Variant("verify verify", "text that the pattern excludes", "pattern")
        if "multipleOf" in node:
            value = round(node.get("minimum", 0) + 1 + node["multipleOf"] / 2, 6)
            yield Variant(value, f"not a multiple of {node['multipleOf']}", "multipleOf")
        if node.get("maxLength", 0) > len(_SIGNS) and not form:
            yield Variant(_SIGNS, "accents and signs")
        # last, so that a record has had a value that these clear
        if "maxLength" in node and "minLength" not in node and not form:
            yield Variant("", "an empty text")
        if kind:
            yield Variant(None, "null")

    def options(self, node: Json) -> list[Any]:
        """The values that a schema lists."""
        if node.get("type") == "boolean":
            return [True, False]
        parts = [node, *map(self._resolve, node.get("oneOf", ()))]
        return [option for part in parts for option in part.get("enum", ()) if option is not None]

    def _bounds(self, node: Json, usual: Any) -> Iterator[Variant]:
        """Values exactly at each least and largest size, and beyond it by one step."""
        for keyword in filter(node.__contains__, _BOUNDS):
            limit, step = node[keyword], node.get("multipleOf", 1)
            beyond = round(limit + step if keyword.startswith("max") else limit - step, 6)
            tries = {f"the {keyword}, {limit}": limit, f"beyond the {keyword}": beyond}
            for what, size in tries.items():
                value = self._sized(node, size, usual)
                if value is not None:
                    yield Variant(value, what, keyword)

    def _sized(self, node: Json, size: Any, usual: Any) -> Any:
        """A number, or a text or list of a size; None where there is none."""
        if node["type"] not in ("string", "array"):
            return size
        if not 0 <= size <= _LONGEST:
            return None
        if node["type"] == "string":
            return self._long(node.get("format"), size)
        several = usual or self._entries(node)
        if not node.get("uniqueItems"):
            several = [each for each in several[:1] if _named(each) == each] * size
            if several and isinstance(several[0], str):  # a backend may keep equal ones once
                stem = several[0].rpartition(".")[0]  # an address, of a network
                several = [f"{stem}.{number}" for number in range(size)]
        return several[:size] if size <= len(several) else None

    def _entries(self, node: Json) -> list[Any]:
        """What may be in a list: all values that the contract lists, or one."""
        items = self._resolve(node["items"])
        return self.options(items) or [*filter(None, [self.another(items, "", None)])]

    def _long(self, form: str | None, length: int) -> str:
        """A text of a length, as its format has it."""
        text = self.text(length)
        if form == "uri":
            return (NOWHERE + text)[:length]
        if form == "email":
            host = "@" + "verify." * (length // 8) + "example.com"
            return text[len(host) :] + host
        return text

    def _lists(self, node: Json) -> Iterator[Variant]:
        several = self._entries(node)
        yield Variant([], "no entries", "minItems")
        if self._resolve(node["items"]).get("format") == "uuid":
            yield Variant([UNKNOWN_ID], "an id that does not exist", suspect="reference")
        if len(several) > 1:
            yield Variant(several[: node.get("maxItems", 20)], "all values")
            yield Variant(["verify-unknown"], "a value that is not listed")
        if node.get("uniqueItems") and several:
            yield Variant(several[:1] * 2, "a duplicate entry", "uniqueItems")

    # -- another value

    def another(self, node: Json, name: str, old: Any) -> Any:
        """A value that a schema accepts, and that is neither `old` nor the default; None if
        there is none.
        """
        node = self._resolve(node)
        if node.get("format") == "uuid":  # it would be the id of a record
            return None
        tries = (each.value for each in self._tries(node, None))
        for value in chain(self._usual(node, name, old), tries):
            if value not in (old, node.get("default"), None) and self.accepts(node, value):
                return value
        return None

    def _usual(self, node: Json, name: str, old: Any) -> Iterator[Any]:
        """Values that no limit suggests."""
        match node.get("type"):
            case "number":
                yield uneven((old or 0) + max(node.get("multipleOf", 1), 1))
            case "array":
                items = self._resolve(node["items"])
                yield [option for option in self.options(items) if option not in (old or ())][:2]
                yield [self.another(items, name, None)]
            case "object" if "properties" in node:
                others = dict(old or node.get("example", {}))
                for inner, schema in node["properties"].items():
                    value = self.another(schema, inner, others.get(inner))
                    if value is not None:
                        others[inner] = value
                yield others
            case "object":
                yield {f"verify_{self.text(4)}": self.text(8)}
            case "string" if "enum" not in node:
                yield from _TEXTS.get(name, ())
                later = _LATER.replace("-01-", "-06-")
                yield from (self.value(name), NOWHERE + self.text(12), self.text(12), later)


def uneven(amount: float) -> float:
    """An amount at least as large, of which a backend loses a cent that cuts off where it should
    round.
    """
    while int(amount * 100) == round(amount * 100):
        amount = round(amount + 0.01, 2)
    return amount


def _named(value: Any) -> Any:
    """An id in place of a role."""
    return _SOME_ID if isinstance(value, str) and value.startswith("{the ") else value


def applied(base: Any, parts: Iterable[Variant]) -> Any:
    """A copy of a body with the values of several parts, where it has the objects for them."""
    body = deepcopy(base)
    for part in parts:
        *above, name = part.place
        holder = at(body, (*above,))
        if not isinstance(holder, dict):
            continue
        if part.value is GONE:
            holder.pop(name, None)
        else:
            holder[name] = part.value
    return body
