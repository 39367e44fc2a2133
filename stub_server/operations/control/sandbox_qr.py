"""QR images of the sandbox's own PIX codes.

They need no credential, so that a page can show them.
"""

from ...core.problem import NotFound
from ...core.record import Body
from ...core.slices import BackgroundWorker
from ...domain.brcode import BrCodeError, amount_of, drawn
from ...server.reply import Reply
from ...server.work import Work

_DRAWING = BackgroundWorker()
"""Draws one image at a time beside all requests: an image takes 10 ms of CPU time."""


async def render_qr_svg(work: Work, query: Body) -> Reply:
    return await _image(work, query["code"], "svg", b"image/svg+xml")


async def render_qr_png(work: Work, query: Body) -> Reply:
    return await _image(work, query["code"], "png", b"image/png")


async def _image(work: Work, code: str, form: str, media: bytes) -> Reply:
    try:
        amount_of(code)
    except BrCodeError as error:
        raise NotFound(f"This is not the qr_code of a PIX order: {error}") from None
    name = work.sandbox.name
    with work.server.waiting.take(name, for_anybody=True):
        async with _DRAWING.own(name):  # one of each sandbox is in the line
            image = await _DRAWING.beside(lambda: drawn(code, form))
    return Reply(200, (image,), media=media, headers=((b"cache-control", b"max-age=86400"),))
