"""BR Code: the copy-and-paste text of a PIX charge, written and strictly read as EMV tag-length-value.

A generated code is always dynamic, points to a host of a reserved domain (RFC 2606, RFC 6761) and says SANDBOX in the
receiver's name: its checksum is right, as clients check it, but no bank can pay it.
"""

import re
import unicodedata
from binascii import crc_hqx
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO

from ..kernel import money

HOST = "pix.sandbox.example"
BASE = f"{HOST}/qr/v2/"  # a charge's address up to its txid
MARK = "SANDBOX"
QUIET_ZONE = 4  # of a QR image, as ISO/IEC 18004 requires
SCHEME = "br.gov.bcb.pix"
NAME_LIMIT, CITY_LIMIT, REFERENCE_LIMIT, URL_LIMIT = 25, 15, 25, 77
LARGEST_AMOUNT = 10**12 - 1  # BCB writes an amount as \d{1,10}\.\d{2}

# EMV requires a city. A name in another alphabet may fold to an empty text.
_CITY_UNKNOWN = "BRASIL"
_LONGEST = 512  # EMV QRCPS, merchant-presented mode
# What fields of a code must be, by number, and how a refusal says it; 01 and 54 may be absent.
_VALUES = {
    "00": ("01", "01"),
    "01": ("1[12]", "11 or 12"),
    "52": ("[0-9]{4}", "four digits"),
    "53": ("986", "986"),
    "54": (r"[0-9]{1,10}\.[0-9]{2}", "an amount with two decimals"),
    "58": ("BR", "BR"),
}
_PRINTABLE = re.compile(r"[ -~]*")
_HOST = re.compile(r"[0-9a-z.-]+(?::[0-9]{1,5})?")
_VISIBLE = re.compile(r"[!-~]*").fullmatch
_RESERVED = re.compile(r"(?:.+\.)?(?:example|test|invalid|localhost|example\.(?:com|net|org))")


class BrCodeError(ValueError):
    """The text is not a valid BR Code. `reason`: charset | length | order | duplicate | missing | value | checksum."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class BrCode:
    """The contents of a BR Code. A dynamic code has a `url`, a static one a `key`, one that only requests consent to
    recurring payments (Pix Automático) just a `recurrence` address. `reference` is field 62-05.
    """

    url: str | None
    key: str | None
    recurrence: str | None
    amount_cents: int | None
    name: str
    city: str
    reference: str


def crc16(text: str) -> str:
    """CRC-16/CCITT-FALSE (polynomial 0x1021, initial value 0xFFFF) as four capital hexadecimal digits."""
    return f"{crc_hqx(text.encode(), 0xFFFF):04X}"


def capitals(text: str, limit: int | None = None) -> str:
    """Printable ASCII capitals, accents dropped, runs of blanks joined, at most `limit` characters; may be empty."""
    plain = unicodedata.normalize("NFKD", text.upper()).encode("ascii", "ignore").decode().upper()
    words = "".join(letter if letter.isprintable() else " " for letter in plain).split()
    return " ".join(words)[:limit].rstrip()


def merchant_name(text: str) -> str:
    """The receiver's name for field 59: printable ASCII, at most 25 characters, always ending in SANDBOX."""
    words = capitals(text).split()
    while words and words[-1] == MARK:
        words.pop()
    kept = " ".join(words)[: NAME_LIMIT - len(MARK) - 1].rstrip()
    return f"{kept} {MARK}".lstrip()


def encode(amount_cents: int, txid: str, base: str, name: str, city: str) -> str:
    """The BR Code of a single-use charge. `name` and `city` take any text; the other values raise ValueError if wrong.

    `txid` has 26 to 35 ASCII letters and digits, of which field 62-05 carries the first 25.
    `base` is the charge's address up to its txid, without a scheme; the whole has at most 77 characters, and its host
    is of a reserved domain.
    """
    if not 1 <= amount_cents <= LARGEST_AMOUNT:
        raise ValueError("The amount is from 1 cent to ten digits of reais.")
    if not (26 <= len(txid) <= 35 and txid.isascii() and txid.isalnum()):
        raise ValueError("A txid is 26 to 35 letters and digits.")
    amount = _field("54", money.text(amount_cents))
    reference = _field("62", _field("05", txid[:REFERENCE_LIMIT]))
    code = f"{_until_txid(base, len(txid))}{txid}{_CURRENCY}{amount}{_receiver(name, city)}{reference}6304"
    return code + crc16(code)


@lru_cache(maxsize=256)
def _until_txid(base: str, length: int) -> str:
    """The code up to the txid, which ends its field 26: the same in all codes of a server."""
    host, slash, path = base.partition("/")
    if not slash or len(base) + length > URL_LIMIT or _VISIBLE(path) is None or not _HOST.fullmatch(host):
        raise ValueError("The URL is a host and a path of at most 77 characters, without a scheme.")
    if not _RESERVED.fullmatch(host.partition(":")[0]):
        raise ValueError("The host must be of a reserved domain: nobody may be able to pay this code.")
    account = _field("26", _field("00", SCHEME) + _field("25", base + "x" * length))
    return _HEAD + account[:-length]


@lru_cache(maxsize=256)
def _receiver(name: str, city: str) -> str:
    """Fields 58 to 60, the same in all codes of a merchant."""
    town = capitals(city, CITY_LIMIT) or _CITY_UNKNOWN
    return _field("58", "BR") + _field("59", merchant_name(name)) + _field("60", town)


def parse(code: str) -> BrCode:
    """Parse a BR Code, dynamic or static. Raises BrCodeError for the first error."""
    if not _PRINTABLE.fullmatch(code):
        raise BrCodeError("charset", "A BR Code is printable ASCII text.")
    if len(code) > _LONGEST:
        raise BrCodeError("length", f"A BR Code has at most {_LONGEST} characters.")
    fields = _fields(code, "the code")
    if next(iter(fields), None) != "00":
        raise BrCodeError("order", "Field 00 comes first.")
    if list(fields)[-1] != "63":
        raise BrCodeError("order", "Field 63, the checksum, comes last.")
    crc = fields["63"]
    if len(crc) != 4:
        raise BrCodeError("length", "Field 63 has four characters.")
    if crc != crc16(code[:-4]):
        raise BrCodeError("checksum", f"The checksum is {crc16(code[:-4])}, the code says {crc}.")
    for ident, (pattern, meaning) in _VALUES.items():
        value = fields.get(ident) if ident in ("01", "54") else _required(fields, ident)
        if value is not None and not re.fullmatch(pattern, value):
            raise BrCodeError("value", f"Field {ident} must be {meaning}.")
    account = _fields(_required(fields, "26"), "field 26")
    if _required(account, "00", "26-").lower() != SCHEME:
        raise BrCodeError("value", f"Field 26-00 must be {SCHEME}.")
    url, key, recurrence = account.get("25"), account.get("01"), _recurrence(fields.get("80"))
    if url is not None and key is not None:
        raise BrCodeError("value", "Field 26 has an address (25) or a key (01), not both.")
    if url is None and key is None and recurrence is None:
        raise BrCodeError("missing", "Field 26 has neither an address (25) nor a key (01).")
    return BrCode(
        url=url,
        key=key,
        recurrence=recurrence,
        amount_cents=int(fields["54"].replace(".", "")) if "54" in fields else None,
        name=_limited(fields, "59", NAME_LIMIT),
        city=_limited(fields, "60", CITY_LIMIT),
        reference=_limited(_fields(_required(fields, "62"), "field 62"), "05", REFERENCE_LIMIT, "62-"),
    )


def drawn(code: str, form: str) -> bytes:
    """The QR image of a BR Code as `svg` or `png`. The same code gives the same bytes, so a client may cache them."""
    import segno  # imported for the first image, not at every start

    out = BytesIO()
    # A white background, as a transparent one cannot be scanned on a dark page.
    symbol = segno.make_qr(code, error="m", boost_error=False)
    symbol.save(out, kind=form, scale=6, border=QUIET_ZONE, dark="black", light="white")
    return out.getvalue()


def end_to_end_id(ispb: str, at: str, suffix: str) -> str:
    """The 32 characters that name a payment: E, the payer bank's ISPB, the UTC minute, and 11 letters and digits.

    `at` is a date-time in UTC. Raises ValueError for an ISPB or a suffix of another form.
    """
    end = ispb + suffix
    if len(ispb) != 8 or len(suffix) != 11 or not (ispb.isdigit() and end.isascii() and end.isalnum()):
        raise ValueError("An ISPB is eight digits, a suffix eleven letters and digits.")
    return f"E{ispb}{at[:4]}{at[5:7]}{at[8:10]}{at[11:13]}{at[14:16]}{suffix}"


def _field(ident: str, value: str) -> str:
    return f"{ident}{len(value):02}{value}"


_HEAD = _field("00", "01") + _field("01", "12")
_CURRENCY = _field("52", "0000") + _field("53", "986")


def _fields(text: str, where: str) -> dict[str, str]:
    """Split tag-length-value text. Raises BrCodeError unless identifiers ascend and are unique."""
    fields: dict[str, str] = {}
    last, at = "", 0
    while at < len(text):
        ident, size = text[at : at + 2], text[at + 2 : at + 4]
        if not re.fullmatch(r"[0-9]{4}", ident + size):
            raise BrCodeError("length", f"No identifier and length at position {at} of {where}.")
        value = text[at + 4 : at + 4 + int(size)]
        if not value or len(value) != int(size):
            raise BrCodeError("length", f"Field {ident} of {where} says {size} characters, {len(value)} are there.")
        if ident in fields:
            raise BrCodeError("duplicate", f"Field {ident} of {where} comes twice.")
        # EMV puts the checksum behind everything, also behind the unreserved templates 80 to 99.
        if ident < last and not (where == "the code" and ident == "63"):
            raise BrCodeError("order", f"Field {ident} of {where} comes after field {last}.")
        fields[ident] = value
        last, at = ident, at + 4 + len(value)
    return fields


def _required(fields: dict[str, str], ident: str, within: str = "") -> str:
    value = fields.get(ident)
    if value is None:
        raise BrCodeError("missing", f"Field {within}{ident} is missing.")
    return value


def _limited(fields: dict[str, str], ident: str, limit: int, within: str = "") -> str:
    value = _required(fields, ident, within)
    if len(value) > limit:
        raise BrCodeError("length", f"Field {within}{ident} has at most {limit} characters.")
    return value


def _recurrence(template: str | None) -> str | None:
    if template is None:
        return None
    inner = _fields(template, "field 80")
    return inner.get("25") if inner.get("00", "").lower() == SCHEME else None
