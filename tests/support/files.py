"""Files of sandboxes as tests make them: taken apart, changed, and sealed again."""

import gzip
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any

import httpx2
import orjson

from stub_server.files.package import MEDIA

Line = tuple[str, Any]
HEADERS = {"Content-Type": MEDIA}


def exported(control: httpx2.Client, **query: object) -> bytes:
    """The file of a sandbox."""
    response = control.get("/export", params={name: str(value).lower() for name, value in query.items()})
    assert response.status_code == 200, response.text
    return response.content


def imported(control: httpx2.Client, file: bytes, **query: object) -> dict[str, Any]:
    """The sandbox after a file was put in its place."""
    params = {name: str(value).lower() for name, value in query.items()}
    response = control.post("/import", content=file, headers=HEADERS, params=params)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()["sandbox"]
    return found


def lines(file: bytes) -> list[Line]:
    """The lines of a file without its end."""
    found = [next(iter(orjson.loads(line).items())) for line in gzip.decompress(file).splitlines()]
    assert found[-1][0] == "end"
    return found[:-1]


def sealed(lines: Iterable[Line]) -> bytes:
    """A file of these lines, with an end that is right."""
    text = b"".join(orjson.dumps({kind: body}) + b"\n" for kind, body in lines)
    end = {"end": {"lines": text.count(b"\n"), "sha256": sha256(text).hexdigest()}}
    return gzip.compress(text + orjson.dumps(end) + b"\n", 1, mtime=0)


def changed(file: bytes, kind: str, change: Callable[[Any], object], table: str | None = None) -> bytes:
    """The file with its first line of a kind, of a table if told, changed and everything sealed again."""
    found = lines(file)
    body = next(body for told, body in found if told == kind and table in (None, body.get("table")))
    change(body)
    return sealed(found)
