"""BR Code: the copy-and-paste text of a PIX charge, written as EMV tag-length-value; the sandbox's
own are read.

A generated code is always dynamic, points to a host of a reserved domain (RFC 2606, RFC 6761) and
says SANDBOX in the receiver's name: its checksum is right, as clients check it, but no bank can pay
it.
"""

import re
from binascii import crc_hqx
from functools import lru_cache
from io import BytesIO

from ..core import money
from ..core.text import without_accents

HOST = "pix.sandbox.example"
BASE = f"{HOST}/qr/v2/"  # a charge's address up to its txid
MARK = "SANDBOX"
NAME_LIMIT = 25


class BrCodeError(ValueError):
    """The text is no code of a sandbox. `reason`: form | checksum."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def _field(ident: str, value: str) -> str:
    return f"{ident}{len(value):02}{value}"


_HEAD = _field("00", "01") + _field("01", "12")
_ACCOUNT = _field("00", "br.gov.bcb.pix")
_CURRENCY = _field("52", "0000") + _field("53", "986")
_NO_REFERENCE = _field("62", _field("05", "***"))
_OWN = re.compile(
    rf"{_HEAD}26[0-9]{{2}}{re.escape(_ACCOUNT)}25[0-9]{{2}}{re.escape(BASE)}[0-9A-Za-z]{{26,35}}{_CURRENCY}"
    r"54[0-9]{2}(?P<amount>[0-9]{1,10}\.[0-9]{2})5802BR[ -~]{1,90}6304[0-9A-F]{4}"
)


def crc16(text: str) -> str:
    """CRC-16/CCITT-FALSE (polynomial 0x1021, initial value 0xFFFF) as four capital
    hexadecimal digits.
    """
    return f"{crc_hqx(text.encode(), 0xFFFF):04X}"


_READ = 512  # characters of a name or city: many times as many as the code has
_UNPRINTABLE = re.compile(r"[^ -~]")


def capitals(text: str, limit: int | None = None) -> str:
    """Printable ASCII capitals, accents dropped, runs of blanks joined, at most `limit` characters;
    may be empty.
    """
    plain = without_accents(text.upper()).encode("ascii", "ignore").decode().upper()
    return " ".join(_UNPRINTABLE.sub(" ", plain).split())[:limit].rstrip()


def merchant_name(text: str) -> str:
    """The receiver's name for field 59: printable ASCII, at most 25 characters, always
    ending in SANDBOX.
    """
    words = capitals(text).split()
    while words and words[-1] == MARK:
        words.pop()
    kept = " ".join(words)[: NAME_LIMIT - len(MARK) - 1].rstrip()
    return f"{kept} {MARK}".lstrip()


def encode(amount_cents: int, txid: str, name: str, city: str) -> str:
    """The BR Code of a single-use charge. `name` and `city` take any text.

    `txid` has 26 to 35 ASCII letters and digits. Field 62-05 is `***`, as in every dynamic code:
    the address has the txid.
    """
    url = BASE + txid
    amount = money.text(amount_cents)
    account = _field("26", _ACCOUNT + _field("25", url))
    receiver = _receiver(name[:_READ], city[:_READ])
    code = f"{_HEAD}{account}{_CURRENCY}{_field('54', amount)}{receiver}{_NO_REFERENCE}6304"
    return code + crc16(code)


@lru_cache(maxsize=256)
def _receiver(name: str, city: str) -> str:
    """Fields 58 to 60, the same in all codes of a merchant."""
    # EMV requires a city. A name in another alphabet may fold to an empty text.
    town = capitals(city, 15) or "BRASIL"
    return _field("58", "BR") + _field("59", merchant_name(name)) + _field("60", town)


def amount_of(code: str) -> int:
    """The amount, in cents, of a code that `encode` has made. Raises BrCodeError."""
    found = _OWN.fullmatch(code)
    if found is None:
        raise BrCodeError("form", "It is not of the form that the sandbox's PIX codes have.")
    if code[-4:] != crc16(code[:-4]):
        raise BrCodeError(
            "checksum", f"The checksum is {crc16(code[:-4])}, the code says {code[-4:]}."
        )
    return int(found["amount"].replace(".", ""))


@lru_cache(maxsize=64)
def drawn(code: str, form: str) -> bytes:
    """The QR image of a BR Code as `svg` or `png`.

    The same code gives the same bytes, so a client may cache them.
    """
    import segno  # imported for the first image, not at every start

    out = BytesIO()
    # A white background, as a transparent one cannot be scanned on a dark page, and the quiet zone
    # that ISO/IEC 18004 requires.
    segno.make_qr(code, error="m", boost_error=False).save(
        out, kind=form, scale=6, border=4, dark="black", light="white"
    )
    return out.getvalue()


def end_to_end_id(ispb: str, at: str, suffix: str) -> str:
    """The 32 characters that name a payment: E, the payer bank's ISPB, the UTC minute, and 11
    letters and digits.

    `at` is a date-time in UTC.
    """
    return f"E{ispb}{at[:4]}{at[5:7]}{at[8:10]}{at[11:13]}{at[14:16]}{suffix}"
