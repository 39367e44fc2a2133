"""Deliveries that no client library sends: guarded like every other, and never more than they
should be.
"""

import asyncio
from collections.abc import Callable
from unittest.mock import Mock

import pytest

from stub_server.domain.deliveries import Delivery, Failed
from stub_server.webhooks.receiver import Session
from stub_server.webhooks.sender import Sender

from ..support.receiver import Receiver

KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
HERE, ELSEWHERE = Sender(local=True), Sender(local=False)
SAMPLE = {"id": "evt_1", "type": "order.paid"}


def to(url: str, sender: Sender) -> Session:
    """A session whose deliveries have a header of the merchant's own."""
    return Session(Mock(), Delivery(url, "", b"", (("x-loja", "matriz"),), (KEY,)), sender, Mock())


def together(url: str, sender: Sender = HERE) -> list[int | None]:
    """The answers to three copies."""
    return asyncio.run(to(url, sender).send_together(SAMPLE, 3))


def half(url: str, sender: Sender = HERE) -> None:
    """Half of a delivery."""
    asyncio.run(to(url, sender).send_half(SAMPLE))


@pytest.mark.parametrize("send", [half, together])
def test_what_a_delivery_may_not_reach_these_do_not_reach_either(
    receiver: Receiver, send: Callable[[str, Sender], object]
) -> None:
    for address in (receiver.url, "http://169.254.169.254/", "http://[::ffff:169.254.169.254]/"):
        route = ELSEWHERE if address == receiver.url else HERE
        with pytest.raises(Failed, match="blocked"):
            send(address, route)
    assert 0 == receiver.connections
