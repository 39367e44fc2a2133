"""docs/typescript.md from `npm create` to a paid order, and its snippets about time and streams, in
a real browser.
"""

import re
import shutil
from pathlib import Path

import pytest

from ..support.install import UNREACHABLE
from ..support.live import Live
from .conftest import Project, begun

pytestmark = [pytest.mark.check, pytest.mark.night]

DOCS = Path(__file__).parents[2] / "docs"
A_VITE_APPLICATION = (
    (DOCS / "typescript.md")
    .read_text(encoding="utf-8")
    .partition("## A Vite application")[2]
    .partition("\n## ")[0]
)
OFFSET, PAGE_CLOCK, STREAM = re.findall(
    r"^```ts\n(.*?)^```",
    (DOCS / "typescript.md")
    .read_text(encoding="utf-8")
    .partition("## Count down by the sandbox's clock")[2],
    re.MULTILINE | re.DOTALL,
)
SNIPPETS = f"""
import {{ expect, test }} from "./sandbox/playwright.js";
import {{ dataOf }} from "./sandbox/sandbox.js";
import {{ keepTime, now as sandboxNow }} from "./offset.js";

test("a countdown follows the sandbox", async ({{ sandbox }}) => {{
  await sandbox.control.POST("/clock/advance", {{ body: {{ days: 30 }} }});
  keepTime(await fetch(`${{sandbox.url}}/v2/plans`, {{ headers: {{ Authorization: `Bearer ${{sandbox.token}}` }} }}));
  const {{ now: shown }} = dataOf(await sandbox.control.GET("/clock"));
  expect(Math.abs(Date.parse(shown) - sandboxNow())).toBeLessThan(60_000);
}});

test("the browser shows the sandbox's time", async ({{ page, sandbox }}) => {{
  {PAGE_CLOCK}
  const shown = await page.evaluate(() => Date.now());
  expect(Math.round((shown - Date.parse(now)) / 3_600_000)).toBe(24);
  expect(dataOf(await sandbox.control.GET("/clock")).now.slice(0, 13)).toBe(new Date(shown).toISOString().slice(0, 13));
}});

test("a stream is read with a key", async ({{ sandbox }}) => {{
  const {{ url }} = sandbox;
  const key = dataOf(await sandbox.control.GET("/credentials")).control_key;
  const heard: string[] = [];
  const console = {{ log: (message: string) => heard.push(message) }};
  const read = async () => {{
    {STREAM}
  }};
  read().catch(() => {{}}); // it ends with the sandbox
  await expect(async () => {{
    await sandbox.api.GET("/v2/plans");
    expect(heard.join("\\n")).toContain("listPlans");
  }}).toPass();
}});
"""


@pytest.fixture
def chromium() -> str:
    found = shutil.which("chromium")
    if found is None:
        pytest.skip("chromium is not on this machine")
    return found


def test_a_new_vite_application_sells_a_plan(folder: Project, live: Live, chromium: str) -> None:
    """With the packages of today, which the registry has."""
    creates, tests = re.findall(r"^```sh\n(.*?)^```", A_VITE_APPLICATION, re.MULTILINE | re.DOTALL)
    files = dict(
        re.findall(r"^```ts\n// (\S+)\n(.*?)^```", A_VITE_APPLICATION, re.MULTILINE | re.DOTALL)
    )
    succeeded(folder, creates)
    shop = Project(folder.folder / "shop")
    for name, text in files.items():
        (shop.folder / name).write_text(text, encoding="utf-8")
    ran = succeeded(
        shop, tests.replace("npx playwright install chromium && ", ""), chromium, live.url
    )
    assert "2 passed" in ran
    succeeded(shop, "npm run lint")


def test_the_snippets_about_time_and_streams_work(
    folder: Project, live: Live, chromium: str
) -> None:
    begun(folder, "playwright", "spec")
    tests = folder.folder / "tests"
    (tests / "offset.ts").write_text(OFFSET, encoding="utf-8")
    (tests / "browser.spec.ts").write_text(SNIPPETS, encoding="utf-8")
    assert "3 passed" in succeeded(
        folder, "npx playwright test tests/browser.spec.ts", chromium, live.url
    )


def succeeded(project: Project, script: str, chromium: str = "", url: str = "") -> str:
    """What a script prints that must succeed; what it lacks of the network skips the test."""
    ran = project.run("bash", "-ec", script, CI="1", CHROMIUM=chromium, STUB_URL=url)
    if ran.returncode and (found := UNREACHABLE.search(ran.stderr)):
        pytest.skip(f"npm cannot reach its registry ({found[0]})")
    assert 0 == ran.returncode, ran.stdout + ran.stderr
    return ran.stdout
