"""Serves the contract as JSON and YAML, with the server and record ids of the requested sandbox, and an ETag."""

import hashlib
from collections.abc import Mapping

import orjson
import yaml
from starlette.types import ASGIApp, Receive, Scope, Send

from ..calls.call import Call
from ..contract.path_examples import with_path_examples
from ..contract.source import Json
from ..kernel.problem import NotAllowed
from .examples import replacements, stand_ins
from .router import CALL

NAMED = "x-example-records"
# Placeholder for the URL of the sandbox's server.
_HERE = b"/the-server-of-this-world"
# Placeholder for the URLs of other sandboxes, which keep their own names; no text holds a NUL.
_OTHERS = b"\0"


def world_values(named: Mapping[str, list[str]], call: Call) -> dict[bytes, bytes]:
    """What to replace one after the other in the contract's examples, for the values of the requested sandbox.

    `named` are the values of examples by kind of record.
    """
    changes = {example.encode() + b"/s/": _OTHERS for example in named.get("baseUrl", ())}
    changes |= replacements(named, stand_ins(call.sandbox, call.server.url + call.prefix))
    return changes | {_OTHERS: call.server.url.encode() + b"/s/"}


class File:
    """One file. It is serialised at the first request; the values of a sandbox are put in at every request.

    Nothing is cached for a sandbox, so what is shown is never out of date.
    """

    def __init__(self, data: Json, media: bytes, named: Mapping[str, list[str]], *, absolute: bool) -> None:
        """`named` are the values of examples by kind of record; `absolute` shows the server's URL with its host."""
        self._data, self._media, self._named, self._absolute = data, media, named, absolute
        self._bytes: tuple[bytes, bytes] | None = None

    def _content(self) -> tuple[bytes, bytes]:
        """The bytes with placeholders, the same for every sandbox, and their digest."""
        if self._bytes is None:
            servers = [
                {**server, "url": _HERE.decode() + server["url"].rstrip("/")} if server["url"][:1] == "/" else server
                for server in self._data.get("servers", [])
            ]
            whole = with_path_examples(self._data)
            data = {key: servers if key == "servers" else value for key, value in whole.items() if key != NAMED}
            if self._media == b"application/json":
                body = orjson.dumps(data)
            else:
                text = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
                body = text.encode()
            self._bytes = body, hashlib.sha256(body).digest()
        return self._bytes

    def _changes(self, call: Call) -> dict[bytes, bytes]:
        """What to replace by what for a sandbox. Servers elsewhere, which an overlay may name, stay."""
        url = call.server.url if self._absolute else ""
        base = (url + call.prefix).encode()
        changes = world_values(self._named, call)
        if not base:  # a server's URL is at least a slash
            changes |= {quote + _HERE + end: quote + b"/" + end for quote, end in ((b'"', b'"'), (b" ", b"\n"))}
        return changes | {_HERE: base}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = scope["method"]
        if method not in ("GET", "HEAD"):
            await refuse_method(method, send)
            return
        call: Call = scope[CALL]
        body, digest = self._bytes or await call.server.sandboxes.lane.beside(self._content)
        changes = self._changes(call)
        etag = hashlib.sha256(digest + b"\n".join(changes.values())).hexdigest()[:32]
        asked = dict(scope["headers"]).get(b"if-none-match", b"").decode("latin-1")
        headers = [(b"etag", f'"{etag}"'.encode()), (b"cache-control", b"no-cache")]
        if f'"{etag}"' in [part.strip().removeprefix("W/") for part in asked.split(",")] or asked == "*":
            await send({"type": "http.response.start", "status": 304, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return
        for old, new in changes.items():
            body = body.replace(old, new)
        headers += [(b"content-type", self._media), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if method == "HEAD" else body})


async def refuse_method(method: str, send: Send) -> None:
    """Respond to OPTIONS of a page. Raises NotAllowed for any other method."""
    if method != "OPTIONS":
        raise NotAllowed(f"This path answers GET, not {method[:20]}.", headers={"Allow": "GET"})
    await send({"type": "http.response.start", "status": 204, "headers": [(b"allow", b"GET")]})
    await send({"type": "http.response.body", "body": b""})


class _Dumper(yaml.CSafeDumper):
    """YAML without anchors: every value is written where it is used."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def contract_pages(api: Json, control: Json, base: str) -> dict[str, ASGIApp]:
    """`/openapi.json` and `/openapi.yaml`, and those of the control surface below its base path."""
    named = api.get(NAMED, {})
    pages: dict[str, ASGIApp] = {}
    for stem, raw in (("/openapi", api), (f"{base}/openapi", control)):
        for ending, media in (("json", b"application/json"), ("yaml", b"application/yaml")):
            # Clients generated from the control contract take the host from it; users of the API choose the host.
            pages[f"{stem}.{ending}"] = File(raw, media, named, absolute=raw is control)
    return pages
