"""Lists: what filters find, in which order and in which pages; of records of the journey, or of
whatever there is.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress, pairwise
from typing import Any
from urllib.parse import quote

from ....contract.document import Operation
from ....contract.pointers import below
from ....contract.source import Json
from ....core.record import Body
from ..catalogue import Resource, is_list, part_about, queried, role_of, with_leaves
from ..comparing import folded, is_number
from ..findings import LISTED
from ..probes import FOREIGN, QUIET, SETUP, Seen, placeholder, roles_in
from ..variants import UNKNOWN_ID, Variant, uneven
from ..walking import Walk

_PAGES = ("1", "2")
_TIMES = 8
"""Others may change a list meanwhile: then it is asked for again."""
_SHOWN = 50  # entries of a list that are looked at: fewer than the most of a page
_EACH = 2  # records that are read by their ids
_ALL = {"limit": str(_SHOWN)}
_NOTHING = "verify-nothing"


def narrowing(walk: Walk, listing: Operation, resource: Resource) -> Mapping[str, str]:
    """A query of a list that only the journeys' own records match; empty if there is none."""
    if "{" in listing.path:
        return _ALL
    create = resource.create
    named = {*roles_in([walk.path(create), walk.body(create)])}
    for name in queried(listing):
        if role_of(name) in named:
            return {name: placeholder(role_of(name)), **_ALL}
    for name in ("search", "name"):
        if name in queried(listing):
            return {name: walk.variants.tag, **_ALL}
    return {}


async def listed(walk: Walk, operation: Operation) -> None:
    """The parameters of a query. Those of a list narrow it to some records, which are made; else
    whatever there is is listed.
    """
    if not is_list(operation):
        for each in _values(walk, operation, {}):
            if each.value != UNKNOWN_ID:  # whether it may be named depends on the credential
                await _parameter(walk, operation, each)
        return
    resource = walk.catalogue.listed_by(operation)
    every = _Listing(walk, operation, _ALL, is_alone=True)
    known = (await every.paged("")).entries
    if resource is not None:
        await _read(walk, operation, resource, known)
        narrowed = narrowing(walk, operation, resource)
        with suppress(KeyError):  # a record cannot be made
            own = _Listing(walk, operation, narrowed, is_alone=False)
            if narrowed and await own.compared(await _made(walk, resource)):
                return
    await every.compared(known[len(known) // 2] if known else {})


async def _made(walk: Walk, resource: Resource) -> Any:
    """The body of a record, beside which another one is made that differs, also in its amounts."""
    create = resource.create
    makes = f"{resource.role} more"
    await walk.ready(resource, **(walk.body(create) if walk.is_lasting else {}))
    body = with_leaves(walk.body(create), lambda it: uneven(it + 1) if type(it) is float else it)
    if resource.delete is not None or makes not in walk.present:
        await walk.ask(create, SETUP, f"make {makes}", body=body, makes=makes)
    return walk.present[resource.role]


@dataclass
class _Listing:
    """A list and its query: of the journey's own records, which the twin has too; or, alone, of
    whatever the target has: the answers must go together.
    """

    walk: Walk
    operation: Operation
    query: Mapping[str, str]
    is_alone: bool

    async def ask(
        self, learns: str, suspect: str, query: Body, pointer: str = "", *, shows: bool = False
    ) -> Seen:
        """Ask for entries. Those that show what was asked for are not compared with the twin's."""
        query = {**self.query, **query}
        return await self.walk.ask(
            self.operation,
            "filters",
            learns,
            pointer,
            query={name: value for name, value in query.items() if value},
            suspect=suspect,
            narrowed=not (self.is_alone or shows),
            expects=200 * self.is_alone,
        )

    async def paged(self, limit: str) -> Seen:
        """The whole list, whose first pages are its beginning; those without a limit have each
        entry once.
        """
        for _ in range(_TIMES):
            whole = await self.ask("the whole list", "filter", {})
            found: list[str] = []
            for number in _PAGES:
                query = {"page": number, "limit": limit}
                found += _ids((await self.ask(f"page {number}", "paging", query)).entries)
            due = _ids(whole.entries)[: len(_PAGES)] if limit else [*dict.fromkeys(found)]
            if found == due:
                return whole
        expected = "the entries of the list, in its order, each once"
        self.walk.tell("paging", "the pages together are not the list", expected)
        return whole

    async def compared(self, shown: Any) -> bool:
        """Ask for every filter and order, with values of a record; whether the list could be
        narrowed.
        """
        whole = await self.paged("1")
        past = await self.ask("a page past the end", "paging", {"page": "1000"})
        if len(whole.entries) < _SHOWN and past.entries:
            self.walk.tell("paging", "a page past the end has entries", "no entries")
        if whole.has_departed:
            return False
        found: list[tuple[str, str]] = []
        for each in _values(self.walk, self.operation, shown):
            (name,) = each.place
            if not each.is_accepted or name in ("page", *self.query):
                await _parameter(self.walk, self.operation, each)
            elif name == "sort":
                await self._sorted(each)
            elif await self._filtered(name, each, whole.entries):
                found.append((name, _text(each.value)))
        for (first, value), (second, other) in pairwise(found if not self.is_alone else ()):
            if first != second:
                query = {first: value, second: other}
                await self.ask(f"{first} and {second}", "filter", query)
        return True

    async def _sorted(self, tried: Variant) -> None:
        option = tried.value
        seen = await self.ask(tried.tries, "sort", {"sort": option}, tried.pointer)
        values = [folded(entry.get(option.removeprefix("-"))) for entry in seen.entries]
        # how a target orders letters and accents of others is not in the contract
        is_text = not self.is_alone and all(isinstance(value, str) for value in values)
        has_order = is_text or all(map(is_number, values))
        if has_order and values != sorted(values, reverse=option.startswith("-")):
            expected = f"entries in the order of {option}"
            self.walk.tell("sort", f"the list does not have {expected}", expected)

    async def _filtered(self, name: str, tried: Variant, every: list[Any]) -> bool:
        """Whether a value finds the entries of the list that match."""
        value = _text(tried.value)
        match = [_matches(entry, name, value) for entry in every]
        shows = None not in match
        seen = await self.ask(tried.tries, "filter", {name: value}, tried.pointer, shows=shows)
        if not seen.target.is_success or not shows:
            return seen.target.is_success and not seen.has_departed
        lacking = {*compress(_ids(every), match)} - {*_ids(seen.entries)}
        if any(_matches(entry, name, value) is False for entry in seen.entries):
            wrong = "an entry that does not match"
        # of others' entries one may be deleted meanwhile
        elif lacking and len(every) < _SHOWN and not (self.is_alone and seen.entries):
            wrong = "fewer entries than match"
        else:
            return True
        self.walk.tell("filter", f"a value of {name} lists {wrong}", "entries that match")
        return False


async def _parameter(walk: Walk, operation: Operation, each: Variant) -> None:
    """Send a value alone."""
    group = "accepts" if each.is_accepted else "rejects"
    query = {each.place[0]: _text(each.value)}
    await walk.ask(operation, group, each.tries, each.pointer, query=query)


def _matches(entry: Any, name: str, value: str) -> bool | None:
    """Whether an entry is what a filter asks for; None where it does not show that, or
    differs in case alone.
    """
    if name.startswith("created_"):
        made = entry.get("createdAt", entry.get("created_at"))
        if not isinstance(made, str):
            return None
        return made >= value if name.endswith("since") else made <= value
    own = entry.get(name)
    if not isinstance(own, (str, bool)) or value.startswith("{"):
        return None
    if _text(own).casefold() != value.casefold():
        return False
    return True if _text(own) == value else None


def _ids(entries: list[Any]) -> list[str]:
    return [str(entry.get("id")) for entry in entries]


def _text(value: Any) -> str:
    """A value as a query contains it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _values(walk: Walk, operation: Operation, shown: Any) -> Iterator[Variant]:
    """Values of each parameter of a query: at its limits, and as a record has it."""
    for name, (pointer, schema) in queried(operation).items():
        more = _as_shown(walk, name, walk.document.resolve(schema), _found(shown, name))
        yield from walk.variants.of_parameter(name, schema, below(pointer, "schema"), more)


def _as_shown(walk: Walk, name: str, node: Json, value: Any) -> list[Any]:
    """What finds a record that has a value, and what finds none."""
    if node.get("format") == "uuid":
        return [placeholder(role_of(name))] if role_of(name) in walk.present else []
    if node.get("format") == "date-time":
        return ["2000-01-01T00:00:00Z", "2999-01-01T00:00:00Z"]
    if isinstance(value, dict):
        return [*(f"{key}:{inner}" for key, inner in [*value.items()][:1]), "verify:nothing"]
    if node.get("type") != "string" or "enum" in node:
        return []
    if name == "search":
        value = walk.variants.tag
    return [value, value.upper(), _NOTHING] if isinstance(value, str) else [_NOTHING]


def _found(value: Any, name: str) -> Any:
    if not isinstance(value, dict):
        return None
    if name in value:
        return value[name]
    return next(filter(None, (_found(inner, name) for inner in value.values())), None)


async def _read(walk: Walk, listing: Operation, resource: Resource, known: list[Any]) -> None:
    """What is read of a record, and below it, is as its entry in the list. Those with the largest
    figures are read.
    """
    known = [each for each in known if not walk.variants.is_own(each)]
    for ident in _ids(sorted(known, key=_figures, reverse=True)[:_EACH]):
        for about in walk.reads_about(resource):
            path = walk.path(about, **{resource.key: quote(ident, safe="")})
            for _ in range(_TIMES):
                listed = await walk.ask(listing, QUIET, "a list", query=_ALL, expects=200)
                seen = await walk.ask(about, "accepts", LISTED, path=path, expects=200)
                entries = dict(zip(_ids(listed.entries), listed.entries, strict=True))
                flaws = [*_contradictions(entries.get(ident, {}), seen, about, resource)]
                if not flaws:
                    break
            for title in flaws:
                walk.tell("contradiction", title, "the same value")
            if walk.run.options.other:
                await walk.ask(
                    about,
                    "rejects",
                    FOREIGN,
                    path=path,
                    credential=walk.run.options.other,
                    suspect="auth",
                    expects=404,
                )


def _contradictions(entry: Body, seen: Seen, about: Operation, resource: Resource) -> Iterator[str]:
    """In what an answer about a record is not as its entry in a list, or about another one."""
    record = part_about(seen.target.json(), entry.get("id"))
    for name in sorted(entry.keys() & record.keys()):
        if entry[name] != record[name]:
            yield f"{name} differs between the list and {about.id}"
    ident = entry.get("id")
    if any(each.get(resource.key, ident) != ident for each in seen.entries):
        yield f"the list below {resource.role} has entries of another one"


def _figures(entry: Mapping[str, Any]) -> float:
    return float(sum(filter(is_number, entry.values())))
