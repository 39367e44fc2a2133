"""Files that cannot be imported: each is 422 with the reason, and nothing has changed."""

import gzip
import zlib
from collections.abc import Callable, Iterator
from time import process_time
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import httpx2
import orjson
import pytest

from stub_server.core.clock import LATEST_START
from stub_server.storage import package

from ..support.files import HEADERS, changed, exported, imported, lines, sealed
from ..support.live import NO_TLS, Live
from ..support.make import Json, created, customer_body, list_of
from ..support.refusal import says

pytestmark = pytest.mark.check

Spoil = Callable[[bytes], bytes]


def _set(kind: str, table: str | None = None, /, **members: object) -> Spoil:
    return lambda file: changed(file, kind, lambda body: body.update(members), table)


def _inside(kind: str, table: str | None, part: str, /, **members: object) -> Spoil:
    return lambda file: changed(file, kind, lambda body: body[part].update(members), table)


def _lacking(part: str, member: str, table: str) -> Spoil:
    return lambda file: changed(file, "record", lambda body: body[part].pop(member), table)


def _twice(file: bytes) -> bytes:
    """Two customers with one document."""
    found = lines(file)
    first, second = [
        body for kind, body in found if kind == "record" and body["table"] == "customers"
    ][:2]
    second["public"]["document"] = first["public"]["document"]
    second["public"]["document_type"] = first["public"]["document_type"]
    second["public"]["type"] = first["public"]["type"]
    return sealed(found)


def _added_again(file: bytes) -> bytes:
    """A step that adds the merchant who is there already."""
    own = next(body for kind, body in lines(file) if kind == "merchant")
    del own["usage"]
    return changed(file, "step", lambda body: body["parts"][0].update(merchant=own))


SPOILT: dict[str, tuple[str, Spoil]] = {
    "nothing": ("foreign", lambda file: b""),
    "another gzip": ("foreign", lambda file: gzip.compress(b"hello\n")),
    "a newer format": (
        "other_version",
        _set("header", version=package.VERSION + 1, server="9.0.0"),
    ),
    "half of it": ("damaged", lambda file: file[: len(file) // 2]),
    "bytes more": ("damaged", lambda file: file + b"more"),
    "a byte flipped": (
        "damaged",
        lambda file: file[:5000] + bytes([file[5000] ^ 0x10]) + file[5001:],
    ),
    "no world": ("damaged", lambda file: sealed(lines(file)[:1])),
    "two worlds": ("damaged", lambda file: sealed([*lines(file)[:2], *lines(file)[1:]])),
    "a line of its own": ("damaged", lambda file: sealed([*lines(file), ("surprise", {})])),
    "a line of a schema's name": ("damaged", lambda file: sealed([*lines(file), ("Record", {})])),
    "a record of nobody": (
        "damaged",
        lambda file: sealed([lines(file)[0], lines(file)[1], lines(file)[3]]),
    ),
    "a record before an older one": (
        "damaged",
        lambda file: sealed([*lines(file)[:3], lines(file)[4], lines(file)[3], *lines(file)[5:]]),
    ),
    "a record that is none": ("damaged", _set("record", public=[])),
    "a timer beyond time": ("damaged", _set("timer", due=10**18)),
    "a step from nowhere": (
        "damaged",
        lambda file: sealed([*lines(file), ("step", {"number": 99})]),
    ),
    "a step too far": (
        "damaged",
        lambda file: changed(file, "step", lambda body: body.update(number=body["number"] + 1)),
    ),
    "a step that adds the own merchant again": ("damaged", _added_again),
    "a step that changes a merchant twice": (
        "damaged",
        lambda file: changed(file, "step", lambda body: body.update(parts=body["parts"] * 2)),
    ),
    "a record without what is inside": ("unfit", _lacking("hidden", "renewal", "orders")),
    "an unknown table": ("unfit", _set("record", table="secrets")),
    "a member too many": ("unfit", _inside("record", "orders", "public", surprise=1)),
    "a payment that ends at no instant": (
        "unfit",
        _inside("record", "orders", "public", last_transaction={"expires_at": "last"}),
    ),
    "a member less": ("unfit", _lacking("public", "status", "plans")),
    "hundreds of seeded keys": (
        "damaged",
        _set("sandbox", seeded_keys=[str(uuid4()) for _ in range(501)]),
    ),
    "a record larger than a body": (
        "unfit",
        _inside("record", "products", "public", description="x" * (1 << 20)),
    ),
    "another time of creation": ("unfit", _set("record", "orders", created=1)),
    "an unknown event": ("unfit", _set("event", type="order.teleported")),
    "an unknown job": ("unfit", _set("timer", job="order.teleport")),
    "no merchant": ("damaged", _set("sandbox", home="00000000-0000-4000-8000-000000000000")),
    "two customers of one document": ("unfit", _twice),
}


def _with_reply(**members: object) -> Spoil:
    def spoil(file: bytes) -> bytes:
        reply = {
            "key": [HOME, "POST", "/v2/customers", "k"],
            "fingerprint": "0" * 64,
            "expires": 0,
            "status": 201,
            "body": "{}",
            "headers": [["location", "/v2/customers/1"]],
        }
        found = [line for line in lines(file) if line[0] != "step"]
        return sealed([*found, ("reply", reply | members)])

    return spoil


def _nested(levels: int) -> Any:
    return orjson.Fragment(b"[" * levels + b"]" * levels)


def _hidden(table: str, **members: object) -> Spoil:
    return lambda file: changed(
        file, "record", lambda body: body.update(hidden=body["hidden"] | members), table
    )


_SNAPSHOT = {"name": "then", "description": None, "now": 0, "created_at": 0}
HOME = "00000000-0000-4000-8000-000000000000"
MOST = 1 << 52


def _behind(file: bytes) -> bytes:
    """A position of the world that is one beyond the one of its step."""
    position = next(body["position"] for kind, body in lines(file) if kind == "step")
    return changed(
        file, "sandbox", lambda body: body.update(position=[position[0] + 1, position[1]])
    )


def _of_many_merchants(file: bytes) -> bytes:
    """300 bytes of a line made tables of 40 KB: 110 KB of a file took 1.5 GB."""
    found = lines(file)
    merchant = next(body for kind, body in found if kind == "merchant")
    return sealed([*found, *(("merchant", merchant | {"id": str(uuid4())}) for _ in range(100))])


PLACES: dict[str, tuple[Spoil, str]] = {
    "an event of 900 levels": (
        _set("event", extras={"names": [], "others": [["a", _nested(900)]]}),
        "nested deeper than 48 levels",
    ),
    "a payload's member of no name": (
        _set("event", extras={"names": [], "others": [[[], 1]]}),
        "event.extras.others.0.0: ",
    ),
    "a payload's key that is more": (_set("event", key='order":{},"x'), "event.key: "),
    "webhooks without anything inside": (_set("record", "webhooks", hidden={}), "hidden: "),
    "a signing key that is none": (
        _hidden("webhooks", signing_keys=[{"key": "whsec_" + "a" * 17, "until": None}]),
        "hidden.signing_keys.0.key: ",
    ),
    "a customer with something inside": (_hidden("customers", x=1), "hidden: "),
    "a cookie with a saved reply": (
        _with_reply(headers=[["set-cookie", "a=b"]]),
        "reply.headers.0.0: ",
    ),
    "a line end in a saved header": (
        _with_reply(headers=[["location", "/a\r\nb: c"]]),
        "reply.headers.0.1: ",
    ),
    "a saved reply that leads elsewhere": (
        _with_reply(headers=[["location", "http://x"]]),
        "reply.headers.0.1: ",
    ),
    "a step beyond the numbers of a store": (_set("sandbox", step=1 << 31), "sandbox.step: "),
    "an order beyond numbers": (
        _inside("record", "orders", "public", totalAmount=1e308),
        "Every record matches the contract: order ",
    ),
    "a plan beyond numbers": (
        _inside("record", "plans", "public", amount=1e308),
        "Every record matches the contract: plan ",
    ),
    "a timer of no record": (_set("timer", subject="nobody"), "timer.subject: "),
    "a timer of no merchant": (
        _set("timer", merchant_id="00000000-0000-4000-8000-000000000001"),
        "timers /merchant_id: there is no such merchant (1 record)",
    ),
    "usage of no API key": (
        _inside("merchant", None, "usage", **{"00000000-0000-4000-8000-000000000001": [1, 1]}),
        "merchants /usage: there is no API key 00000000-0000-4000-8000-000000000001",
    ),
    "too many merchants": (_of_many_merchants, "more than 100 merchants"),
    "members of nothing": (
        _set("event", extras={"names": ["metadata"], "others": []}, hidden=None),
        "refers to a missing part",
    ),
    "ids of a step before": (_behind, "uses ids again"),
    "a clock past the last year": (
        _inside("sandbox", None, "clock", now=LATEST_START + 1),
        "sandbox.clock.now: ",
    ),
    "a snapshot past it": (
        lambda file: sealed([*lines(file), ("snapshot", _SNAPSHOT | {"now": LATEST_START + 1})]),
        "snapshot.now: ",
    ),
}


@pytest.fixture(scope="module")
def live(small: Live) -> Live:
    """Files of small worlds."""
    return small


def refused(control: httpx2.Client, file: bytes) -> list[Json]:
    """Why a file cannot be imported."""
    answer = control.post("/import", content=file, headers=HEADERS)
    assert (422, "unusable_file") == (answer.status_code, answer.json()["code"]), answer.text
    return list_of(answer.json(), "details")


@pytest.mark.promise("hidden-members-validated")
@pytest.mark.parametrize("what", PLACES)
@pytest.mark.matrix
def test_what_would_do_harm_later_is_refused_with_its_place(
    control: httpx2.Client, file: bytes, what: str
) -> None:
    spoil, place = PLACES[what]
    assert place in refused(control, spoil(file))[0]["message"]


@pytest.mark.promise("steps")
def test_the_keys_that_steps_of_a_file_name_count(control: httpx2.Client, file: bytes) -> None:
    """2 MB of a file kept 2.8 GB."""
    found = [line for line in lines(file) if line[0] != "step"]
    sandbox = next(body for kind, body in found if kind == "sandbox")
    merchant = next(body for kind, body in found if kind == "merchant")
    part = {"merchant": merchant["id"], "used": dict.fromkeys(map(str, range(2_400)))}
    step = {"at": sandbox["clock"]["now"], "clock": sandbox["clock"], "parts": [part]}
    step |= {"position": sandbox["position"], "raised": sandbox["raised"]}
    step["cause"] = {"kind": "control", "id": "x", "operation": "x"}
    for number in range(1, 101):
        found.append(("step", step | {"number": sandbox["step"] + number}))
    imported(control, sealed(found))
    answer = control.post("/rewind", json={"to_step": sandbox["step"] + 1})
    assert (409, "step_not_kept") == (answer.status_code, answer.json()["code"])


@pytest.mark.promise("ids-never-given-again")
def test_ids_that_would_be_given_again_are_refused_with_who_has_them(
    control: httpx2.Client, file: bytes
) -> None:
    spoilt = [line for line in lines(file) if line[0] != "step"]
    begun = spoilt[1][1]["position"]
    imported(control, sealed(spoilt))
    base = str(control.base_url).partition("/_sandbox")[0]
    headers = {"Authorization": f"Bearer {control.get('/credentials').json()['jwt']}"}
    new = created(
        httpx2.post(f"{base}/v2/customers", json=customer_body(), headers=headers, verify=NO_TLS)
    )["customer"]["id"]
    later = lines(exported(control))
    assert begun < later[1][1]["position"]
    later[1][1]["position"] = begun
    told = [detail["message"] for detail in refused(control, sealed(later))]
    assert any(says(each, "customers", new) for each in told)
    (event,) = [body["id"] for kind, body in later if kind == "event" and body["subject"] == new]
    assert any(says(each, "event", event) for each in told)


@pytest.mark.promise("file-reads-no-file")
@pytest.mark.parametrize("scenario", ["/etc/passwd", "../../etc/passwd", "./mine.yaml", "nowhere"])
def test_a_file_does_not_say_which_files_the_server_reads(
    live: Live, control: httpx2.Client, file: bytes, scenario: str
) -> None:
    """A reset without a body takes the server's own scenario then."""
    spoilt = changed(file, "sandbox", lambda body: body.update(scenario=scenario))
    assert live.settings.scenario == imported(control, spoilt)["scenario"]
    answer = control.post("/reset")
    assert (200, live.settings.scenario) == (
        answer.status_code,
        answer.json()["scenario"],
    ), answer.text


@pytest.mark.promise("lines-of-files")
def test_a_line_of_very_many_values_is_refused_before_it_is_read(
    control: httpx2.Client, file: bytes
) -> None:
    head = gzip.decompress(file).splitlines(keepends=True)[0]
    text = b'{"event":[' + b"{}," * (package.LONGEST_LINE // 3) + b"{}]}\n"
    with patch("stub_server.storage.package.orjson.loads", wraps=orjson.loads) as read:
        answer = control.post("/import", content=gzip.compress(head + text), headers=HEADERS)
    assert (422, True) == (answer.status_code, "longer than 4 MiB" in answer.json()["message"])
    assert not any(len(call.args[0]) > package.LONGEST_LINE for call in read.call_args_list)


@pytest.fixture(scope="module")
def file(live: Live) -> Iterator[bytes]:
    """A file with a history."""
    name = "bad-files"
    with httpx2.Client(
        base_url=f"{live.url}/s/{name}/_sandbox", timeout=60, verify=NO_TLS
    ) as control:
        token = control.get("/credentials").json()["jwt"]
        url = f"{live.url}/s/{name}/v2/customers"
        headers = {"Authorization": f"Bearer {token}"}
        created(httpx2.post(url, json=customer_body(), headers=headers, verify=NO_TLS))
        yield exported(control, history=True)
    live.forget(name)


@pytest.mark.promise("file-is-validated")
@pytest.mark.parametrize("what", SPOILT)
@pytest.mark.matrix
def test_a_file_that_cannot_be_used_is_refused_and_changes_nothing(
    control: httpx2.Client, file: bytes, what: str
) -> None:
    kind, spoil = SPOILT[what]
    before = exported(control, history=True)
    details = refused(control, spoil(file))
    assert {("file", kind)} == {(detail["field"], detail["code"]) for detail in details}, details
    assert all(detail["message"] for detail in details)
    assert before == exported(control, history=True)


def test_what_does_not_fit_is_listed_by_table_and_pointer(
    control: httpx2.Client, file: bytes
) -> None:
    found = lines(file)
    spoilt = [body for kind, body in found if kind == "record" and body["table"] == "plans"][:3]
    for body in spoilt:
        body["public"]["amount"] = "free"
    spoilt[2]["public"]["interval"] = "century"
    first, second = refused(control, sealed(found))
    assert says(first["message"], "plans /amount", "3 records", spoilt[0]["id"])
    assert says(second["message"], "plans /interval", "1 record", spoilt[2]["id"])


@pytest.mark.promise("nothing-request-costs-more-length")
def test_the_accents_of_a_text_cost_no_more_than_other_characters(
    control: httpx2.Client, file: bytes
) -> None:
    """Texts are searched without accents: to sort 60,000 of one letter would take seconds."""
    seconds = []
    for text in ("x" * 60_000, "\u0300" * 30_000 + "\u0316" * 30_000):
        described = _inside("record", "products", "public", description=text)(file)
        began = process_time()
        imported(control, described)
        seconds.append(process_time() - began)
    assert seconds[1] < 2 * seconds[0]


@pytest.mark.promise("files")
def test_a_small_file_that_unpacks_to_a_very_large_one_is_refused(
    control: httpx2.Client, file: bytes
) -> None:
    """A megabyte of zeros is a kilobyte packed: 300 of them, and nobody waits for the last one."""
    head = gzip.decompress(file).splitlines(keepends=True)[0]
    bomb = packed(head, b"[]\n" * 350_000, 300)
    assert len(bomb) < 2 << 20
    assert "damaged" == refused(control, bomb)[0]["code"]
    with patch.object(package, "MOST_BYTES", 100_000):
        assert "too_large" == refused(control, file)[0]["code"]
    long = packed(head, b"x" * (1 << 20), 20)
    assert "longer than 4 MiB" in refused(control, long)[0]["message"]


def packed(head: bytes, part: bytes, times: int) -> bytes:
    """A file that begins as others do, and has a part so often."""
    packer = zlib.compressobj(9, wbits=31)
    parts = [packer.compress(head), *(packer.compress(part) for _ in range(times))]
    return b"".join([*parts, packer.flush()])
