"""A run does no harm: what it sends, to whose records, and what of them it shows.

It is watched at the backend.
"""

import re

import pytest

from stub_server.tools.verify.catalogue import record_of
from stub_server.tools.verify.exchange import Answer, Exchange
from stub_server.tools.verify.forms import FORMS, rendered
from stub_server.tools.verify.outcome import of_run

from .watched import Watched, watched

pytestmark = [pytest.mark.check, pytest.mark.turn]

_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_READS = {"GET", "HEAD", "OPTIONS"}


@pytest.fixture(scope="module")
def reading() -> Watched:
    return watched()


@pytest.fixture(scope="module")
def writing() -> Watched:
    return watched(write=True)


def body_of(message: bytes) -> dict[str, object]:
    found = Answer(200, body=message).json()
    return found if isinstance(found, dict) else {}


def accepted(run: Watched) -> list[Exchange]:
    """What may have changed something."""
    return [
        each
        for each in run.exchanges
        if each.request.method not in _READS and each.answer.status < 300
    ]


def shown(run: Watched) -> str:
    """Every form of the report, one after the other."""
    report = of_run(run.run, (), 90)
    return "\n".join(rendered(form, report=report) for form in FORMS.values())


@pytest.mark.promise("verify-only-reads")
def test_without_write_it_only_reads(reading: Watched) -> None:
    assert len(reading.exchanges) > 100
    assert {each.request.method for each in reading.exchanges} <= _READS


@pytest.mark.promise("verify-changes-its-own")
@pytest.mark.night
def test_it_changes_only_what_it_has_made(writing: Watched) -> None:
    made = set[str]()
    changed = 0
    for request, answer in writing.exchanges:
        if request.method not in _READS and answer.status < 300:
            named = _ID.findall(request.path)
            changed += bool(named)
            assert set(named) <= made, f"{request.method} {request.path}"
        if request.method == "POST" and answer.status < 300:
            made |= set(_ID.findall(answer.body.decode()))
    assert changed > 50


@pytest.mark.night
def test_webhooks_hear_nobody_or_the_project_of_the_run(writing: Watched) -> None:
    projects = {
        ident
        for each in accepted(writing)
        if each.request.path.endswith("/projects")
        for ident in _ID.findall(each.answer.body.decode())
    }
    seen = 0
    for request, answer in writing.exchanges:
        body = body_of(request.body)
        if "/webhooks" not in request.path or request.method in _READS or "url" not in body:
            continue
        seen += 1
        if isinstance(body["url"], str) and "://" in body["url"]:
            assert body["url"].startswith("https://verify.invalid/"), body
        if body.get("is_active") is True or (request.method == "POST" and "is_active" not in body):
            assert body.get("projectId") is not None, body  # else it would hear every project
            assert answer.status >= 400 or body["projectId"] in projects, body
    assert seen > 20


@pytest.mark.promise("verify-without-charges")
@pytest.mark.night
def test_without_charges_no_order_and_no_test_is_sent(writing: Watched) -> None:
    """Whether the credential opens such an operation is asked with a list in place of a body."""
    for request, answer in writing.exchanges:
        if request.method == "POST" and {"orders", "test", "retry"} & {*request.path.split("/")}:
            assert request.body == b"[]", request.path
            assert answer.status >= 400


@pytest.mark.night
def test_what_is_made_is_deleted_or_listed(writing: Watched) -> None:
    made = set[str]()
    for request, answer in writing.exchanges:
        ident = record_of(answer.json()).get("id")
        if request.method == "POST" and answer.status == 201 and ident:
            made.add(ident)
        ended = request.method == "DELETE" or request.path.endswith("/archive")
        if ended and (answer.status < 300 or answer.status == 404):  # 404: gone with its project
            made -= set(_ID.findall(request.path))
    assert made <= {path.rpartition("/")[2] for path in writing.run.cleanup.left_behind}


@pytest.mark.night
def test_at_most_ten_customers_stay_behind(writing: Watched) -> None:
    left = [path for path in writing.run.cleanup.left_behind if path.startswith("/v2/customers/")]
    assert 1 <= len(left) <= 10


@pytest.mark.promise("no-credential-in-report")
@pytest.mark.parametrize("mode", ["reading", pytest.param("writing", marks=pytest.mark.night)])
def test_no_credential_is_in_any_form(mode: str, request: pytest.FixtureRequest) -> None:
    """Of a run that writes `runs.py` asks it in every check, for two of the forms."""
    run: Watched = request.getfixturevalue(mode)
    text = shown(run)
    keys = {
        value.removeprefix("Bearer ")
        for each in run.exchanges
        for name, value in each.request.headers
        if name.lower() == "authorization" and "verify.no.credential" not in value
    }
    assert keys
    assert not [key for key in keys if key in text]


@pytest.mark.promise("no-value-in-report")
def test_nothing_of_others_is_in_a_report_that_only_read(reading: Watched) -> None:
    text = shown(reading)
    found = {
        value
        for each in reading.exchanges
        if "/v2/customers" in each.request.path and each.answer.status == 200
        for customer in body_of(each.answer.body).get("customers") or ()  # type: ignore[attr-defined]
        for value in (customer["id"], customer["email"], customer["document"])
    }
    assert len(found) > 100
    assert not [value for value in found if value in text]
