"""The contract as a file: our own bytes, once, with an ETag."""

import hashlib
from collections.abc import Mapping

import orjson
import yaml
from starlette.types import ASGIApp, Receive, Scope, Send

from ..contract.source import Json
from ..kernel.problem import NotAllowed


class File:
    """One file, written when it is first asked for."""

    def __init__(self, data: Json, media: bytes) -> None:
        self._data, self._media = data, media
        self._bytes: tuple[bytes, bytes] | None = None

    def _content(self) -> tuple[bytes, bytes]:
        if self._bytes is None:
            if self._media == b"application/json":
                body = orjson.dumps(self._data)
            else:
                text = yaml.dump(self._data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
                body = text.encode()
            self._bytes = body, b'"' + hashlib.sha256(body).hexdigest()[:32].encode() + b'"'
        return self._bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = scope["method"]
        if method not in ("GET", "HEAD"):
            await refuse_method(method, send)
            return
        body, etag = self._content()
        asked = dict(scope["headers"]).get(b"if-none-match", b"")
        headers = [(b"etag", etag), (b"cache-control", b"no-cache")]
        if etag in [part.strip().removeprefix(b"W/") for part in asked.split(b",")] or asked == b"*":
            await send({"type": "http.response.start", "status": 304, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return
        headers += [(b"content-type", self._media), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if method == "HEAD" else body})


async def refuse_method(method: str, send: Send) -> None:
    """OPTIONS of a page, or the refusal of any other method. Raises NotAllowed."""
    if method != "OPTIONS":
        raise NotAllowed(f"This path answers GET, not {method[:20]}.", headers={"Allow": "GET"})
    await send({"type": "http.response.start", "status": 204, "headers": [(b"allow", b"GET")]})
    await send({"type": "http.response.body", "body": b""})


class _Dumper(yaml.CSafeDumper):
    """YAML without anchors: each value stands where it is used."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def contract_pages(documents: Mapping[str, Json]) -> dict[str, ASGIApp]:
    """`/openapi.json` and `/openapi.yaml` for each contract by its stem."""
    pages: dict[str, ASGIApp] = {}
    for stem, raw in documents.items():
        pages[f"{stem}.json"] = File(raw, b"application/json")
        pages[f"{stem}.yaml"] = File(raw, b"application/yaml")
    return pages
