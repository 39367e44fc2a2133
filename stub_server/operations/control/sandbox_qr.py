"""QR images of the sandbox's own PIX codes. They need no credential, so that a page can show them."""

from collections.abc import Callable

from ...calls.call import Call
from ...calls.reply import Reply
from ...domain import qr
from ...domain.brcode import HOST, BrCodeError, parse
from ...kernel.problem import NotFound
from ...kernel.record import Body


def render_qr_svg(call: Call, query: Body) -> Reply:
    """200 with an SVG."""
    return _image(query["code"], qr.svg, b"image/svg+xml")


def render_qr_png(call: Call, query: Body) -> Reply:
    """200 with a PNG."""
    return _image(query["code"], qr.png, b"image/png")


def _image(code: str, draw: Callable[[str], bytes], media: bytes) -> Reply:
    try:
        url = parse(code).url
    except BrCodeError as error:
        raise NotFound(f"This is no PIX code of the sandbox: {error}") from None
    if url is None or not url.startswith(HOST + "/"):
        raise NotFound("This PIX code is of another issuer; the sandbox draws only its own.")
    return Reply(200, (draw(code),), media=media, headers=((b"cache-control", b"max-age=86400"),))
