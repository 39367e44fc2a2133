"""The floors: a module imports its own floor's siblings and the floors below, and importing has no effects."""

import ast
import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import LONG, TESTS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "stub_server"
FLOORS = {
    "kernel": 0, "contract": 1, "store": 1, "domain": 2, "events": 3, "drawing": 3, "scenarios": 3, "faults": 3,
    "engine": 4, "audit": 5, "certify": 5, "delivery": 5, "seeding": 5, "files": 5, "worlds": 6, "calls": 7,
    "journal": 7,
    "operations": 8, "http": 9, "console": 10, "explain": 10, "testing": 11, "commands": 12, "replay": 12,
}  # fmt: skip
# What joins floors or names what they share: the composition root and its neighbours, by what they may reach.
TOP = {
    "__init__": 12, "__main__": 13, "app": 12, "cli": 13, "resolver": 9, "settings": 0, "version": 0, "banner": 12,
    "serving": 12, "request_log": 12, "report": 12,
}  # fmt: skip
# Rooms of one floor that must not know each other.
APART = ({"contract", "store"}, {"audit", "seeding"}, {"audit", "certify"}, {"certify", "seeding"})
OWNERS = {
    "connexion": ("http/", "app.py", "resolver.py"),
    "starlette": ("http/", "app.py", "resolver.py"),
    "httpx2": ("commands/server.py", "events/sender", "events/connections", "testing/"),
    "httpcore2": ("events/sender", "events/connections", "events/streams"),
    "flask": ("console/",),
    "uvicorn": ("cli.py", "__main__.py", "testing/", "serving.py", "http/wire.py", "http/response.py"),
    "click": ("cli.py", "__main__.py", "commands/"),
    "joserfc": ("calls/tokens.py",),
    "sqlalchemy": ("store/",),
    "psycopg": ("store/",),
    "sqlite3": ("files/",),
}
FORBIDDEN = {"requests", "httpx", "aiohttp", "urllib3", "pydantic"}
PURE = ("domain/",)
MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def dotted(module: str) -> str:
    """`http/edge.py` -> `stub_server.http.edge`."""
    name = "stub_server." + module.removesuffix(".py").replace("/", ".")
    return name.removesuffix(".__init__")


def imports(module: str) -> Iterator[str]:
    """Every module that a module names in an import, in full, wherever in it the import stands."""
    package = dotted(module).split(".")
    if not module.endswith("__init__.py"):
        package = package[:-1]
    for node in ast.walk(ast.parse((PACKAGE / module).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = [*base, *(node.module or "").split(".")] if node.module else base
            named = [".".join([*origin, alias.name]) for alias in node.names]
            yield from (name if _is_module(name) else ".".join(origin) for name in named)


def _is_module(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


def floor(name: str) -> tuple[str, int] | None:
    """Which floor a module of ours stands on."""
    parts = name.split(".")
    if parts[0] != "stub_server":
        return None
    first = parts[1] if len(parts) > 1 else "__init__"
    return (first, FLOORS[first]) if first in FLOORS else (first, TOP[first])


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_its_own_floor_and_the_floors_below(module: str) -> None:
    place = floor(dotted(module))
    assert place is not None
    name, level = place
    for imported in imports(module):
        target = floor(imported)
        if target is None or imported == "stub_server":
            continue
        other, below = target
        assert below <= level, f"{module} (floor {level}) imports {imported} (floor {below})"
        assert {name, other} not in APART, f"{module}: {name} and {other} do not know each other"


@pytest.mark.parametrize("module", MODULES)
def test_each_library_is_known_where_it_belongs(module: str) -> None:
    for imported in imports(module):
        library = imported.partition(".")[0]
        assert library not in FORBIDDEN, f"{module} imports {library}"
        owners = OWNERS.get(library)
        assert owners is None or module.startswith(owners), f"{module} imports {library}, which belongs to {owners}"


@pytest.mark.parametrize("module", [m for m in MODULES if m.startswith(PURE)])
def test_rules_know_neither_clock_nor_chance_nor_files(module: str) -> None:
    """Whatever they need is passed in. `datetime` is for values; reading the time is not."""
    impure = {
        "time",
        "random",
        "secrets",
        "os",
        "pathlib",
        "socket",
        "asyncio",
        "yaml",
        "uuid",
        "tempfile",
        "subprocess",
    }
    assert impure.isdisjoint(name.partition(".")[0] for name in imports(module))
    tree = ast.parse((PACKAGE / module).read_text(encoding="utf-8"))
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert {"open", "print", "input", "datetime.now", "datetime.utcnow", "date.today"}.isdisjoint(called)
    reaches = {target[0] for name in imports(module) if (target := floor(name)) is not None}
    assert {"store", "engine", "settings"}.isdisjoint(reaches)


def test_the_kernel_needs_the_standard_library_alone() -> None:
    for module in (m for m in MODULES if m.startswith("kernel/")):
        for imported in imports(module):
            library = imported.partition(".")[0]
            assert library in sys.stdlib_module_names or library in ("stub_server", "orjson"), (
                f"{module} imports {imported}"
            )


@pytest.mark.parametrize("module", MODULES)
def test_a_module_says_what_it_is_for(module: str) -> None:
    text = (PACKAGE / module).read_text(encoding="utf-8")
    if text.strip():
        doc = ast.get_docstring(ast.parse(text))
        assert doc, "a module begins with what it is for"
        assert len(doc.splitlines()[0]) > 15


QUIET = """
import importlib, sys, threading
libraries, ours = (words.split(",") for words in sys.argv[1:])
for name in libraries:
    importlib.import_module(name)
before = set(threading.enumerate())
def forbid(event, args):
    if event in ("socket.connect", "socket.bind", "subprocess.Popen", "os.mkdir", "os.remove", "os.rename"):
        raise SystemExit(f"importing did {event} {args}")
    if event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+"):
        raise SystemExit(f"importing wrote {args[0]}")
sys.dont_write_bytecode = True
sys.addaudithook(forbid)
for name in ours:
    importlib.import_module(name)
if set(threading.enumerate()) != before:
    raise SystemExit("importing started a thread")
"""


@pytest.mark.check
def test_importing_has_no_effects() -> None:
    """Every module in a fresh interpreter: no output, no thread, no file written, no connection.

    What the libraries do when they are imported is theirs: they are imported first.
    """
    names = [dotted(module) for module in MODULES if not module.endswith("__main__.py")]
    used = {name.partition(".")[0] for module in MODULES for name in imports(module)} - {"stub_server"}
    libraries = sorted(name for name in used if importlib.util.find_spec(name) is not None)
    command = [sys.executable, "-W", "ignore", "-c", QUIET, ",".join(libraries), ",".join(names)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (0, "", "") == (result.returncode, result.stdout, result.stderr)


@pytest.mark.parametrize("module", [m for m in MODULES if not m.endswith("__main__.py")])
def test_no_module_keeps_state_of_its_own(module: str) -> None:
    """A name at a module's top that is a plain dict, list or set is never changed by its functions."""
    found = importlib.import_module(dotted(module))
    tree = ast.parse((PACKAGE / module).read_text(encoding="utf-8"))
    tables = {
        name
        for name, value in vars(found).items()
        if isinstance(value, (dict, list, set)) and not name.startswith("__")
    }
    changing = {
        "append",
        "add",
        "update",
        "pop",
        "clear",
        "extend",
        "setdefault",
        "remove",
        "insert",
        "discard",
        "popitem",
    }
    for function in (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))):
        local = {a.arg for a in ast.walk(function) if isinstance(a, ast.arg)}
        local |= {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        for node in ast.walk(function):
            assert not isinstance(node, ast.Global), f"{module}:{node.lineno} writes a global"
            target: ast.expr | None = None
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in changing:
                target = node.func.value
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)):
                target = node.value
            if isinstance(target, ast.Name) and target.id not in local:
                assert target.id not in tables, f"{module}:{target.lineno} changes {target.id}"


def test_every_file_that_is_run_first_is_there() -> None:
    assert [] == [name for name in LONG if not (TESTS / name).is_file()]
