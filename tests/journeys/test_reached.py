"""Receivers that are hard to reach: behind a certificate of one's own, and behind connections that end in between."""

from pathlib import Path

import httpx2
import pytest

from ..support.authority import server_context
from ..support.make import Json, created
from ..support.processes import Process
from ..support.receiver import Receiver, receiving
from .hooks import WEBHOOKS, Hook, sent
from .steps import refused


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


@pytest.mark.check
def test_a_file_without_certificates_is_refused_at_the_start(tmp_path: Path) -> None:
    """SSL_CERT_FILE is everybody's: that it names nothing shows where a certificate is asked for."""
    (tmp_path / "empty.pem").write_text("nothing\n", encoding="utf-8")
    said = Process("--webhook-cacert", str(tmp_path / "empty.pem")).refused()
    assert "empty.pem has no certificate in PEM" in said
    env = {"SSL_CERT_FILE": str(tmp_path / "missing.pem")}
    with receiving(tls=server_context(tmp_path)[0]) as receiver, Process(env=env) as server:
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
        assert ("failed", "connection_failed", 1) == (log["status"], log["error"], log["attempt_count"])
        assert (connections, connections) == (len(receiver.requests), receiver.connections)


@pytest.mark.parametrize("port", ["0", "65536", "99999", "00080x", ""])
def test_an_address_with_an_impossible_port_is_rejected(
    api: httpx2.Client, control: httpx2.Client, hook: Hook, port: str
) -> None:
    url = f"http://127.0.0.1:{port}/hook"
    key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    for answer in (
        api.post(WEBHOOKS, json={"url": url, "events": ["*"]}),
        api.put(f"{WEBHOOKS}/{hook()['id']}", json={"url": url}),
        control.post("/certify", json={"url": url, "signing_key": key}),
        control.post("/certify", json={"url": "http://127.0.0.1:9/", "signing_key": key, "effects": url}),
    ):
        assert ["format"] == [*refused(answer, 422, "validation_error").values()]


@pytest.mark.parametrize("host", ["127.0.0.1:1", "127.0.0.1:65535", "[::1]:8080", "[::1]", "loja.example"])
def test_every_possible_port_is_accepted(api: httpx2.Client, hook: Hook, host: str) -> None:
    assert f"http://{host}/hook?a=b" == hook(url=f"http://{host}/hook?a=b")["url"]
