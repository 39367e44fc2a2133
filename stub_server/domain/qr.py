"""QR images of a BR Code. The same code gives the same bytes, so a client may cache or compare them."""

from io import BytesIO

_BORDER = 4  # the quiet zone that ISO/IEC 18004 requires


def svg(code: str) -> bytes:
    """The QR image as a self-contained SVG document."""
    return _drawn(code, "svg", scale=6)


def png(code: str) -> bytes:
    """The QR image as a PNG file in black and white."""
    return _drawn(code, "png", scale=6)


def _drawn(code: str, form: str, scale: int) -> bytes:
    import segno  # imported for the first image, not at every start

    out = BytesIO()
    # A white background, as a transparent one cannot be scanned on a dark page.
    symbol = segno.make_qr(code, error="m", boost_error=False)
    symbol.save(out, kind=form, scale=scale, border=_BORDER, dark="black", light="white")
    return out.getvalue()
