"""The rooms: a module imports its own room and the rooms above it, in no circle, and importing has
no effects.
"""

import ast
import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from .conftest import LONG, TESTS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "stub_server"
# A room imports only rooms above it in this list, where a type is meant too. `__main__` begins
# `cli`.
ROOMS = (
    "core", "settings", "contract", "domain", "engine", "data", "webhooks", "storage", "server", "operations",
    "console", "app", "testing", "tools", "cli", "__main__",
)  # fmt: skip
# tools that servers serve: the application joins them, and they import none
JOINED = "stub_server.tools.mcp"
OWNERS = {
    "connexion": ("server/", "app.py"),
    "starlette": ("server/", "app.py", "cli/serving.py", "tools/mcp/", "tools/verify/proxy.py"),
    "mcp": ("tools/mcp/",),
    "mcp_types": ("tools/mcp/",),
    "httpx2": ("cli/running_server.py", "webhooks/network.py", "testing/", "tools/"),
    "httpcore2": ("webhooks/network.py", "server/layers/forwarding.py", "tools/verify/proxy.py"),
    "flask": ("console/",),
    "uvicorn": ("cli/", "testing/", "server/protocol.py", "tools/verify/proxy.py"),
    "click": ("cli/",),
    "joserfc": ("server/tokens.py",),
    "psycopg": ("storage/",),
    "sqlite3": ("storage/", "console/guide/"),
    "markdown_it": ("console/guide/",),
}
FORBIDDEN = {"requests", "httpx", "aiohttp", "urllib3", "pydantic"}
PURE = ("domain/",)
MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def dotted(module: str) -> str:
    """`server/layers/pages.py` -> `stub_server.server.layers.pages`."""
    name = "stub_server." + module.removesuffix(".py").replace("/", ".")
    return name.removesuffix(".__init__")


@cache
def tree_of(module: str) -> ast.Module:
    """A module, parsed."""
    return ast.parse((PACKAGE / module).read_text(encoding="utf-8"))


@cache
def imports(module: str) -> list[str]:
    """Every module that a module names in an import, in full, wherever in it the import stands."""
    package, found = dotted(module).split("."), list[str]()
    if not module.endswith("__init__.py"):
        package = package[:-1]
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = [*base, *(node.module or "").split(".")] if node.module else base
            named = [".".join([*origin, alias.name]) for alias in node.names]
            found += [name if _is_module(name) else ".".join(origin) for name in named]
    return found


def _is_module(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


def room(name: str) -> str | None:
    """The room of a module of ours; None of any other, and of what is no part of a room."""
    parts = name.split(".")
    return (
        parts[1] if parts[0] == "stub_server" and len(parts) > 1 and parts[1] != "version" else None
    )


def test_a_module_imports_its_own_room_and_those_above() -> None:
    wrong = []
    for module in MODULES:
        own = room(dotted(module))
        if own is None:
            continue
        for imported in imports(module):
            other = room(imported)
            if own == "app" and imported.startswith(JOINED):
                continue
            if other is not None and ROOMS.index(other) > ROOMS.index(own):
                wrong.append(f"{module} imports {imported}")
    assert [] == wrong


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Not by way of others either, nor for the sake of types."""
    sorter = TopologicalSorter(
        {dotted(module): set(imports(module)) for module in MODULES if "/" in module}
    )
    sorter.prepare()  # raises CycleError


def libraries() -> Iterator[tuple[str, str]]:
    """(module, library) of every import."""
    yield from (
        (module, imported.partition(".")[0]) for module in MODULES for imported in imports(module)
    )


def test_each_library_is_known_where_it_belongs() -> None:
    wrong = [
        (module, library)
        for module, library in libraries()
        if library in FORBIDDEN or not module.startswith(OWNERS.get(library, ""))
    ]
    assert [] == wrong


def test_rules_know_neither_clock_nor_chance_nor_files() -> None:
    """Whatever they need is passed in. `datetime` is for values; reading the time is not."""
    impure = {
        "time", "random", "secrets", "os", "pathlib", "socket", "asyncio", "yaml", "uuid", "tempfile", "subprocess",
        "open", "print", "input", "datetime.now", "datetime.utcnow", "date.today", "engine", "settings",
    }  # fmt: skip
    wrong = {}
    for module in (module for module in MODULES if module.startswith(PURE)):
        called = {
            ast.unparse(node.func)
            for node in ast.walk(tree_of(module))
            if isinstance(node, ast.Call)
        }
        known = {name.partition(".")[0] for name in imports(module)}
        reached = {room(name) for name in imports(module)}
        if found := impure & (called | known | reached):
            wrong[module] = found
    assert {} == wrong


def test_the_core_needs_the_standard_library_alone() -> None:
    known = {*sys.stdlib_module_names, "stub_server", "orjson"}
    assert [] == [
        found for found in libraries() if found[0].startswith("core/") and found[1] not in known
    ]


def test_a_module_says_what_it_is_for() -> None:
    empty = {module for module in MODULES if not tree_of(module).body}
    docs = {module: ast.get_docstring(tree_of(module)) or "" for module in MODULES}
    assert [] == [
        module
        for module, doc in docs.items()
        if module not in empty and len(doc.partition("\n")[0]) <= 15
    ]


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
    used = {library for _, library in libraries()} - {"stub_server"}
    first = sorted(name for name in used if importlib.util.find_spec(name) is not None)
    command = [sys.executable, "-W", "ignore", "-c", QUIET, ",".join(first), ",".join(names)]
    result = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (0, "", "") == (result.returncode, result.stdout, result.stderr)


CHANGING = {
    "append", "add", "update", "pop", "clear", "extend", "setdefault", "remove", "insert", "discard", "popitem",
}  # fmt: skip


def test_no_module_keeps_state_of_its_own() -> None:
    """A name at a module's top that is a plain dict, list or set is never changed by
    its functions.
    """
    assert [] == [
        place
        for module in MODULES
        if not module.endswith("__main__.py")
        for place in changes(module)
    ]


def changes(module: str) -> Iterator[str]:
    """Where functions of a module change what stands at its top."""
    found = importlib.import_module(dotted(module))
    tables = {
        name
        for name, value in vars(found).items()
        if isinstance(value, (dict, list, set)) and not name.startswith("__")
    }
    functions = (
        node
        for node in ast.walk(tree_of(module))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )
    for function in functions:
        local = {a.arg for a in ast.walk(function) if isinstance(a, ast.arg)}
        local |= {
            n.id
            for n in ast.walk(function)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        for node in ast.walk(function):
            if isinstance(node, ast.Global):
                yield f"{module}:{node.lineno} writes a global"
            target: ast.expr | None = None
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in CHANGING
            ):
                target = node.func.value
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)):
                target = node.value
            if isinstance(target, ast.Name) and target.id not in local and target.id in tables:
                yield f"{module}:{target.lineno} changes {target.id}"


def test_no_test_module_imports_another() -> None:
    """What several of them use stands in `tests/support`, or beside them in a module
    without tests.
    """
    wrong = []
    for path in TESTS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                named = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
                wrong += [
                    f"{path.relative_to(TESTS)} imports {name}"
                    for name in named
                    if name.startswith("test_")
                ]
    assert [] == wrong


def test_every_file_that_is_run_first_is_there() -> None:
    assert [] == [name for name in LONG if not (TESTS / name).is_file()]
