"""Counts what there is to understand: nodes of the syntax tree, and what makes them dense."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
TOP = "(top)"


@dataclass(frozen=True)
class Module:
    """A source file; `name` is relative to the package."""

    name: str
    source: str

    @cached_property
    def tree(self) -> ast.Module:
        """It, parsed."""
        return ast.parse(self.source)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of its tree."""
        return [*ast.walk(self.tree)]

    @property
    def room(self) -> str:
        """The package that it is in."""
        first, _, rest = self.name.partition("/")
        return first if rest else TOP


def modules_of(package: Path) -> list[Module]:
    """The modules of a package."""
    files = sorted(package.rglob("*.py"))
    return [
        Module(file.relative_to(package).as_posix(), file.read_text(encoding="utf-8"))
        for file in files
    ]


@dataclass(frozen=True)
class Size:
    """How much some modules are."""

    nodes: int
    lines: int
    statements: int
    comprehensions: int
    conditionals: int
    used_once: int
    """Functions, classes and constants of modules that are named once beside their definition."""

    @classmethod
    def of(cls, modules: list[Module], written: Mapping[str, int]) -> "Size":
        """Count lines, blank ones too, and nodes of each kind; `written` is how often the package
        names a name.
        """
        nodes = [node for module in modules for node in module.nodes]
        return cls(
            nodes=len(nodes),
            lines=sum(len(module.source.splitlines()) for module in modules),
            statements=sum(isinstance(node, ast.stmt) for node in nodes),
            comprehensions=sum(isinstance(node, _COMPREHENSIONS) for node in nodes),
            conditionals=sum(isinstance(node, ast.IfExp) for node in nodes),
            used_once=sum(written[name] == 2 for module in modules for name in _defined(module)),
        )

    def __str__(self) -> str:
        a_line = self.nodes / max(1, self.lines)
        a_statement = self.nodes / max(1, self.statements)
        return (
            f"{self.nodes:8,} nodes  {self.lines:7,} lines  {a_line:5.1f} a line "
            f" {a_statement:5.1f} a statement  {self.comprehensions:5,} comprehensions "
            f" {self.conditionals:5,} conditional expressions  {self.used_once:5,} names used once"
        )


def written(modules: list[Module]) -> Counter[str]:
    """How often each name is written where it is defined or used; imports are neither."""
    return Counter(name for module in modules for name in _names(module))


def by_room(modules: list[Module]) -> dict[str, Size]:
    """The size of each room, largest first."""
    counted = written(modules)
    rooms: dict[str, list[Module]] = {}
    for module in modules:
        rooms.setdefault(module.room, []).append(module)
    sizes = {room: Size.of(found, counted) for room, found in rooms.items()}
    return dict(sorted(sizes.items(), key=lambda entry: -entry[1].nodes))


def longest_functions(modules: list[Module], most: int) -> list[tuple[int, str]]:
    """The functions with the most lines: how many, and where each is."""
    found = []
    for module in modules:
        for node in module.nodes:
            if isinstance(node, _FUNCTIONS):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                found.append((length, f"{module.name}:{node.lineno} {node.name}"))
    return sorted(found, reverse=True)[:most]


# -- what nobody uses


def never_imported(modules: list[Module]) -> list[str]:
    """Modules that no import statement of the package names.

    Those of `operations` and the pages of `console` are found by their names.
    """
    imported = {name for module in modules for name in _imports(module)}
    return [
        module.name
        for module in modules
        if _dotted(module.name) not in imported
        and not module.name.endswith(("__init__.py", "__main__.py", "_pages.py"))
        and module.room != "operations"
    ]


def _dotted(name: str) -> str:
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _imports(module: Module) -> Iterator[str]:
    """Every name that may be a module, from the package on."""
    here = module.name.split("/")[:-1]
    for node in module.nodes:
        if isinstance(node, ast.ImportFrom):
            above = here[: len(here) - node.level + 1] if node.level else []
            start = ".".join([*above, *filter(None, [node.module])])
            yield start
            for alias in node.names:
                yield f"{start}.{alias.name}".removeprefix(".")


def _defined(module: Module) -> Iterator[str]:
    """The names that a module defines."""
    for node in module.tree.body:
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def never_used(modules: list[Module]) -> list[str]:
    """What is defined and named nowhere else in the package: tests alone use it, or nobody.

    Left out is what others find: decorated functions, handlers of operations, and names with two
    underscores.
    """
    counted = written(modules)
    found = []
    for module in modules:
        for node in module.nodes:
            if not isinstance(node, (*_FUNCTIONS, ast.ClassDef)) or node.decorator_list:
                continue
            if (
                counted[node.name] == 1
                and not node.name.startswith("__")
                and module.room != "operations"
            ):
                found.append(f"{module.name}:{node.lineno} {node.name}")
    return found


def _names(module: Module) -> Iterator[str]:
    for node in module.nodes:
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.keyword) and node.arg is not None:
            yield node.arg


def changes(files: list[str]) -> int:
    """How often one file follows another in a list of calls."""
    return sum(before != after for before, after in pairwise(files))
