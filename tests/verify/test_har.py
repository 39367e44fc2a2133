"""Archives of other tools are read and judged; what is none is refused in one line."""

from base64 import b64encode
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest

from stub_server.core.problem import UnusableInput
from stub_server.tools.verify.forms import rendered
from stub_server.tools.verify.har import read
from stub_server.tools.verify.outcome import of_recorded

from .exchanges import HEADERS, archive, example, exchange

BASE = "https://api.example.com/shop"


def entry(url: str = f"{BASE}/v2/customers", status: int = 200, **content: Any) -> dict[str, Any]:
    headers = [
        {"name": "content-type", "value": "application/json"},
        {"name": "x-request-id", "value": "r"},
    ]
    return {
        "time": 12,
        "request": {"method": "GET", "url": url, "headers": [{"name": ":method", "value": "GET"}]},
        "response": {"status": status, "headers": headers, "content": content},
    }


def written(tmp_path: Path, *entries: Any) -> Path:
    file = tmp_path / "seen.har"
    file.write_bytes(orjson.dumps({"log": {"entries": entries}}))
    return file


def test_what_cannot_be_judged_is_left_out_and_counted(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        entry(text="{}", size=2),
        entry(text=b64encode(b"{}").decode(), encoding="base64"),
        entry(size=99),
        entry(status=0),
        entry(text="{}") | {"response": {"status": 200.0, "headers": [], "content": {}}},
        entry("https://cdn.example.com/v2/customers", text="{}"),
        entry("https://API.example.com:443/shop/v2/customers", text="{}"),
        None,
    )
    entries = [*read(file, BASE)]
    reasons = [each for each in entries if isinstance(each, str)]
    assert [b"{}"] * 3 == [each.answer.body for each in entries if not isinstance(each, str)]
    assert Counter(reasons) == {
        "unreadable": 2,
        "without the body of the response": 1,
        "without response": 1,
        "of another address": 1,
    }


def test_a_written_overlay_closes_what_recorded_traffic_shows(tmp_path: Path) -> None:
    """Proved by the traffic itself.

    What the source document shows is commented out, so another run finds it again.
    """
    page = example("CustomerPage")
    page["customers"][0]["createdAt"] = "yesterday"
    headers = HEADERS | {"Location": "/v2/customers/1"}
    made = exchange("POST", "/v2/customers", 200, example("CustomerPersonCreated"), headers)
    listed = exchange("GET", "/v2/customers", 200, page, {"Content-Type": "application/json"})
    file, overlay = tmp_path / "seen.har", tmp_path / "overlay.yaml"
    file.write_bytes(archive([made, listed], BASE))
    first = of_recorded(file, BASE, (), (), corrects=True)
    kinds = {each.kind for each in first.divergences}
    assert {"undocumented-status", "schema", "missing-header"} == kinds
    assert [] == [each.title for each in first.divergences if each.overlay is None]
    overlay.write_text(rendered("overlay.yaml", report=first))
    left = of_recorded(file, BASE, (overlay,), ()).divergences
    assert [("schema", "documented")] == [(each.kind, each.basis) for each in left]


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"log": 1}', b"\xff"])
def test_a_file_that_is_no_archive_is_refused(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "seen.har"
    file.write_bytes(data)
    with pytest.raises(UnusableInput, match=r"seen\.har: .*HAR 1\.2|seen\.har:1: is not UTF-8"):
        next(read(file))
