"""`make pictures`: the pictures of docs/, taken with the system's Chromium of a sandbox that is the
same every time.
"""

import base64
import time
from pathlib import Path
from typing import Any

import httpx2

from stub_server.core.clock import parse_iso
from stub_server.settings import Settings

from .support.browser import Page, browsing
from .support.live import NO_TLS, running

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
NOW = "2026-11-20T14:32:05.000Z"
ADDRESS = "http://127.0.0.1:4600"  # that the pages show, wherever they are served
WIDTH, HEIGHT, MOST = 1280, 860, 200_000  # pixels, and bytes of a picture


def happened(base: str) -> dict[str, str]:
    """Send some requests; answers the paths of the pages to take, by name."""
    with httpx2.Client(base_url=base, verify=NO_TLS, timeout=30) as control:
        me = control.get("/_sandbox/credentials").json()
        api = httpx2.Client(
            base_url=base,
            verify=NO_TLS,
            timeout=30,
            headers={"Authorization": f"Bearer {me['jwt']}"},
        )
        with api:
            return _paths(control, api, me["sample"])


def _paths(control: httpx2.Client, api: httpx2.Client, sample: dict[str, str]) -> dict[str, str]:
    oldest = api.get(
        "/v2/subscriptions", params={"status": "active", "sort": "createdAt", "limit": 1}
    ).json()
    buyer: dict[str, Any] = {
        "name": "Marina Duarte",
        "email": "marina@example.com",
        "document": "529.982.247-25",
    }
    order = {
        "projectId": sample["projectId"],
        "planId": sample["planId"],
        "totalAmount": 49.9,
        "items": [{"description": "Plano Mensal", "quantity": 1, "amount": 49.9}],
        "customer": buyer,
    }
    for path in ("/v2/projects", "/v2/plans", "/v2/customers?limit=5", "/v2/orders?status=paid"):
        api.get(path).raise_for_status()
    placed = api.post("/v2/orders/pix", json=order).raise_for_status().json()
    control.post(f"/_sandbox/orders/{placed['id']}/pay").raise_for_status()
    api.get(f"/v2/orders/{placed['id']}")
    api.get("/v2/orders/00000000-0000-4000-8000-000000000000")
    httpx2.get(f"{api.base_url}/v2/plans", verify=NO_TLS)
    wrong = order | {"paymentMethod": "cash", "customer": buyer | {"document": "529.982.247-26"}}
    refused = api.post("/v2/orders/pix", json=wrong)
    assert refused.status_code == 422, refused.text
    pending = api.post("/v2/orders/pix", json=order).raise_for_status().json()
    return {
        "overview": "/",
        "request": f"/console/requests/{refused.headers['x-request-id']}",
        "record": f"/console/data/orders/{placed['id']}",
        "pay": f"/pay/{pending['id']}?lang=pt",
        "clock": "/console/clock",
        "subscription": f"/console/data/subscriptions/{oldest['subscriptions'][0]['id']}",
        "try": "/console/try/createPixOrder",
    }


def take(page: Page, address: str) -> bytes:
    """The upper part of a page, as a browser's window shows it."""
    page.go(address)
    page.until("document.fonts.status === 'loaded'")
    if "/console/try/" in address:
        page.look(
            "[...document.querySelectorAll('button')].find(each => each.textContent ==="
            " 'Send').click()"
        )
        page.until("document.querySelector('#answer .badge') !== null")
    time.sleep(0.5)  # what is live has been asked for
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT, "scale": 1}
    shot = page.tell("Page.captureScreenshot", format="webp", quality=80, clip=clip)
    return base64.b64decode(shot["data"])


def main() -> None:
    """Write each picture."""
    FOLDER.mkdir(exist_ok=True)
    with running(Settings(now=parse_iso(NOW), base_url=ADDRESS)) as live, browsing() as page:
        page.seen(WIDTH)
        page.tell("Emulation.setScrollbarsHidden", hidden=True)
        for name, path in happened(live.url).items():
            picture = take(page, live.url + path)
            assert len(picture) < MOST, f"{name}: {len(picture)} bytes"
            (FOLDER / f"{name}.webp").write_bytes(picture)
            print(f"docs/pictures/{name}.webp {len(picture):,} bytes")


if __name__ == "__main__":
    main()
