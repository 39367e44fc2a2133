"""The picture of a PIX code: at the address that the order shows, in two formats, and of this
sandbox's codes alone.
"""

from collections.abc import Iterator

import httpx2
import pytest

from stub_server.domain import brcode

from ..support.live import NO_TLS
from ..support.make import Maker

_OWN = brcode.encode(4990, "9d36b84fc70b478fb95c12729b90ca25", "Loja", "Recife")
_BODY = _OWN[:-4].replace("sandbox", "another")
FOREIGN = _BODY + brcode.crc16(_BODY)
OTHER = _OWN.replace("RECIFE", "OLINDA")


@pytest.fixture
def stranger() -> Iterator[httpx2.Client]:
    """A page that shows the picture: it has no credential."""
    with httpx2.Client(timeout=30, verify=NO_TLS) as client:
        yield client


@pytest.mark.parametrize(("ending", "media"), [("svg", "image/svg+xml"), ("png", "image/png")])
def test_an_order_shows_where_its_picture_is(
    make_order: Maker, stranger: httpx2.Client, ending: str, media: str
) -> None:
    """As an SVG, and under the other name as a PNG; a browser may keep it."""
    payment = make_order()["last_transaction"]
    shown = payment["qr_code_url"]
    assert "/_sandbox/qr.svg?" in shown
    answer = stranger.get(shown.replace("/qr.svg?", f"/qr.{ending}?"))
    assert (200, media) == (answer.status_code, answer.headers["content-type"])
    assert brcode.drawn(payment["qr_code"], ending) == answer.content
    assert "max-age=86400" == answer.headers["cache-control"]


@pytest.mark.parametrize("ending", ["svg", "png"])
@pytest.mark.parametrize(
    ("code", "says"), [(FOREIGN, "not of the form"), (OTHER, "The checksum is")]
)
def test_a_code_of_somebody_else_is_not_drawn(
    control: httpx2.Client, ending: str, code: str, says: str
) -> None:
    answer = control.get(f"/qr.{ending}", params={"code": code})
    assert (404, "not_found") == (answer.status_code, answer.json()["code"])
    assert says in answer.json()["message"]
