"""The finder: any id leads to its page, an e-mail address to its customer, any other text to requests with it."""

import re

from flask import Response, g, request

from ..server.request import CONTROL
from .actions import go
from .addresses import here
from .site import contracts, pages

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch
_LONGEST = 200


@pages.get("/find")
def find() -> Response:
    """Lead to what an id names."""
    text = request.args.get("q", "").strip()[:_LONGEST]
    if not text:
        return go(here("/console/requests"))
    if re.fullmatch(r"req_[0-9a-f]{1,36}", text):
        return go(here(f"/console/requests/{text}"))
    if re.fullmatch(r"evt_[0-9A-Za-z]{1,40}", text):
        return go(here(f"/console/events/{text}"))
    if _UUID(text.lower()):
        for resource in contracts().control.raw["components"]["schemas"]["StepResource"]["enum"]:
            if g.client.find(f"{CONTROL}/records/{resource}/{text.lower()}/history", {"limit": 1}) is not None:
                return go(here(f"/console/data/{resource}/{text.lower()}"))
    if "@" in text[1:-1] and len(text.split()) == 1:
        return go(here("/console/data/customers", {"email": text}))
    return go(here("/console/requests", {"contains": text}))
