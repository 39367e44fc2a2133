"""Rules of customers: one per document, which determines their type."""

import re

from ..core.problem import Conflict
from ..core.record import Body, Row
from .documents import infer


def changed_customer(row: Row, body: Body) -> Row:
    """A new customer, or one after an update: document unmasked, e-mail in lower case, type and
    document_type filled in.

    Raises Conflict when document and types disagree after the merge.
    """
    if "document" not in body and not row.is_new:
        _check_types(body, row["document_type"], row["type"], "")
    return row.changed(_settled(body))


def _settled(sent: Body, prefix: str = "") -> Body:
    """What was sent, in the form in which it is stored. Refusals name members with the prefix.

    Raises Conflict when what was sent contradicts its document.
    """
    settled = dict(sent)
    if "email" in sent:
        settled["email"] = sent["email"].lower()
    if "address" in sent:
        settled["address"] = with_plain_cep(sent["address"])
    if "document" in sent:
        document, kind, holder = infer(sent["document"], sent.get("document_type"))
        _check_types(sent, kind, holder, prefix)
        settled |= {"document": document, "document_type": kind, "type": holder}
    return settled


def _check_types(sent: Body, kind: str, holder: str, prefix: str) -> None:
    for name, value in (("document_type", kind), ("type", holder)):
        if sent.get(name) not in (None, value):
            raise Conflict.at(
                prefix + name,
                f"{name} is {sent[name]}, but the document makes it {value}.",
                "document_type_conflict",
            )


_CEP = re.compile(r"([0-9]{2})\.?([0-9]{3})-?([0-9]{3})").fullmatch


def with_plain_cep(address: Body) -> Body:
    """The address with its CEP as eight digits; anything else stays as sent."""
    written = address.get("zip_code")
    if not written:
        return address
    if address.get("country", "BR") == "BR":
        cep = _CEP("".join(written.split()))
        if cep is not None:
            return address | {"zip_code": "".join(cep.groups())}
    return address


_OF_BUYERS = ("name", "email", "document", "document_type", "type")


def buyer(sent: Body) -> Body:
    """An order's own copy of its customer, in the form that customers are stored in.

    Raises Conflict when the document contradicts what was sent beside it.
    """
    settled: Body = {"phones": {}, "address": {}} | _settled(sent, "customer.")
    return {name: settled[name] for name in (*_OF_BUYERS, "phones", "address")}


def as_buyer(public: Body) -> Body:
    """A customer as the buyer of an order: telephones in E.164."""
    phones = {
        name: f"+{phone['country_code']}{phone.get('area_code', '')}{phone['number']}"
        for name, phone in public["phones"].items()
    }
    return {name: public[name] for name in _OF_BUYERS} | {
        "phones": phones,
        "address": public["address"],
    }


# In other numbers the area code cannot be told apart. Country codes of one and two digits are those
# of E.164.
_FOREIGN = re.compile(
    r"\+(?!55)(1|7|2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]|[2-9][0-9]{2})([0-9]{4,14})"
).fullmatch
_LONGEST_E164 = 16  # with the plus sign
_PHONE_MARKS = str.maketrans("", "", " ()-")
_BRAZILIAN = re.compile(r"(?:\+?55)?[ (-]*([0-9]{2})[ )-]*([0-9]{4,5})[ -]?([0-9]{4})").fullmatch
_LIMITS = {"line_1": 256, "line_2": 128, "zip_code": 20, "city": 64, "state": 64}
_COUNTRY = re.compile(r"[A-Z]{2}").fullmatch


def from_buyer(buyer: Body) -> tuple[Body, tuple[str, ...]]:
    """The customer that somebody unknown becomes by an order, and warnings for what does not fit
    and is left out.
    """
    warned = []
    phones = {}
    for name, text in buyer["phones"].items():
        plain = text.translate(_PHONE_MARKS)
        if match := _BRAZILIAN(text):
            phones[name] = {
                "country_code": "55",
                "area_code": match[1],
                "number": match[2] + match[3],
            }
        elif len(plain) <= _LONGEST_E164 and (match := _FOREIGN(plain)):
            phones[name] = {"country_code": match[1], "number": match[2]}
        else:
            phones = {}
            warned.append("customer_phones_not_copied")
            break
    address = buyer["address"]
    if not all(map(_fits, address, address.values())):
        address = {}
        warned.append("customer_address_not_copied")
    return {name: buyer[name] for name in _OF_BUYERS} | {
        "phones": phones,
        "address": address,
    }, tuple(warned)


def _fits(name: str, text: str) -> bool:
    """Whether a customer can have a part of a buyer's address."""
    if name == "country":
        return _COUNTRY(text) is not None
    return name in _LIMITS and len(text) <= _LIMITS[name]
