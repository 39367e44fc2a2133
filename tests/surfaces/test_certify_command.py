"""`stub-server certify`: the report in text and JSON, and exit codes that a pipeline can go by."""

from collections.abc import Iterator

import httpx2
import pytest

from ..conftest import Serve
from ..receivers.running import KEY, shop
from ..support.command import run
from ..support.make import created

pytestmark = [pytest.mark.check, pytest.mark.turn]


@pytest.fixture
def right(api: httpx2.Client) -> Iterator[str]:
    """The address of a receiver without a bug."""
    with shop(api) as url:
        yield url


def test_a_right_receiver_exits_0(to: list[str], right: str) -> None:
    said = run("certify", right, "--signing-key", KEY, *to)
    assert 0 == said.exit_code, said.output
    (line,) = said.output.splitlines()
    assert line.startswith(
        f"{right} was sent order.paid and watched in the sandbox {to[-1]}: 15 passed, 0 failed"
    )


def test_a_broken_rule_exits_1_and_says_what_to_do(api: httpx2.Client, to: list[str]) -> None:
    with shop(api, "--bug", "unknown_type") as url:
        said = run("certify", url, "--signing-key", KEY, *to)
    assert 1 == said.exit_code, said.output
    assert 1 == said.output.count("result: failed")
    for text in ("id: unknown_type", "membership.upgraded", "400 after", "Answer 2xx"):
        assert text in said.output


@pytest.mark.parametrize(
    ("flag", "effects", "bug", "code"),
    [("--effects", "{}", (), 0), ("--effects-command", "curl -s {}", ("--bug", "duplicate"), 1)],
    ids=["right", "without de-duplication"],
)
def test_effects_make_it_known(
    api: httpx2.Client, to: list[str], flag: str, effects: str, bug: tuple[str, ...], code: int
) -> None:
    """By an address, or by a program of this machine that prints the number."""
    with shop(api, "--work", "counted", *bug) as url:
        said = run("certify", url, "--signing-key", KEY, flag, effects.format(url), *to)
    assert code == said.exit_code, said.output
    assert "0 unknown" in said.output.splitlines()[0]


def test_without_a_key_the_registered_webhook_is_certified(
    api: httpx2.Client, to: list[str]
) -> None:
    """By its own key; an address that no webhook has is a question of usage."""
    with shop(api) as url:
        refused = run("certify", url, *to)
        assert (2, True) == (refused.exit_code, "Or give its --signing-key." in refused.output)
        assert refused.output.startswith("Error: No webhook of the sandbox has this address.")
    made = created(
        api.post("/v2/webhooks", json={"url": url, "events": ["order.paid"], "is_active": False})
    )["webhook"]
    with shop(api, key=made["signing_key"]) as other:
        api.put(f"/v2/webhooks/{made['id']}", json={"url": other})
        assert 0 == run("certify", other, *to).exit_code


def test_what_cannot_be_asked_exits_2_and_says_why(to: list[str], serve: Serve) -> None:
    url = "http://127.0.0.1:9/"
    for args, says in (
        (
            (url, "--signing-key", KEY, "--server", "http://127.0.0.1:9"),
            "no sandbox answers at http://127.0.0.1:9",
        ),
        ((url, "--signing-key", "geheim", *to), "Error: --signing-key: "),
        (
            (url, "--signing-key", KEY, "--event", "order.pago", *to),
            'Error: --event: "order.pago" is',
        ),
        (("receiver", *to), "is not an address"),
        (
            (url, "--signing-key", KEY, "--server", serve(admin_key="k", scenario="empty").url),
            "give --admin-key",
        ),
        ((url, "--signing-key", KEY, "--server", to[1], "--sandbox", "-no-"), "name of a sandbox"),
        ((), "Missing argument 'URL'"),
    ):
        said = run("certify", *args)
        assert (2, True) == (said.exit_code, says in " ".join(said.output.split())), said.output
    known = run(
        "certify",
        url,
        "--signing-key",
        KEY,
        "--server",
        serve(admin_key="k", scenario="empty").url,
        "--admin-key",
        "k",
    )
    assert 1 == known.exit_code
