"""What a server of one contract wrote is opened by a server of another one."""

import shutil
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest
import yaml

from ..support.files import HEADERS
from ..support.make import Json
from ..support.overlays import overlay, shortened, updated
from ..support.processes import ROOT, Process
from ..support.recordings import Replayed
from ..support.refusal import says
from .writing import KEY, LAST, STEP, answers, copied, done, missing, opened, server_of, written

pytestmark = pytest.mark.check

NICKNAME = updated(
    "$.components.schemas.Customer",
    "{ required: [nickname], properties: { nickname: { type: string, nullable: true } } }",
)


def changed_contract(folder: Path, **customer: Any) -> Path:
    """A copy of the server whose schema Customer requires these members instead; None takes one out."""
    shutil.copytree(ROOT / "openapi", folder / "openapi")
    for name in ("stub_server", "fixtures"):
        (folder / name).symlink_to(ROOT / name)
    file = folder / "openapi" / "components" / "schemas" / "Customer.yaml"
    schema = yaml.safe_load(file.read_text())
    for name, change in customer.items():
        if change is None:
            schema["properties"].pop(name)
            schema["required"].remove(name)
        else:
            schema["properties"][name] = change
            schema["required"] += [name] if name not in schema["required"] else []
    file.write_text(yaml.safe_dump(schema))
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
    found: list[Json] = done(api.get("/v2/customers", headers=headers))["customers"]
    return found


def was_then() -> Json:
    """What was answered when it was written."""
    found: Json = orjson.loads((written() / "answers.json").read_bytes())
    return found


@pytest.mark.parametrize("what", ["export", pytest.param("no-secrets", marks=pytest.mark.night), "store"])
def test_a_new_member_that_may_be_null_is_null(tmp_path: Path, what: str) -> None:
    """In answers, as-of reads, events, snapshots and saved replies; everything else is as it was."""
    server = server_of("--overlay", str(overlay(tmp_path, NICKNAME)), *flags_for(what, tmp_path))
    with opened(server) as (api, control):
        now = answers(api, control)
        assert [] == missing(was_then(), now)
        shown = [customer for when in ("now", "then") for customer in now[when]["customers"]["customers"]]
        shown += [event["data"]["customer"] for event in now["events"] if "customer." in event["type"]]
        if what != "no-secrets":
            again = api.post("/v2/customers", json=LAST, headers={"Idempotency-Key": KEY})
            assert "true" == again.headers["idempotent-replayed"]
            shown.append(again.json()["customer"])
        assert 200 == control.get("/invariants").status_code
        done(control.post("/snapshots/pending/restore"))
        shown += customers(api)
        assert [None] * len(shown) == [customer["nickname"] for customer in shown]
        made = api.post("/v2/customers", json=LAST)
        assert (201, None) == (made.status_code, made.json()["customer"]["nickname"])


@pytest.mark.parametrize("begun", ["then", pytest.param("now", marks=pytest.mark.night)])
def test_a_store_is_opened_by_one_contract_after_the_other(tmp_path: Path, begun: str) -> None:
    """Steps of both follow each other in it; each answers what it has."""
    store = copied(tmp_path) if begun == "then" else str(tmp_path / "store")
    flags, file = ("--store", store), str(overlay(tmp_path, NICKNAME))
    if begun == "now":
        with opened(server := server_of(*flags)) as (api, _):
            assert 201 == api.post("/v2/customers", json=LAST).status_code
            server.stop()
    for ours in (("--overlay", file), (), ("--overlay", file)):
        with opened(server := server_of(*flags, *ours)) as (api, control):
            newest = done(control.get("/steps?limit=1"))["steps"][0]["step"]
            found = customers(api)
            assert {bool(ours)} == {"nickname" in customer for customer in found}
            for step in range(newest - 2 if begun == "then" else 1, newest + 1):
                past = customers(api, **{"X-Sandbox-As-Of": str(step)})
                assert {bool(ours)} == {"nickname" in customer for customer in past}
            done(api.put(f"/v2/customers/{found[-1]['id']}", json={"name": f"Marina {newest}"}))
            assert 200 == control.get("/invariants").status_code
            server.stop()


def test_a_recording_is_replayed(tmp_path: Path) -> None:
    """Answers that are the same once they are converted are counted by operation."""
    replayed = Replayed(written() / "recording", "--overlay", str(overlay(tmp_path, NICKNAME)))
    assert (0, None) == (replayed.code, replayed.told["diff"]), replayed.told
    converted, differing = (replayed.told["contract"][name] for name in ("converted", "differing"))
    assert ({"createCustomer", "listCustomers", "updateCustomer"}, {}) == ({*converted}, differing)
    assert replayed.told["requests"] == replayed.told["same"] + sum(map(len, converted.values()))


def test_a_recording_whose_answers_differ_otherwise_lists_them(tmp_path: Path) -> None:
    """It goes on after the first one, which is shown."""
    strict = updated("$.components.schemas.CustomerCreate.properties.name", "{ maxLength: 12 }")
    replayed = Replayed(written() / "recording", "--overlay", str(overlay(tmp_path, NICKNAME + strict, "strict.yaml")))
    differing = [*replayed.told["contract"]["differing"]]
    assert (1, ["createCustomer", "updateCustomer"]) == (replayed.code, differing[:2])
    assert "/v2/customers" == replayed.told["request"]["path"]


DEFAULTS: dict[str, tuple[Json, Any]] = {
    "its default": ({"type": "string", "default": "Nina"}, "Nina"),
    "an empty list": ({"type": "array", "items": {"type": "string"}}, []),
    "what is nested": (
        {"type": "object", "required": ["city"], "properties": {"city": {"type": "string", "default": "Recife"}},
         "default": {"city": "Olinda"}},
        {"city": "Olinda"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("begins", DEFAULTS)
def test_a_new_member_begins_as_new_records_do(tmp_path: Path, begins: str) -> None:
    schema, value = DEFAULTS[begins]
    server = of(changed_contract(tmp_path / "other", nickname=schema), *flags_for("export", tmp_path))
    with opened(server) as (api, control):
        assert [] == missing(was_then(), answers(api, control))
        assert [value] * 2 == [customer["nickname"] for customer in customers(api)]


def test_a_member_that_the_contract_has_no_more_goes(tmp_path: Path) -> None:
    server = of(changed_contract(tmp_path / "other", metadata=None), *flags_for("store", tmp_path))
    with opened(server) as (api, control):
        assert {False} == {"metadata" in customer for customer in customers(api)}
        assert {False} == {"metadata" in customer for customer in customers(api, **{"X-Sandbox-As-Of": str(STEP)})}
        assert {True} == {"metadata" in plan for plan in done(api.get("/v2/plans"))["plans"]}
        assert 200 == control.get("/invariants").status_code


UNFIT: dict[str, tuple[Json, str, str]] = {
    "required without a default": ({"nickname": {"type": "string"}}, "customers /nickname", "3 records"),
    "an enum without a value": (
        {"document_type": {"type": "string", "enum": ["cnpj", "passport"]}}, "customers /document_type", "3 records",
    ),
    "a shorter text": ({"name": {"type": "string", "maxLength": 10}}, "customers /name", "1 record"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("what", "why"),
    [*(("export", why) for why in UNFIT), pytest.param("store", "a shorter text", marks=pytest.mark.night)],
)
def test_what_cannot_be_converted_is_listed_and_left_out_where_that_is_asked_for(
    tmp_path: Path, what: str, why: str
) -> None:
    change, where, count = UNFIT[why]
    root, flags = changed_contract(tmp_path / "other", **change), flags_for(what, tmp_path)
    said = of(root, *flags).refused()
    assert says(said, f"{where}:", count, "--drop-unfit"), said
    assert "Traceback" not in said
    server = of(root, *flags, "--drop-unfit")
    with opened(server) as (api, control):
        left = ["Caio Pires"] if why == "a shorter text" else []
        assert left == [customer["name"] for customer in customers(api)]
        assert [] == done(api.get("/v2/orders"))["orders"] == done(api.get("/v2/subscriptions"))["subscriptions"]
        assert 1 == len(done(api.get("/v2/plans"))["plans"])
        assert [] == done(control.get("/steps"))["steps"] == done(control.get("/snapshots"))["snapshots"]
        assert 200 == control.get("/invariants").status_code
        assert 200 == control.post("/clock/advance", json={"days": 40}).status_code
        told = server.stop()
    assert says(told, f"{where}:", "customers", "the snapshot pending"), told
    if what == "store":  # for good
        with opened(of(root, *flags)) as (api, control):
            assert left == [customer["name"] for customer in customers(api)]


def test_an_import_says_what_it_has_left_out(tmp_path: Path) -> None:
    file = (written() / "export").read_bytes()
    root = changed_contract(tmp_path / "other", name={"type": "string", "maxLength": 10})
    with of(root) as server, server.control() as control:
        refused = control.post("/import", content=file, headers=HEADERS)
        assert (422, "unusable_file") == (refused.status_code, refused.json()["code"])
        assert says(refused.json()["message"], "customers /name:", "1 record", "drop_unfit")
        told = done(control.post("/import?drop_unfit=true", content=file, headers=HEADERS))["left_out"]
        own = {"customers": 1, "orders": 2, "subscriptions": 1}
        assert own == {name: told["counts"][name] for name in own}
        assert {*own, "webhook_logs", "events", "steps"} == {*told["counts"]}
        assert ["pending"] == told["snapshots"]
        assert 200 == control.get("/invariants").status_code


def test_an_enum_with_one_more_value_fits(tmp_path: Path) -> None:
    types = {"type": "string", "enum": ["individual", "company", "cooperative"]}
    with opened(of(changed_contract(tmp_path / "other", type=types), *flags_for("export", tmp_path))) as clients:
        assert [] == missing(was_then(), answers(*clients))


def test_the_key_of_the_own_merchant_is_not_left_out(tmp_path: Path) -> None:
    file = overlay(tmp_path, shortened("ApiKey", 5))
    server = server_of("--overlay", str(file), *flags_for("export", tmp_path), "--drop-unfit")
    said = server.refused()
    assert says(said, "merchant", "api_keys")
    assert "Traceback" not in said
