"""Tax documents: recognises CPF, CNPJ and passport, checks their digits and compares them with a
customer's type.

A document is stored unmasked. Its kind follows from the unmasked form: eleven digits are a CPF,
fourteen characters a CNPJ, 5 to 9 capital letters and digits, a letter among them, a passport. Any
other run of 5 to 20 is a passport where a `document_type` says so.
"""

import re
from contextvars import ContextVar
from functools import lru_cache
from typing import Literal

from stdnum.br import cnpj, cpf

Kind = Literal["cpf", "cnpj", "passport"]
Holder = Literal["individual", "company"]

HOLDERS: dict[Kind, Holder] = {"cpf": "individual", "passport": "individual", "cnpj": "company"}

# str.upper() would turn letters outside ASCII (dotless i, long s) into ASCII ones and so accept
# false documents.
_UNMASK = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", ".-/ ")
_CPF = re.compile(r"[0-9]{11}")
_CNPJ = re.compile(r"[0-9A-Z]{12}[0-9]{2}")
_PASSPORT = re.compile(r"[0-9A-Z]{5,20}")  # where a document_type says that it is one
_USUAL_PASSPORT = re.compile(r"[0-9A-Z]{5,9}")

_MASKED = re.compile(r"(?:[0-9A-Za-z][./-]?)+")

# Longer texts are no documents, masked or not: a flood of large bodies cannot fill the cache with
# its keys.
_LONGEST_CACHED = 40


def normalise(text: str) -> str:
    """The stored form: without `.`, `-`, `/` and spaces, ASCII letters in capitals, everything else
    as it was sent.
    """
    if text.isascii() and text.isdigit():
        return text
    return text.translate(_UNMASK)


def kind(text: str, check_digits: bool = True) -> Kind | None:
    """The kind of a document, masked or not; None if the text is not a document. Never raises."""
    plain = normalise(text)
    found: Kind | None = None
    if _CPF.fullmatch(plain):
        found = "cpf"
    elif _CNPJ.fullmatch(plain):
        found = "cnpj"
    elif _USUAL_PASSPORT.fullmatch(plain) and not plain.isdigit():
        found = "passport"
    if check_digits and not _digits_hold(plain, found):
        return None
    return found


def is_document(text: str, *, check_digits: bool = True) -> bool:
    """The schema format `document`: a CPF or CNPJ with right check digits, or a passport. Never
    raises.

    After each letter or digit may stand one of `.`, `-` and `/`, and nothing else.
    """
    return len(text) <= _LONGEST_CACHED and _is_document(text, check_digits)


checks_digits: ContextVar[bool] = ContextVar("checks_digits", default=True)
"""Whether `is_document_here` checks them: the setting of the sandbox whose request is validated."""


def is_document_here(text: str) -> bool:
    """The schema format `document` of requests, by the setting of their sandbox."""
    return is_document(text, check_digits=checks_digits.get())


def is_document_unchecked(text: str) -> bool:
    """The schema format `document` when check digits are off: any document of the right
    length and alphabet.
    """
    return is_document(text, check_digits=False)


@lru_cache(maxsize=4096)  # keys come from requests, which limit their length
def infer(document: str, document_type: str | None = None) -> tuple[str, Kind, Holder]:
    """The stored form of a document, and the document_type and type that it implies.

    The `document_type` passport decides about digits that are no right CPF or CNPJ. Check digits
    are not checked here: validation of the request has done that, where it is on. Raises ValueError
    when it is no document at all.
    """
    plain = normalise(document)
    found = kind(document, check_digits=False)
    if found is None or (document_type == "passport" and kind(document) is None):
        if not _PASSPORT.fullmatch(plain):
            raise ValueError("The text is neither a CPF, a CNPJ nor a passport.")
        found = "passport"
    return plain, found, HOLDERS[found]


def mask_document(document: str) -> str:
    """The unmasked form with its first three and last two characters hidden, as payment providers
    show a payer.

    A CNPJ is public, and shown whole.
    """
    plain = normalise(document)
    if len(plain) == 14:
        return plain
    return "***" + plain[3:-2] + "**"


def cnpj_with_check_digits(twelve: str) -> str:
    """Twelve digits or capital letters -> the CNPJ of fourteen.

    Raises ValueError if none is valid.
    """
    whole = twelve + cnpj.calc_check_digits(twelve)
    if kind(whole) != "cnpj":
        raise ValueError(f"No valid CNPJ begins with {twelve}.")
    return whole


@lru_cache(maxsize=4096)
def _is_document(text: str, check_digits: bool) -> bool:
    return _MASKED.fullmatch(text) is not None and kind(text, check_digits) is not None


def _digits_hold(plain: str, found: Kind | None) -> bool:
    """Whether the check digits of an unmasked document are right; a passport has none."""
    if found not in ("cpf", "cnpj"):
        return True
    # Equal digits pass modulo 11, and the Receita never issues them.
    is_valid = cpf.is_valid if found == "cpf" else cnpj.is_valid
    return is_valid(plain) and plain != plain[0] * len(plain)
