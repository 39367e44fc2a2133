"""TypeScript: the generated types find mistakes under `tsc --strict`, and carry the lines of the
page.
"""

import json
import re
from pathlib import Path

import pytest

from ..support.live import Live
from .conftest import SHIPPED, Project

pytestmark = [pytest.mark.check, pytest.mark.turn]

PAGE = Path(__file__).parents[2] / "docs" / "typescript.md"
_BEFORE = """\
import createClient from "openapi-fetch";
import type { paths } from "./api.js";
import type { paths as Controls } from "./control.js";
declare const sandbox: string;
declare const orderId: string;
"""
"""What the lines of the page take for granted."""


MISTAKES = """
import type { components, paths } from "./api.js";
import createClient from "openapi-fetch";
type Schemas = components["schemas"];
const api = createClient<paths>();
const status: Schemas["Order"]["status"] = "payed";
const code: Schemas["Error"]["code"] = "duplicate_documents";
const plan: Schemas["PlanCreate"] = { projectId: "", name: "Mensal", amount: "49.90" };
const until = (key: Schemas["ApiKey"]): string => key.expires_at;
const seats = (of: Schemas["Plan"]): number => of.max_subscribers * 2;
const unit = (of: Schemas["Plan"]): "fortnight" | null => of.interval;
const page = await api.GET("/v2/orders", { params: { query: { status: "open" } } });
const order = await api.GET("/v2/orders/{orderId}", { params: { path: { id: "" } } });
const sent = await api.POST("/v2/orders/pix", { body: { planId: "" } });
export { code, order, page, plan, seats, sent, status, unit, until };
"""


LEAST = """
import type { components } from "./api.js";
export const plan: components["schemas"]["PlanCreate"] = { projectId: "", name: "Mensal", amount: 49.9 };
export const key: components["schemas"]["ApiKeyCreate"] = { name: "Loja", scopes: ["orders:read"] };
"""


@pytest.mark.night
def test_the_types_find_every_mistake_that_is_planted_and_no_other(project: Project) -> None:
    """They are no `any`: a misspelt value, a wrong type, a forgotten null and a missing field do
    not compile.

    What has a default may be left out: a request needs what the contract requires and nothing else.
    """
    (project.folder / "src" / "mistakes.ts").write_text(MISTAKES, encoding="utf-8")
    (project.folder / "src" / "least.ts").write_text(LEAST, encoding="utf-8")
    found = [re.match(r"src/(\w+)\.ts\((\d+),", error) for error in project.compile()]
    assert {"mistakes"} == {each and each[1] for each in found}
    lines = sorted({int(each[2]) for each in found if each})
    first = (
        MISTAKES.splitlines().index(next(line for line in MISTAKES.splitlines() if "payed" in line))
        + 1
    )
    assert list(range(first, first + 9)) == lines


@pytest.mark.night
def test_the_commands_of_the_page_write_types_with_which_its_lines_compile(
    project: Project, live: Live
) -> None:
    """The pinned tools are there already."""
    page = PAGE.read_text(encoding="utf-8")
    setup, _, _, types, *_ = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (lines,) = re.findall(r"^```ts\n(const control = .*?)^```", page, re.MULTILINE | re.DOTALL)
    names = json.loads((SHIPPED / "package.json").read_text(encoding="utf-8"))
    for line in (setup + types).replace("http://127.0.0.1:4600", live.url).splitlines():
        if line.startswith("npm install"):
            wanted = set(re.findall(r" (@?[a-z][^@ ]*)", line.removeprefix("npm install")))
            assert wanted <= {*names["dependencies"], *names["devDependencies"]}
        else:
            assert project.run("bash", "-ec", line).returncode == 0, line
    (project.folder / "src" / "checkout.ts").write_text(f"{_BEFORE}{lines}", encoding="utf-8")
    assert project.compile() == []


def test_the_lock_file_names_no_place_to_download_from() -> None:
    lock = json.loads((SHIPPED / "package-lock.json").read_text(encoding="utf-8"))
    assert lock["packages"]["node_modules/openapi-fetch"]["integrity"]
    assert all("resolved" not in package for package in lock["packages"].values())
    wanted = json.loads((SHIPPED / "package.json").read_text(encoding="utf-8"))
    versions = {**wanted["dependencies"], **wanted["devDependencies"]}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions.values())
