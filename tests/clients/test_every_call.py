"""The types of openapi-typescript, made without flags, carry all 49 calls without a cast, and the
calls succeed.
"""

import json
import re
from typing import Any

import pytest

from stub_server.contract.document import Operation

from ..support.estate import Estate, token
from ..support.requests import LAST, OPERATIONS, QUERIES, body_of
from .conftest import Project

pytestmark = [pytest.mark.check, pytest.mark.night]

SPARE = ("createProject", "createPlan")
"""What makes the records that are deleted at the end."""
HEAD = """import createClient from "openapi-fetch";
import type { paths } from "./api.js";

export const calls = (baseUrl: string, token: string, ids: Record<IDS, string>) => {
  const api = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });
  return {
"""
_RUN = """
const { calls } = await import("./dist/every.js");
const [base, token, ids, order] = JSON.parse(process.argv[1]);
const seen = {};
const ask = async (name, at) => {
  const { response, data, error } = await calls(base, token, at)[name]();
  seen[name] = [response.status, error];
  return data;
};
for (const name of order) await ask(name, ids);
const { data: { project } } = await ask("createProject", ids);
const { plan } = await ask("createPlan", { ...ids, projectId: project.id });
await ask("deletePlan", { ...ids, planId: plan.id });
await ask("deleteProject", { ...ids, projectId: project.id });
console.log(JSON.stringify(seen));
"""


class Ids(dict[str, str]):
    """Marks in place of ids, which become names of TypeScript."""

    def __init__(self) -> None:
        super().__init__(
            {name: f"<{name}>" for each in OPERATIONS.values() for name in places(each)}
        )


def places(operation: Operation) -> list[str]:
    """The parameters in the path of an operation."""
    return re.findall(r"\{(\w+)\}", operation.path)


def call(operation: Operation) -> str:
    """A call as a person would write it."""
    ids = Ids()
    query = QUERIES[operation.id](ids) if operation.id in QUERIES else {}
    parts: dict[str, Any] = {
        "path": {name: ids[name] for name in places(operation)},
        "query": query,
    }
    params = {place: values for place, values in parts.items() if values}
    body = body_of(operation, ids)
    options = ({"params": params} if params else {}) | ({} if body is None else {"body": body})
    text = (
        re.sub(r'"<(\w+)>"', r"ids.\1", json.dumps(options, ensure_ascii=False)) if options else ""
    )
    return (
        f"    {operation.id}: () =>"
        f' api.{operation.method}("{operation.path}"{text and ", "}{text}),\n'
    )


def test_all_49_calls_compile_without_a_cast_and_succeed(project: Project, shop: Estate) -> None:
    ids = " | ".join(f'"{name}"' for name in Ids())
    text = HEAD.replace("IDS", ids) + "".join(map(call, OPERATIONS.values())) + "  };\n};\n"
    (project.folder / "src" / "every.ts").write_text(text, encoding="utf-8")
    assert [] == project.compile()
    first = [
        name
        for name, each in OPERATIONS.items()
        if name not in (*LAST, *SPARE) and each.method != "DELETE"
    ]
    bearer = token(shop.live, shop.sandbox, shop.merchant_id)
    arguments = [f"{shop.live.url}/s/{shop.sandbox}", bearer, shop.ids, [*first, *LAST]]
    ran = project.run("node", "--input-type=module", "-e", _RUN, json.dumps(arguments))
    assert ran.returncode == 0, ran.stderr
    seen = json.loads(ran.stdout)
    assert {name: [min(each.responses), None] for name, each in OPERATIONS.items()} == seen
    assert 49 == len(seen)
