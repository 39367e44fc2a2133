"""Files of sandboxes as tests make them: taken apart, changed, and packed again."""

import gzip
from collections.abc import Callable, Iterable
from typing import Any

import httpx2
import orjson

from stub_server.storage.package import MEDIA

from .make import done, object_of

Line = tuple[str, Any]
HEADERS = {"Content-Type": MEDIA}


def exported(control: httpx2.Client, **query: object) -> bytes:
    """The file of a sandbox."""
    response = control.get(
        "/export", params={name: str(value).lower() for name, value in query.items()}
    )
    assert response.status_code == 200, response.text
    return response.content


def imported(control: httpx2.Client, file: bytes, **query: object) -> dict[str, Any]:
    """The sandbox after a file was put in its place."""
    params = {name: str(value).lower() for name, value in query.items()}
    response = control.post("/import", content=file, headers=HEADERS, params=params)
    return object_of(done(response), "sandbox")


def lines(file: bytes) -> list[Line]:
    """The lines of a file."""
    return [next(iter(orjson.loads(line).items())) for line in gzip.decompress(file).splitlines()]


def sealed(lines: Iterable[Line]) -> bytes:
    """A file of these lines."""
    return gzip.compress(
        b"".join(orjson.dumps({kind: body}) + b"\n" for kind, body in lines), 1, mtime=0
    )


def changed(
    file: bytes, kind: str, change: Callable[[Any], object], table: str | None = None
) -> bytes:
    """The file with its first line of a kind, of a table if told, changed and everything
    packed again.
    """
    found = lines(file)
    body = next(body for told, body in found if told == kind and table in (None, body.get("table")))
    change(body)
    return sealed(found)
