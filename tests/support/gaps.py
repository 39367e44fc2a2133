"""Documented facts that no test can reach, each with its reason. An entry that is not needed fails the run."""

from .ledger import Fact

EXCUSED: dict[Fact, str] = {}
