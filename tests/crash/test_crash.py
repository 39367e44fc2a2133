"""A process that is killed at random moments and at planted places loses nothing that it
has acknowledged.
"""

import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from .damage import suffer
from .deliveries import flooded

pytestmark = [pytest.mark.check, pytest.mark.turn]

ROOT = Path(__file__).parents[2]
KILLS = 10


@pytest.mark.promise("kill-loses-nothing")
def test_what_was_acknowledged_is_there_after_every_kill() -> None:
    """`make crash` does so hundreds of times."""
    command = [
        sys.executable,
        "-m",
        "tests.crash",
        "--kills",
        str(KILLS),
        "--fresh",
        "8",
        "--events",
        "0",
    ]
    command += ["--damages", "0", "0", "0", "--replicas", "0"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    report = orjson.loads(done.stdout)
    assert (KILLS, []) == (report["kills"], report["wrong"])
    assert report["looked_at"] >= KILLS - 2
    assert len(report["places"]) > 4


@pytest.mark.promise("damage-is-found")
def test_damage_of_a_store_is_found_and_nothing_is_deleted(tmp_path: Path) -> None:
    """`make crash` does so hundreds of times."""
    suffered = suffer(tmp_path, (4, 2, 2), 5)
    assert [] == suffered.wrong
    assert suffered.found >= 3


def test_every_event_arrives_though_the_server_is_killed_on_the_way(tmp_path: Path) -> None:
    """Twice only where it died between an answer and its record: at most so many as are under way
    at once.
    """
    came = flooded(tmp_path, 300, kills=2)
    assert [] == came.missing
    assert 300 == came.events
    assert came.repeated <= 2
