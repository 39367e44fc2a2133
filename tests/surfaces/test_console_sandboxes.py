"""The page of sandboxes: made, forked and deleted, snapshots, steps to go back to, and files."""

from collections.abc import Iterator
from urllib.parse import urljoin

import httpx2
import pytest

from ..conftest import Serve
from ..support.console import Console, Page
from ..support.live import NO_TLS, Live
from ..support.make import Maker, done, typed
from .conftest import Visit

ADMIN = "an admin key of the tests"
PAGE = "/console/sandboxes"
HOSTILE = "<script>alert(1)</script>\u202e\U0001f984"


@pytest.fixture(scope="module")
def guarded(serve: Serve) -> Live:
    """A server whose controls need a key."""
    # the test's server listens on loopback all the same
    return serve(admin_key=ADMIN, host="0.0.0.0")  # noqa: S104 - a setting: it listens on loopback


@pytest.fixture
def admin(guarded: Live) -> Iterator[httpx2.Client]:
    """Its admin."""
    headers = {"X-Sandbox-Admin-Key": ADMIN}
    with httpx2.Client(base_url=guarded.url, headers=headers, timeout=30, verify=NO_TLS) as client:
        yield client


def orders(api: httpx2.Client) -> int:
    """How many orders there are."""
    return typed(int, done(api.get("/v2/orders", params={"limit": 1}))["pagination"]["total"])


def send(console: Console, page: Page, label: str, **values: str) -> Page:
    """Send the form that has a button and these values."""
    form = next(
        form for form in page.forms if label in form.label and form.values.items() >= values.items()
    )
    headers = {"Origin": console.origin}
    return Page(
        console.http.post(urljoin(page.url, form.action), data=form.values, headers=headers)
    )


def upload(console: Console, file: bytes, **values: str) -> Page:
    """Send the form that takes a file."""
    page = console.open(PAGE)
    form = page.form("Import")
    headers = {"Origin": console.origin}
    address = urljoin(page.url, form.action)
    sent = {name: value for name, value in form.values.items() if name != "file"} | values
    return Page(
        console.http.post(address, data=sent, files={"file": ("x.sandbox", file)}, headers=headers)
    )


def test_it_refuses_settings_that_are_no_numbers_in_words(console: Console) -> None:
    for wrong in ("soon", "9" * 19, "9" * 30, "9" * 5_000):
        page = console.send(console.open(PAGE), "Save the settings", autopay=wrong)
        assert "was refused with 422" in page.text, wrong


def test_settings_are_switches_and_fields(console: Console, control: httpx2.Client) -> None:
    """A switch sends what it is, be it on or off; an empty field is a setting without a value."""
    page = console.open(PAGE)
    before = control.get("/settings").json()
    console.send(page, "Save the settings", autopay="5", strict_amounts="false")
    changed = before | {"autopay": 5, "strict_amounts": False}
    assert changed == control.get("/settings").json()
    form = page.form("Save the settings")
    both: dict[str, str | list[str]] = {"autopay": "", "strict_amounts": ["false", "true"]}
    headers = {"Origin": console.origin}
    console.http.post(urljoin(page.url, form.action), data=form.values | both, headers=headers)
    assert changed | {"autopay": None, "strict_amounts": True} == control.get("/settings").json()


def test_it_makes_forks_and_deletes_sandboxes(
    console: Console, live: Live, sandbox_name: str
) -> None:
    """What cannot be is refused in words."""
    names = [f"{sandbox_name}-{each}" for each in ("made", "fork")]
    try:
        page = console.send(
            console.open(PAGE), "Create a sandbox", name=names[0], scenario="empty", seed="7"
        )
        assert "Create a sandbox : done." in page.text
        assert f"Its address is {live.url}/s/{names[0]}" in page.text
        assert f"{names[0]} {live.url}/s/{names[0]} Copy" in page.text
        page = console.send(page, "Create a sandbox", name=names[0])
        assert "was refused with 409" in page.text
        page = console.send(page, "Create a sandbox", seed="many")
        assert "was refused with 422" in page.text
        page = send(console, page, "Fork", sandboxName=names[0])
        assert f"fork of {names[0]}" in page.text
        page = send(console, page, "Delete it", sandboxName=names[0])
        assert "Delete a sandbox : done." in page.text
        gone = httpx2.get(f"{live.url}/_sandbox/sandboxes/{names[0]}", verify=NO_TLS)
        assert 404 == gone.status_code
    finally:
        listed = httpx2.get(f"{live.url}/_sandbox/sandboxes?limit=100", verify=NO_TLS).json()[
            "sandboxes"
        ]
        for each in listed:
            if each["parent"] in names or each["name"] in names:
                live.forget(each["name"])


def test_to_delete_this_one_leads_to_another(
    console: Console, live: Live, sandbox_name: str
) -> None:
    page = send(console, console.open(PAGE), "Delete it", sandboxName=sandbox_name)
    assert (200, f"{live.url}{PAGE}") == (page.status, page.url.partition("?")[0])
    assert "Delete a sandbox : done." in page.text
    assert (
        404
        == httpx2.get(f"{live.url}/_sandbox/sandboxes/{sandbox_name}", verify=NO_TLS).status_code
    )


def test_the_default_one_stays(visit: Visit, live: Live) -> None:
    page = visit(live.url).open(PAGE)
    assert not [
        form
        for form in page.forms
        if form.values.get("sandboxName") == "default" and "Delete" in form.label
    ]


def test_a_name_finds_sandboxes(console: Console, sandbox_name: str) -> None:
    assert f"{sandbox_name} this one" in console.open(f"{PAGE}?name={sandbox_name}*").text
    assert "No sandbox has such a name" in console.open(f"{PAGE}?name=nothing-like-it").text


def test_a_snapshot_is_taken_restored_and_deleted(
    console: Console, api: httpx2.Client, make_order: Maker
) -> None:
    page = console.open(PAGE)
    assert "None yet." in page.text
    page = console.send(page, "Take a snapshot", name="before", description=HOSTILE)
    assert "Create a snapshot : done." in page.text
    assert HOSTILE in page.text
    assert "<script>alert" not in page.response.text
    before = orders(api)
    make_order()
    page = send(console, page, "Restore", snapshotName="before")
    assert (before, True) == (orders(api), "Restore a snapshot : done." in page.text)
    page = console.send(page, "Undo")
    assert before + 1 == orders(api)
    page = send(console, page, "Delete it", snapshotName="before")
    assert "None yet." in page.text
    assert "was refused with 422" in console.send(page, "Take a snapshot", name="no name!").text


def test_steps_are_a_line_to_travel_on(
    console: Console, api: httpx2.Client, make_order: Maker
) -> None:
    """To any of them, to the beginning, to an instant; each step leads to its request
    and records.
    """
    assert "Nothing has changed yet" in console.open(PAGE).text
    order = make_order()
    before = orders(api)
    other = make_order()
    page = console.open(PAGE)
    for text in (
        "Create a PIX order",
        f"created order {other['id'][:8]}…",
        "order.created",
        "0 As it began",
    ):
        assert text in page.text, text
    requests = [link for link in page.links if "/requests/req_" in link]
    records = [link for link in page.links if "/data/orders/" in link]
    assert requests
    assert records
    for link in (*requests, *records):
        assert 200 == console.follow(page, link).status
    steps = api.get(f"{console.base}/_sandbox/steps").json()["steps"]
    step = next(
        each["step"] for each in steps for change in each["changes"] if change["id"] == order["id"]
    )
    page = send(console, page, "Go back to here", to_step=str(step))
    assert "Rewind a sandbox : done." in page.text
    assert before == orders(api)
    assert before + 1 == (orders(api) if "Rewind" in console.send(page, "Undo").text else None)
    send(console, console.open(PAGE), "Go back to here", to_step="0")
    assert 404 == api.get(f"/v2/orders/{order['id']}").status_code
    page = console.send(console.open(PAGE), "Go back to this instant", to="yesterday")
    assert "was refused with 422" in page.text


def test_a_fork_begins_at_a_step(
    console: Console, live: Live, api: httpx2.Client, make_order: Maker, sandbox_name: str
) -> None:
    make_order()
    make_order()
    page = send(console, console.open(PAGE), "Fork from here", step="1")
    assert "Fork a sandbox : done." in page.text
    listed = httpx2.get(f"{live.url}/_sandbox/sandboxes?limit=100", verify=NO_TLS).json()[
        "sandboxes"
    ]
    made = [each for each in listed if each["parent"] == sandbox_name]
    assert [1] == [each["step"] for each in made]
    live.forget(made[0]["name"])


def test_a_sandbox_goes_to_a_file_and_comes_back(
    console: Console, api: httpx2.Client, make_order: Maker
) -> None:
    """The file is what the control sends. One that is none changes nothing."""
    order = make_order()
    answer = console.http.get(f"{console.base}/console/export", params={"history": "true"})
    assert (200, "application/vnd.stub.sandbox+gzip") == (
        answer.status_code,
        answer.headers["content-type"],
    )
    send(console, console.open(PAGE), "Go back to here", to_step="0")
    assert 404 == api.get(f"/v2/orders/{order['id']}").status_code
    refused = upload(console, b"no file of a sandbox")
    assert "was refused with 422" in refused.text
    page = upload(console, answer.content)
    assert "Import a sandbox : done." in page.text
    assert 200 == api.get(f"/v2/orders/{order['id']}").status_code


def test_a_large_file_is_read(console: Console, api: httpx2.Client) -> None:
    """Larger than any other form, up to a bound."""
    assert "was refused with 422" in upload(console, b"x" * 3_000_000).text
    page = console.open("/console/requests")
    form = page.form("Forget all")
    address = urljoin(page.url, form.action)
    headers = {"Origin": console.origin}
    answer = console.http.post(
        address, data=form.values | {"more": "x" * 1_100_000}, headers=headers
    )
    assert 413 == answer.status_code


def test_a_control_key_shows_its_own_alone(
    visit: Visit, guarded: Live, admin: httpx2.Client
) -> None:
    assert admin.post("/_sandbox/sandboxes", json={"name": "mine"}).status_code in (201, 409)
    key = admin.get("/s/mine/_sandbox/credentials").json()["control_key"]
    console = visit(guarded.url, "mine")
    page = console.open(PAGE)
    assert 403 == page.status
    page = console.send(page, "Open the console", key=key)
    assert "Your key is for one sandbox." in page.text
    assert not [form for form in page.forms if "Import" in form.label or "Fork" in form.label]
    assert "Create a snapshot : done." in console.send(page, "Take a snapshot", name="mine").text
    headers = {"Origin": console.origin}
    token = page.form("Take a snapshot").values["token"]
    sent = {"token": token, "file": "x" * 1_100_000}
    stranger = visit(guarded.url, "mine").http.post(
        f"{console.base}{PAGE}/import", data=sent, headers=headers
    )
    assert 413 == stranger.status_code


@pytest.mark.parametrize("header", ["X-Sandbox-Admin-Key", "X-Sandbox-Control-Key"])
def test_it_is_rotated_by_a_click(
    visit: Visit, guarded: Live, admin: httpx2.Client, header: str
) -> None:
    """Who came with the control key, which ends, stays in the console with the new one."""
    name = header.lower()
    admin.post("/_sandbox/sandboxes", json={"name": name}).raise_for_status()
    old = admin.get(f"/s/{name}/_sandbox/credentials").json()
    console = visit(guarded.url, name)
    key = ADMIN if header == "X-Sandbox-Admin-Key" else old["control_key"]
    console.send(console.open(PAGE), "Open the console", key=key)
    page = console.send(console.open(PAGE), "Rotate it")
    new = admin.get(f"/s/{name}/_sandbox/credentials").json()
    assert "Give a sandbox new credentials : done." in page.text
    assert page.url.startswith(f"{console.base}/console/keys?done=req_")
    assert f'data-copy="{new["private_key"]}"' in page.response.text
    assert f'data-copy="{new["control_key"]}"' in page.response.text
    assert [] == [name for name in ("private_key", "control_key", "jwt") if old[name] == new[name]]
    assert not [form for form in page.forms if form.label == "Undo"]
    assert 200 == console.open(PAGE).status
    admin.delete(f"/_sandbox/sandboxes/{name}").raise_for_status()
