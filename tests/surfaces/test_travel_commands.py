"""`stub-server sandboxes`, `fork`, `snapshots` and `rewind`: what they print and how they exit."""

import httpx2

from ..support.command import asked, done, run
from ..support.live import NO_TLS, Live
from ..support.make import Maker
from ..support.refusal import says


def test_the_sandboxes_of_a_server_are_listed(
    to: list[str], api: httpx2.Client, live: Live, sandbox_name: str, make_customer: Maker
) -> None:
    make_customer()
    head, *lines = done("sandboxes", "list", *to[:2]).splitlines()
    assert ["NAME", "LAST_USED_AT", "STEP", "NOW", "RECORDS", "SCENARIO", "PARENT"] == head.split()
    (line,) = [line for line in lines if line.split()[0] == sandbox_name]
    shown = api.get("/_sandbox/sandboxes/" + sandbox_name).json()["sandbox"]
    name, _, *others = line.split()
    assert [sandbox_name, "1", shown["now"], str(shown["records"]), "default", "-"] == [
        name,
        *others,
    ]
    assert [sandbox_name] == [
        world["name"]
        for world in asked("sandboxes", "list", f"{sandbox_name}*", *to[:2])["sandboxes"]
    ]
    assert "There are no such sandboxes.\n" == done("sandboxes", "list", "nobody", *to[:2])


def test_a_sandbox_is_created_with_its_data_and_told_how_it_is_called(live: Live) -> None:
    said = done(
        "sandboxes",
        "create",
        "made-by-hand",
        "--scenario",
        "empty",
        "--seed",
        "7",
        "--server",
        live.url,
    )
    try:
        assert f"made-by-hand is created.\n  address   {live.url}/s/made-by-hand\n" in said
        shown = asked("sandboxes", "list", "made-by-hand", "--server", live.url)["sandboxes"][0]
        assert ("empty", 7) == (shown["scenario"], shown["seed"])
        again = run("sandboxes", "create", "made-by-hand", "--server", live.url)
        assert (1, True) == (again.exit_code, "already" in again.output)
    finally:
        live.app.sandboxes.forget("made-by-hand")


def test_a_fork_is_told_with_its_address_and_key(
    to: list[str], live: Live, sandbox_name: str, make_customer: Maker
) -> None:
    make_customer()
    name = f"{sandbox_name}-fork"
    said = done("fork", name, "--step", "0", "--ttl", "60", *to)
    assert f"{name} is a fork of {sandbox_name} after step 0." in said
    assert f"{live.url}/s/{name}\n" in said
    key = said.split()[-1]
    assert (
        200
        == httpx2.get(
            f"{live.url}/v2/customers", headers={"Authorization": f"Bearer {key}"}, verify=NO_TLS
        ).status_code
    )
    made = asked("fork", "--deliver", *to)["sandbox"]
    assert (sandbox_name, 1, None) == (made["parent"], made["step"], made["expires_at"])
    for world in (name, made["name"]):
        live.app.sandboxes.forget(world)
    refused = run("fork", "--step", "2", *to)
    assert (1, True) == (refused.exit_code, says(refused.stderr, 1))
