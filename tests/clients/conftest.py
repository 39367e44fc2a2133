"""A TypeScript project with the types that openapi-typescript makes of the served contracts."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import playwright
import pytest
from click.testing import CliRunner

from stub_server.cli.command import main

from ..support.install import from_npm
from ..support.shared import Shared

SHIPPED = Path(__file__).parent / "typescript"
# Not in a temporary folder, so that a second run installs nothing.
_INSTALLED = Path(__file__).parents[2] / "build" / "typescript"
# Vitest and generators need a newer Node than some machines have; Playwright brings one.
_NODE = Path(playwright.__file__).parent / "driver"


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with sources in `src/`, the shipped settings, and the pinned tools."""

    folder: Path

    def run(self, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
        """A command in the folder. `more` are variables of its environment."""
        env = self._environment() | more
        return subprocess.run(
            command,
            cwd=self.folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    def begin(self, *command: str) -> "subprocess.Popen[bytes]":
        """The same, while it runs."""
        return subprocess.Popen(
            command, cwd=self.folder, env=self._environment(), stdout=subprocess.DEVNULL
        )

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("STUB_")}
        return kept | {
            "PATH": os.pathsep.join(
                [str(_NODE), str(Path(sys.executable).parent), os.environ["PATH"]]
            )
        }

    @property
    def node(self) -> str:
        """A search path with Node, without the command of the sandbox."""
        return f"{_NODE}{os.pathsep}/usr/bin{os.pathsep}/bin"

    def generate(self, url: str, name: str) -> None:
        """Types of a served contract, made as docs/typescript.md says."""
        made = self.run("node_modules/.bin/openapi-typescript", url, "-o", f"src/{name}")
        assert made.returncode == 0, made.stdout + made.stderr

    def compile(self, *options: str) -> list[str]:
        """What `tsc --strict` complains of: `file(line,column): error …`."""
        ran = self.run("node_modules/.bin/tsc", "-p", ".", *options)
        return [line for line in ran.stdout.splitlines() if ": error TS" in line]


@pytest.fixture(scope="session")
def generated(shared: Shared, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`api.d.ts` and `control.d.ts` of the shared server."""
    project = _project(tmp_path_factory.mktemp("generated"))
    live = shared.live
    project.generate(f"{live.url}/openapi.json", "api.d.ts")
    project.generate(f"{live.url}/_sandbox/openapi.json", "control.d.ts")
    return project.folder / "src"


@pytest.fixture
def folder(tmp_path: Path) -> Project:
    """A project without sources."""
    return _project(tmp_path)


@pytest.fixture
def project(generated: Path, tmp_path: Path) -> Project:
    """A project of the test's own that has only the generated types."""
    made = _project(tmp_path)
    for name in ("api.d.ts", "control.d.ts"):
        shutil.copy(generated / name, made.folder / "src" / name)
    return made


def _project(folder: Path) -> Project:
    modules = from_npm(SHIPPED, _INSTALLED, "--ignore-scripts")
    (folder / "src").mkdir()
    for name in ("package.json", "tsconfig.json"):
        shutil.copy(SHIPPED / name, folder / name)
    os.symlink(modules, folder / "node_modules", target_is_directory=True)
    return Project(folder)


_PAGE = (Path(__file__).parents[2] / "docs" / "typescript.md").read_text(encoding="utf-8")
_SHOWN = dict(
    re.findall(r"^```ts\n// tests/(\w+).test.ts\n(.*?)^```", _PAGE, re.MULTILINE | re.DOTALL)
)
_ALONE = """\
import { dataOf } from "./sandbox/sandbox.js";
import { expect, test } from "./sandbox/vitest.js";

for (const name of ["one test", "another test"]) {
  test(`the document is new in ${name}`, async ({ sandbox }) => {
    const body = { name: "Marina Duarte", email: "marina@example.com", document: "529.982.247-25" };
    const { customer } = dataOf(await sandbox.api.POST("/v2/customers", { body }));
    expect(customer.name).toBe("Marina Duarte");
  });
}
"""
"""Two tests, each of which finds nothing of the other in its sandbox."""


def begun(folder: Project, tool: str, extension: str) -> None:
    """A project with what `init` writes, the test files of docs/typescript.md, and one more."""
    done = CliRunner().invoke(main, ["init", tool, str(folder.folder)])
    assert 0 == done.exit_code, done.output
    for name, text in (_SHOWN | {"customers": _ALONE}).items():
        written = text.replace("vitest", tool)
        (folder.folder / "tests" / f"{name}.{extension}.ts").write_text(written, encoding="utf-8")
