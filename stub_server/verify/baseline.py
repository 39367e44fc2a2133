"""Hides the divergences that an earlier report has."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

import orjson

from ..commands.options import Unusable
from ..contract.source import ContractError, read_text
from .findings import Divergence


def known(path: Path) -> set[str]:
    """The fingerprints in a JSON report. Raises Unusable for a file that is none, or has more than 10 MB."""
    try:
        found = {divergence["fingerprint"] for divergence in orjson.loads(read_text(path, str(path)))["divergences"]}
    except ContractError as error:
        raise Unusable(f"{error}.") from None
    except (KeyError, TypeError, ValueError):
        found = {None}
    if not all(isinstance(fingerprint, str) for fingerprint in found):
        raise Unusable(f"{path}: is not a report as JSON. Write one with --report json={path.name}.")
    return found


def hide(divergences: Iterable[Divergence], known: Collection[str]) -> tuple[list[Divergence], int]:
    """The divergences whose fingerprints are not known, and the number of the others."""
    every = list(divergences)
    shown = [divergence for divergence in every if divergence.fingerprint not in known]
    return shown, len(every) - len(shown)
