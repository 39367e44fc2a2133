"""No class has more attributes than somebody who reads it can hold in mind."""

import ast
from pathlib import Path

import stub_server

PACKAGE = Path(stub_server.__file__).parent
MOST = 15
# the journal's entry, a step, the settings and the kit's facade; records of the contract may be, too
WIDE = {
    "engine/kept.py Trace",
    "settings.py Settings",
    "testing/awaitable.py AsyncSandbox",
}


def attributes(kind: ast.ClassDef) -> set[str]:
    """The names that a class declares, and those that its methods set on `self`."""
    found = set()
    for node in ast.walk(kind):
        match node:
            case ast.Attribute(value=ast.Name("self"), attr=name, ctx=ast.Store()):
                found.add(name)
            case ast.AnnAssign(target=ast.Name(name)) if node in kind.body:
                found.add(name)
    return found


def test_no_class_but_these_has_more_than_fifteen_attributes() -> None:
    wide = set()
    for path in PACKAGE.rglob("*.py"):
        module = path.relative_to(PACKAGE).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and len(attributes(node)) > MOST:
                wide.add(f"{module} {node.name}")
    assert WIDE == {name for name in wide if not name.startswith("contract/")}
