"""What `stub-server init` writes for vitest and Playwright: the types compile, and
the tests pass.
"""

import json
import shutil

import pytest

from ..support.ends import answers, within
from ..support.live import Live
from .conftest import Project, begun

pytestmark = [pytest.mark.check, pytest.mark.turn]


def compiled(folder: Project) -> list[str]:
    """What the compiler finds in the tests, with the types that their set-up wrote."""
    settings = {
        "extends": "./tsconfig.json",
        "compilerOptions": {
            "noEmit": True,
            "types": ["node"],
            "skipLibCheck": True,
            "rootDir": ".",
        },
        "include": ["src", "tests", "*.config.ts"],
    }
    (folder.folder / "tests.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder.compile("-p", "tests.json")


def test_vitest_passes_with_a_server_of_its_own(folder: Project) -> None:
    begun(folder, "vitest", "test")
    ran = folder.run("node_modules/.bin/vitest", "run")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "4 passed" in ran.stdout
    assert [] == compiled(folder)


ENDLESS = """
import { renameSync, writeFileSync } from "node:fs";
import { test } from "vitest";

test("of a minute", async () => {
  writeFileSync("draft", process.env.STUB_URL ?? "");
  renameSync("draft", "url");
  await new Promise((resolve) => setTimeout(resolve, 60_000));
}, 120_000);
"""


def test_the_server_ends_with_a_run_that_is_killed(folder: Project) -> None:
    begun(folder, "vitest", "test")
    (folder.folder / "tests" / "endless.test.ts").write_text(ENDLESS, encoding="utf-8")
    address = folder.folder / "url"
    with folder.begin("node_modules/.bin/vitest", "run", "tests/endless.test.ts") as process:
        assert within(120, address.exists)
        process.kill()
    assert within(4, lambda: not answers(address.read_text()))


@pytest.mark.night
def test_playwright_pays_an_order_in_a_browser(folder: Project, live: Live) -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not on this machine: no test of Playwright was run")
    begun(folder, "playwright", "spec")
    ran = folder.run("node_modules/.bin/playwright", "test", CHROMIUM=chromium, STUB_URL=live.url)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "4 passed" in ran.stdout
    assert [] == compiled(folder)


def test_a_set_up_without_a_server_says_what_to_do(folder: Project) -> None:
    begun(folder, "vitest", "test")
    ran = folder.run("node_modules/.bin/vitest", "run", PATH=folder.node)
    assert ran.returncode == 1
    assert "Install stub-server, or set STUB_URL to a server." in ran.stdout + ran.stderr
