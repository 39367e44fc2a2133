"""Certification: each receiver with a bug breaks the rule that is about it and no other; the right
ones break none.
"""

import shutil
from concurrent.futures import ThreadPoolExecutor
from queue import Queue

import httpx2
import pytest

from ..conftest import Serve
from ..receivers.running import KEY, NODE, PYTHON, shop
from ..receivers.shop import BUGS
from ..support.live import NO_TLS, Live
from ..support.make import Json, done
from ..support.receiver import Receiver
from ..support.refusal import says
from .steps import UNKNOWN, refused

pytestmark = [pytest.mark.check, pytest.mark.turn]

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="the shop in Node needs node")


def broken(report: Json) -> list[str]:
    """The rules that a receiver breaks."""
    return [rule["id"] for rule in report["rules"] if rule["result"] == "failed"]


def rule(report: Json, ident: str) -> Json:
    """One rule of a report."""
    return next(entry for entry in report["rules"] if entry["id"] == ident)


Case = tuple[str, ...]
RIGHT: Case = ()
# Receivers that call nobody: what each is failed for, and what cannot be judged.
SILENT: dict[Case, tuple[list[str], list[str]]] = {
    ("counted",): ([], []),
    ("counted", "--bug", "duplicate"): (["duplicate"], []),
    ("counted", "--bug", "simultaneous"): (["simultaneous"], []),
    ("counted", "--bug", "interrupted"): (["interrupted"], []),
    ("counted", "--bug", "signature"): (["signature"], []),
    ("named",): ([], ["simultaneous"]),
    ("named", "--bug", "duplicate"): (["duplicate"], []),
}
CASES: tuple[Case, ...] = (
    RIGHT,
    ("--work", "none"),
    ("order.created",),
    *(("--work", *case) for case in SILENT),
)
# What is done late may be seen under the next rule where many others are judged at the same time.
ALONE: tuple[Case, ...] = (("--work", "later"), ("--work", "later", "--bug", "duplicate"))
NODE_BUGS = (None, "duplicate", "raw_body", "simultaneous")
BROKEN = "test_a_bug_breaks_the_rule_that_is_about_it"


@pytest.fixture(scope="module")
def reports(live: Live, serve: Serve, request: pytest.FixtureRequest) -> dict[Case, Json]:
    """The reports on every shop, each in its own sandbox. Most of it is waiting; a server judges
    four at a time.

    Of those with a bug only the ones that this run asks for.
    """
    servers: Queue[Live] = Queue()
    for server in (live, serve(seed=43)):
        for _ in range(4):
            servers.put(server)

    def judged(case: Case) -> Json:
        server = servers.get()
        args = [word for word in case if word not in ("node", "order.created")]
        name = "-".join(word.lstrip("-").replace("_", "-") for word in ("certified", *case))
        try:
            with httpx2.Client(
                base_url=f"{server.url}/s/{name}", timeout=60, verify=NO_TLS
            ) as client:
                client.headers["Authorization"] = (
                    f"Bearer {client.get('/_sandbox/credentials').json()['jwt']}"
                )
                with shop(client, *args, program=NODE if "node" in case else PYTHON) as url:
                    body = {"url": url, "signing_key": KEY}
                    body |= {"event_type": "order.created"} if "order.created" in case else {}
                    body |= {"effects": url} if case[1:] in SILENT else {}
                    report: Json = done(client.post("/_sandbox/certify", json=body))["certificate"]
            server.forget(name)
        finally:
            servers.put(server)
        return report

    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    asked = [item.callspec.params for item in items if item.originalname == BROKEN]
    # the longest first
    bugs = sorted((str(params["bug"]) for params in asked), key="in_time".__ne__)
    in_node = [("node", *(("--bug", bug) if bug else ())) for bug in NODE_BUGS]
    cases: list[Case] = [
        *(("--bug", bug) for bug in bugs),
        *CASES,
        *(in_node if shutil.which("node") else ()),
    ]
    with ThreadPoolExecutor(8) as pool:
        found = dict(zip(cases, pool.map(judged, cases), strict=True))
    return found | {case: judged(case) for case in ALONE}


def test_a_right_receiver_passes_every_rule(reports: dict[Case, Json]) -> None:
    report = reports[RIGHT]
    assert ([], True) == (broken(report), report["passed"]), report
    assert {"passed": 15, "failed": 0, "not_applicable": 0, "unknown": 0} == report["summary"]
    assert [*BUGS] == [entry["id"] for entry in report["rules"]]
    assert {None} == {entry["advice"] for entry in report["rules"]}
    assert ("certified", "order.paid") == (report["sandbox"], report["event_type"])


@pytest.mark.parametrize("bug", BUGS)
@pytest.mark.matrix
def test_a_bug_breaks_the_rule_that_is_about_it(reports: dict[Case, Json], bug: str) -> None:
    report = reports["--bug", bug]
    assert ([bug], False) == (broken(report), report["passed"]), report
    assert rule(report, bug)["advice"]


@needs_node
@pytest.mark.parametrize("bug", NODE_BUGS)
def test_a_receiver_in_node_is_judged_alike(reports: dict[Case, Json], bug: str | None) -> None:
    report = reports["node", "--bug", bug] if bug else reports["node",]
    assert ([bug] if bug else []) == broken(report), report


def test_what_cannot_be_seen_is_not_judged_and_not_passed(reports: dict[Case, Json]) -> None:
    """A receiver that changes nothing through the API, or is certified with a type that it does not
    act upon.
    """
    unseen = ["duplicate", "simultaneous", "interrupted"]
    for report in (reports["--work", "none"], reports["order.created",]):
        assert unseen == [entry["id"] for entry in report["rules"] if entry["result"] == "unknown"]
        assert (None, 3, 0) == (
            report["passed"],
            report["summary"]["unknown"],
            report["summary"]["not_applicable"],
        )
        assert "showed no effect" in rule(report, "duplicate")["received"]


@pytest.mark.parametrize("case", SILENT, ids=" ".join)
def test_a_receiver_that_calls_nobody_is_judged_by_its_effects(
    reports: dict[Case, Json], case: Case
) -> None:
    """By a number that each delivery changes; a text says the same of one delivery, and not of five
    at once.
    """
    report, (failed, unknown) = reports["--work", *case], SILENT[case]
    assert failed == broken(report), report
    assert unknown == [entry["id"] for entry in report["rules"] if entry["result"] == "unknown"]
    assert report["passed"] is (False if failed else None if unknown else True)


@pytest.mark.parametrize(
    "body",
    [
        {"url": "ftp://example.com", "signing_key": KEY},
        {"signing_key": KEY},
        {"webhookId": UNKNOWN, "url": "http://127.0.0.1:9/", "signing_key": KEY},
        {"url": "http://127.0.0.1:9/", "signing_key": "whsec_short"},
        {"url": "http://127.0.0.1:9/", "signing_key": KEY + "="},
        {"url": "http://127.0.0.1:9/", "signing_key": KEY, "event_type": "order.pago"},
    ],
)
def test_what_cannot_be_certified_is_refused(control: httpx2.Client, body: Json) -> None:
    refused(control.post("/certify", json=body), 422, "validation_error")


@pytest.mark.parametrize("member", ["url", "webhookId"])
def test_a_refusal_is_about_the_alternative_that_is_nearest(
    control: httpx2.Client, member: str
) -> None:
    """Each unknown member makes an alternative less near."""
    answer = control.post("/certify", json={member: 5, "unknown": 1})
    found = {(each["field"], each["code"]) for each in answer.json()["details"]}
    assert {(member, "type"), ("unknown", "unknown_field")} == found


@pytest.mark.promise("address-certification-asks-effects-guarded")
def test_a_server_open_to_others_certifies_no_receiver_on_its_own_machine(
    serve: Serve, receiver: Receiver
) -> None:
    """The guard of every delivery holds here too, and for the address that is asked for effects."""
    # the test itself listens on loopback
    public = serve(host="0.0.0.0", admin_key="k", secret=b"s")  # noqa: S104 - a setting: it listens on loopback
    answer = httpx2.post(
        f"{public.url}/_sandbox/certify",
        json={"url": receiver.url, "signing_key": KEY, "effects": receiver.url},
        headers={"X-Sandbox-Admin-Key": "k"},
        timeout=60,
        verify=NO_TLS,
    )
    report = done(answer)["certificate"]
    assert ["accepts"] == broken(report)
    assert says(rule(report, "accepts")["received"], "blocked")
    assert 0 == receiver.connections
