"""Serves the contract as JSON and YAML, with the server and record ids of the requested sandbox,
and an ETag.
"""

import gzip
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from textwrap import indent

import orjson
import yaml
from werkzeug.http import parse_accept_header

from ..contract.source import Json
from ..core.problem import Forbidden
from ..core.slices import BackgroundWorker
from ..server.layers.access import check_control, may_read_api
from ..server.layers.hosts import is_local_host
from ..server.layers.security import sees_everything
from ..server.reply import Answer, Headers
from ..server.request import ADMIN_KEY, CONTROL, CONTROL_KEY, is_local_origin
from ..server.work import Work
from .examples import name_examples_of_paths, replacements, stand_ins
from .slices import Slice

NAMED = "x-example-records"
# Placeholder for the URLs of other sandboxes, which keep their own names; no text holds a NUL.
_OTHERS = b"\0"
_MOST, _MOST_PACKED = 512, 16  # texts that are kept: more than there are parts
_MAKING = BackgroundWorker()  # one at a time, beside requests
_SPLIT = 4  # levels of the contract that are written to YAML one by one: it is too much for one go


def _sees_records(work: Work) -> bool:
    """Whether a request gets a sandbox's own records in the contract's examples; others get those
    of the contract.

    It is of a program or a page of this machine, or has a credential that may read all.

    A credential is no help to a page that may not read the API: on a plain server every page could
    know it.
    """
    headers, origin, server = work.request.headers, work.request.headers.get(b"origin"), work.server
    host = headers.get(b"host")
    if origin is None:
        is_same = headers.get(b"sec-fetch-site") not in (b"cross-site", b"same-site")
    else:
        is_same = origin.partition(b"://")[2] == host or is_local_origin(origin)
    if is_same and not server.settings.is_public and is_local_host(host):
        return True
    if not is_same and (origin is None or not may_read_api(server.settings, origin)):
        return False
    if CONTROL_KEY in headers or ADMIN_KEY in headers:
        try:
            check_control(work, f"{CONTROL}/credentials", work.sandbox.name)
        except Forbidden:
            return False
        return True
    return sees_everything(work)


@dataclass(frozen=True, eq=False)
class File:
    """One file: the contract as JSON or YAML.

    `named` are the values of examples by kind of record.
    """

    data: Json
    media: bytes
    named: Mapping[str, list[str]]

    @cached_property
    def whole(self) -> Json:
        """The contract with named examples of paths."""
        raw = {key: value for key, value in self.data.items() if key != NAMED}
        data: Json = orjson.loads(orjson.dumps(raw))
        name_examples_of_paths(data)
        return data

    async def answer(self, work: Work) -> Answer:
        """The file, or 304."""
        part, prefix = Slice.of(work.request.query, self.data), work.prefix.encode()
        found = stand_ins(work.sandbox) if _sees_records(work) else {}
        url = work.server.settings.url.encode()
        accepted = work.request.headers.get(b"accept-encoding", b"").decode("latin-1")
        is_packed = parse_accept_header(accepted).quality("gzip") > 0
        asked = work.request.headers.get(b"if-none-match", b"")

        def make() -> tuple[bytes, bytes]:
            """The body and its digest; it is packed only if it is sent."""
            text = self._of_sandbox(part, url, url + prefix, found)
            digest = hashlib.sha256(text).hexdigest()[:32].encode()
            if is_packed and digest not in asked:
                text = _packed(text)
            return text, digest

        with work.server.waiting.take(work.sandbox.name, for_anybody=True):
            body, digest = await _MAKING.beside(make)
        etag = b'"%b%b"' % (digest, b"-gzip" if is_packed else b"")
        headers: Headers = [
            (b"content-type", self.media),
            (b"etag", etag),
            (b"cache-control", b"private, no-cache"),
        ]
        if digest in asked or asked == b"*":
            return Answer(304, headers)
        if is_packed:
            headers.append((b"content-encoding", b"gzip"))
        return Answer(200, [*headers, (b"content-length", b"%d" % len(body))], body)

    def _of_sandbox(
        self, part: Slice | None, server: bytes, base: bytes, found: Mapping[str, str]
    ) -> bytes:
        """The contract with the addresses of a server and a sandbox, and ids of its records."""
        text, changes = written(self, part), replacements(self.named, found)
        for example in self.named.get("baseUrl", ()):
            changes[f"{example}/s/".encode()] = _OTHERS
            changes[example.encode()] = base
        changes[_OTHERS] = server + b"/s/"
        for old, new in changes.items():
            text = text.replace(old, new)
        return text


@lru_cache(_MOST)
def written(file: File, part: Slice | None) -> bytes:
    """A contract, or a part of it, with its own examples."""
    text = orjson.dumps(file.whole if part is None else part.cut(file.whole))
    if file.media == b"application/json":
        return text
    return "".join(_as_yaml(orjson.loads(text))).encode()


@lru_cache(_MOST_PACKED)
def _packed(body: bytes) -> bytes:
    return gzip.compress(body, 6, mtime=0)


def _as_yaml(data: Json, depth: int = 0) -> Iterator[str]:
    """The contract as YAML, in parts: to write all of it in one go would hold others up."""
    for key, value in data.items():
        is_split = depth < _SPLIT and isinstance(value, dict) and value
        written = yaml.dump(
            {key: {} if is_split else value},
            Dumper=yaml.CSafeDumper,
            sort_keys=False,
            allow_unicode=True,
            width=120,
        )
        if is_split:
            yield indent(written.replace(" {}", ""), "  " * depth)
            yield from _as_yaml(value, depth + 1)
        else:
            yield indent(written, "  " * depth)


def contract_pages(api: Json, control: Json, base: str) -> dict[str, File]:
    """`/openapi.json` and `/openapi.yaml`, and those of the control surface below its base path."""
    named = api.get(NAMED, {})
    pages: dict[str, File] = {}
    for stem, raw in (("/openapi", api), (f"{base}/openapi", control)):
        for ending, media in (("json", b"application/json"), ("yaml", b"application/yaml")):
            pages[f"{stem}.{ending}"] = File(raw, media, named)
    return pages
