"""Chains along the declared links: those of each tag by themselves, then those of what no chain has
taken yet.
"""

from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path

from .reach import Json, Link, Reach, declared_links, is_taken, operations
from .runner import Run, run

# Chains along the links of the contract alone: those that schemathesis infers are three times as
# many.
DECLARED = "\n[phases.stateful.inference]\nalgorithms = []\n"
_ATTEMPTS = 3


def follow(
    url: str, folder: Path, contract: Json, reach: Reach, seed: int, scenarios: int,
    *, base: str = "", more: str = "",
) -> Iterator[Run]:  # fmt: skip
    """Runs whose answers are added to `reach`."""
    numbers = count()

    def chains(names: Iterable[str], chosen: int, size: int) -> Run:
        report = folder / f"chains-{next(numbers)}.ndjson"
        options = [f"--include-operation-id={name}" for name in sorted(names)]
        options += [f"--seed={chosen}", f"--max-examples={size}"]
        done = run(url, ("stateful",), report, *options, base=base, more=more + DECLARED)
        reach.read(report)
        return done

    links = declared_links(contract)
    for tag in sorted({operation["tags"][0] for _, operation in operations(contract)}):
        own = [link for link in links if link.tag == tag]
        if own:
            names = frozenset(name for link in own for name in (link.source, link.target))
            yield chains(names, seed, min(scenarios, 10 + 5 * len(own)))
    for attempt in range(_ATTEMPTS):
        missing = [link for link in links if not is_taken(link, reach)]
        # An operation that others lead to may begin no chain, unless it is alone with the one that
        # it leads to.
        sets = (
            {frozenset((link.source, link.target)) for link in missing} if attempt == 1 else set()
        )
        for source in {link.source for link in missing} if attempt != 1 else ():
            targets = {link.target for link in missing if link.source == source}
            sets.add(frozenset({source} | targets | _before(source, links)))
        for names in sorted(sets, key=sorted):
            yield chains(names, seed + attempt, min(scenarios, 30))


def _before(source: str, links: list[Link]) -> set[str]:
    """What leads to an operation: lists, ids of samples and creations, or what follows them."""
    near = {link.source for link in links if link.target == source}
    roots = {name for name in near if name.startswith(("list", "create", "getCredentials"))}
    return roots or near | {
        link.source for link in links if link.target in near and link.source.startswith("list")
    }
