"""Which requests a recording has, and that each is sent again as it was and at its own time."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from time import sleep, time

import httpx2
import pytest

from ..support.live import Live
from ..support.make import created, customer_body
from ..support.recordings import Replayed, recorded
from .hooks import clients


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a recording goes."""
    return tmp_path / "bug.stub"


@pytest.mark.parametrize("is_changed", [False, True])
def test_a_recording_that_is_made_after_a_token_expired_replays(
    is_changed: bool, serve: Callable[..., Live], file: Path
) -> None:
    """On a running clock each request is sent at the machine's time at which it was made, however old the file is."""
    with clients(serve(now=None, scenario="empty", seed=41)) as (_, control):
        assert 200 == control.post("/reset").status_code
        token = created(control.post("/tokens", json={"expires_in": 1}))
        with httpx2.Client(headers={"Authorization": f"Bearer {token['token']}"}) as api:
            url = f"{control.base_url}".replace("/_sandbox", "")
            if is_changed:
                created(api.post(f"{url}v2/customers", json=customer_body()))
            assert 200 == api.get(f"{url}v2/customers").status_code
            sleep(max(0.0, datetime.fromisoformat(token["expires_at"]).timestamp() - time()) + 1)
            assert 401 == api.get(f"{url}v2/customers").status_code
        early = control.post("/rewind", json={"to": "2999-01-01T00:00:00Z"})  # which names the time of its request
        assert 409 == early.status_code
        sleep(0.1)
        replayed = Replayed(recorded(control, file))
        assert (0, 4 + is_changed) == (replayed.code, replayed.told["same"]), replayed.told["diff"]
