"""Receivers that are hard to reach: behind a certificate of one's own, and behind connections that
end in between.
"""

from pathlib import Path

import httpx2
import pytest

from stub_server.webhooks.network import authorities

from ..support.authority import server_context
from ..support.make import Json, created
from ..support.processes import Process
from ..support.receiver import Receiver, receiving
from .hooks import WEBHOOKS, Hook, sent


def _outcome(server: Process, url: str) -> tuple[str, int | None, str | None]:
    """What comes of a test delivery to an address."""
    with server.api() as api:
        made: Json = created(api.post(WEBHOOKS, json={"url": url, "events": ["*"]}))["webhook"]
        log = sent(api, made)
    return log["status"], log["response_status"], log["error"]


@pytest.mark.check
@pytest.mark.parametrize("by", ["--webhook-cacert", "STUB_WEBHOOK_CACERT", "SSL_CERT_FILE"])
def test_a_receiver_with_a_certificate_of_ones_own_is_reached(by: str, tmp_path: Path) -> None:
    """If its authority is named, and not otherwise."""
    tls, authority = server_context(tmp_path)
    flags = [by, str(authority)] if by.startswith("--") else []
    env = {} if flags else {by: str(authority)}
    with receiving(tls=tls) as receiver:
        with Process(*flags, env=env) as server:
            assert ("delivered", 200, None) == _outcome(server, receiver.url)
        assert 1 == len(receiver.requests)
        if flags:
            with Process() as server:
                assert ("failed", None, "tls") == _outcome(server, receiver.url)
        assert 1 == len(receiver.requests)


@pytest.mark.promise("nothing-request-costs-more-length")
@pytest.mark.check
def test_no_receiver_chooses_how_much_a_handshake_costs(tmp_path: Path) -> None:
    """A group of 10,000 bits took 0.6 s of the event loop, and each attempt again."""
    names = [cipher["name"] for cipher in authorities(None).get_ciphers()]
    assert all(name.startswith(("TLS_", "ECDHE-")) for name in names)
    tls, authority = server_context(tmp_path)
    tls.set_ecdh_curve("secp521r1")
    with receiving(tls=tls) as receiver, Process("--webhook-cacert", str(authority)) as server:
        assert ("failed", None, "tls") == _outcome(server, receiver.url)


def test_a_connection_that_ends_without_an_answer_is_a_failed_attempt(
    api: httpx2.Client, hook: Hook, receiver: Receiver
) -> None:
    """Each attempt has a connection of its own, so none can meet one that has ended meanwhile."""
    made = hook()
    assert "delivered" == sent(api, made)["status"]
    receiver.hangs_up = lambda number: True
    for connections in (2, 3):
        log = sent(api, made)
        assert ("failed", "connection_failed", 1) == (
            log["status"],
            log["error"],
            log["attempt_count"],
        )
        assert (connections, connections) == (len(receiver.requests), receiver.connections)
