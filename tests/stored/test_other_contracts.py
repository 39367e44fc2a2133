"""What a server of one contract wrote is opened by a server of another one."""

import shutil
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest
import yaml

from ..support.make import Json, list_of, typed
from ..support.overlays import overlay, updated
from ..support.processes import ROOT, Process
from ..support.recordings import Replayed
from ..support.refusal import says
from ..support.short import some
from .writing import KEY, LAST, answers, copied, done, opened, server_of, written

pytestmark = [pytest.mark.check, pytest.mark.turn]

NICKNAME = updated(
    "$.components.schemas.Customer",
    "{ required: [nickname], properties: { nickname: { type: string, nullable: true } } }",
)


def changed_contract(folder: Path, **customer: Any) -> Path:
    """A copy of the server whose schema Customer requires these members instead; None
    takes one out.
    """
    shutil.copytree(ROOT / "openapi", folder / "openapi")
    for name in ("stub_server", "fixtures"):
        (folder / name).symlink_to(ROOT / name)
    file = folder / "openapi" / "components" / "schemas" / "customers.yaml"
    schemas = yaml.safe_load(file.read_text())
    schema = schemas["Customer"]
    for name, change in customer.items():
        if change is None:
            schema["properties"].pop(name)
            schema["required"].remove(name)
        else:
            schema["properties"][name] = change
            schema["required"] += [name] if name not in schema["required"] else []
    file.write_text(yaml.safe_dump(schemas))
    return folder


def flags_for(what: str, folder: Path) -> tuple[str, ...]:
    """How a server opens a file or the directory, of which it gets a copy."""
    if what == "store":
        return ("--store", copied(folder))
    return ("--restore", str(written() / what))


def of(root: Path, *flags: str) -> Process:
    """A server of a changed contract."""
    return server_of(*flags, root=root, env={"PYTHONDONTWRITEBYTECODE": "1"})


def customers(api: httpx2.Client, **headers: str) -> list[Json]:
    """The customers as they are, or were."""
    return list_of(done(api.get("/v2/customers", headers=headers)), "customers")


def was_then() -> Json:
    """What was answered when it was written."""
    return typed(dict, orjson.loads((written() / "answers.json").read_bytes()))


@pytest.mark.parametrize("what", some(1, ["store", "export", "no-secrets"]))
def test_a_new_member_that_may_be_null_is_null(tmp_path: Path, what: str) -> None:
    """In answers, as-of reads and snapshots; everything else is as it was, what was sent and
    answered too.
    """
    server = server_of("--overlay", str(overlay(tmp_path, NICKNAME)), *flags_for(what, tmp_path))
    with opened(server) as (api, control):
        now = answers(api, control)
        assert was_then() == orjson.loads(orjson.dumps(now).replace(b',"nickname":null', b""))
        shown = [
            customer for when in ("now", "then") for customer in now[when]["customers"]["customers"]
        ]
        if what != "no-secrets":
            again = api.post("/v2/customers", json=LAST, headers={"Idempotency-Key": KEY})
            assert "true" == again.headers["idempotent-replayed"]
            assert "nickname" not in again.json()["customer"]
        assert 200 == control.get("/invariants").status_code
        done(control.post("/snapshots/pending/restore"))
        shown += customers(api)
        assert [None] * len(shown) == [customer["nickname"] for customer in shown]
        made = api.post("/v2/customers", json=LAST)
        assert (201, None) == (made.status_code, made.json()["customer"]["nickname"])


@pytest.mark.parametrize("begun", ["then", pytest.param("now", marks=pytest.mark.night)])
def test_a_store_is_opened_by_one_contract_after_the_other(tmp_path: Path, begun: str) -> None:
    """Steps of both follow each other in it, and the first contract refuses what only the
    other one has.
    """
    store = copied(tmp_path) if begun == "then" else str(tmp_path / "store")
    flags = ("--store", store)
    file = str(overlay(tmp_path, NICKNAME))
    if begun == "now":
        with opened(server := server_of(*flags)) as (api, _):
            assert 201 == api.post("/v2/customers", json=LAST).status_code
            server.stop()
    for _ in range(2):
        with opened(server := server_of(*flags, "--overlay", file)) as (api, control):
            newest = done(control.get("/steps?limit=1"))["steps"][0]["step"]
            found = customers(api)
            assert {True} == {"nickname" in customer for customer in found}
            for step in range(newest - 2 if begun == "then" else 1, newest + 1):
                past = customers(api, **{"X-Sandbox-As-Of": str(step)})
                assert {True} == {"nickname" in customer for customer in past}
            done(api.put(f"/v2/customers/{found[-1]['id']}", json={"name": f"Marina {newest}"}))
            assert 200 == control.get("/invariants").status_code
            server.stop()
    said = server_of(*flags).refused()
    assert says(said, "customers /nickname:", "the contract has no such member"), said


def test_a_recording_is_replayed_and_says_which_answers_differ(tmp_path: Path) -> None:
    """It goes on after the first one, which is shown."""
    replayed = Replayed(written() / "recording", "--overlay", str(overlay(tmp_path, NICKNAME)))
    differing = replayed.told["differing"]
    assert (1, {"createCustomer", "listCustomers", "updateCustomer"}) == (
        replayed.code,
        {*differing},
    )
    assert says(replayed.told["diffs"][0]["diff"], '+    "nickname": null')
    others = sum(map(len, differing.values())) + replayed.told["aside"]
    assert replayed.told["requests"] == replayed.told["same"] + others


UNFIT: dict[str, tuple[Json, str, str]] = {
    "a member that the contract has no more": ({"metadata": None}, "customers /metadata", "3 records"),
    "required without a default": ({"nickname": {"type": "string"}}, "customers /nickname", "3 records"),
    "an enum without a value": (
        {"document_type": {"type": "string", "enum": ["cnpj", "passport"]}}, "customers /document_type", "3 records",
    ),
    "a shorter text": ({"name": {"type": "string", "maxLength": 10}}, "customers /name", "1 record"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("what", "why"),
    some(2, [("store", "a shorter text"), *(("export", why) for why in UNFIT)]),
)
def test_what_does_not_fit_is_listed_and_refused(tmp_path: Path, what: str, why: str) -> None:
    change, where, count = UNFIT[why]
    said = of(changed_contract(tmp_path / "other", **change), *flags_for(what, tmp_path)).refused()
    assert says(said, f"{where}:", count), said
    assert "Traceback" not in said
