"""A scenario file that is broken while the server runs: the log tells why, and the running world stays."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ..support.live import FROZEN, Live, running
from ..support.refusal import refused, says
from ..support.wire import Door
from .conftest import door_to

pytestmark = pytest.mark.check

GOOD = (
    "merchant: { name: Loja, city: Recife }\nrecords:\n  customers: [{ name: Ana, email: a@b.com, document: AB123 }]\n"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A scenario of the user's."""
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD, encoding="utf-8")
    return path


@pytest.fixture
def server(file: Path) -> Iterator[Live]:
    """A server over it."""
    with running(replace(FROZEN, scenario=str(file))) as live:
        yield live


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"merchant: [", "mine.yaml:2: is not YAML that can be read here: "),
        (b"nothing: at all", "mine.yaml:1: (root): "),
        (b"\xff", "mine.yaml:1: is not UTF-8"),
        (b"[" * 200_000, "mine.yaml:1: is nested deeper than 100 levels"),
        (
            GOOD.replace("name: Ana", "name: { repeat: x, length: 1.0e+9 }").encode(),
            "mine.yaml:3: records.customers[0].name.length: 1000000000.0 is not a length: give a number from 0 to ",
        ),
        (None, "mine.yaml: no such file"),
    ],
    ids=["syntax", "shape", "bytes", "deep", "long", "gone"],
)
def test_what_needs_the_file_is_refused_with_the_reason_in_the_log_and_the_world_stays(
    server: Live, file: Path, text: bytes | None, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    door = door_to(server, "default")
    before = door.ask("GET", "/v2/customers").body
    if text is None:
        file.unlink()
    else:
        file.write_bytes(text)
    anywhere = Door(server.port, "", door.token)
    told = refused(anywhere.ask("POST", "/_sandbox/reset"), 404, "scenario_not_found")
    assert reason in caplog.text
    assert not any(piece in told["message"] for piece in (str(file.parent), file.name, "nothing"))
    made = refused(anywhere.ask("POST", "/_sandbox/sandboxes", b'{"name":"another"}'), 404, "scenario_not_found")
    assert told["message"] == made["message"]
    mentioned = refused(anywhere.ask("GET", "/s/mentioned/v2/customers"), 404, "sandbox_not_found")
    assert says(mentioned["message"], "mentioned")
    assert mentioned["message"].endswith(told["message"])
    assert before == door.ask("GET", "/v2/customers").body
    assert ["default"] == [one["name"] for one in anywhere.ask("GET", "/_sandbox/sandboxes").json()["sandboxes"]]
    file.write_text(GOOD, encoding="utf-8")
    assert 200 == door.ask("POST", "/_sandbox/reset").status
