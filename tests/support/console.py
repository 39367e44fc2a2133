"""The console over HTTP as a browser without scripts: pages are read, forms are filled in and sent,
with cookies.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx2

from .live import NO_TLS


@dataclass
class Form:
    """A form of a page: its buttons' texts, and the values with which it would be sent."""

    method: str
    action: str
    values: dict[str, str] = field(default_factory=dict)
    label: str = ""


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self._open: Form | None = None
        self._select: str | None = None
        self._area: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found: dict[str, Any] = dict(attrs)
        if tag == "form":
            self._open = Form(found.get("method", "get").upper(), found.get("action", ""))
            self.forms.append(self._open)
        elif tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag == "select":
            self._select = found.get("name")
        elif tag == "option" and "selected" in found and self._open is not None and self._select:
            self._open.values[self._select] = found.get("value", "")
        elif tag == "input" and self._open is not None and found.get("name"):
            if found.get("type") == "checkbox" and "checked" not in found:
                return
            self._open.values[found["name"]] = found.get("value") or ""
        elif tag == "textarea" and self._open is not None:
            self._area = found["name"]
            self._open.values[self._area] = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = None
        elif tag == "textarea":
            self._area = None

    def handle_data(self, data: str) -> None:
        if self._area is not None and self._open is not None:
            self._open.values[self._area] += data
            return
        text = " ".join(data.split())
        if text:
            self.words.append(text)
            if self._open is not None:
                self._open.label = f"{self._open.label} {text}".strip()


class Page:
    """One page as it came."""

    def __init__(self, response: httpx2.Response) -> None:
        reader = _Reader()
        reader.feed(response.text)
        self.response = response
        self.url = str(response.url)
        self.status = response.status_code
        self.forms = reader.forms
        self.links = reader.links
        self.text = " ".join(reader.words)

    def form(self, label: str) -> Form:
        """The form whose texts hold this one."""
        found = [form for form in self.forms if label in form.label]
        assert found, f"no form {label!r} among {[form.label for form in self.forms]}"
        return found[0]


class Console:
    """One browser, in one sandbox."""

    def __init__(self, url: str, sandbox: str | None = None) -> None:
        self.base = url if sandbox is None else f"{url}/s/{sandbox}"
        self.origin = "{0.scheme}://{0.netloc}".format(urlsplit(url))
        headers = {"Accept": "text/html"}
        self.http = httpx2.Client(timeout=30, verify=NO_TLS, follow_redirects=True, headers=headers)

    def close(self) -> None:
        """Close its connections."""
        self.http.close()

    def open(self, path: str, **headers: str) -> Page:
        """A page below the sandbox."""
        return Page(self.http.get(self.base + path, headers=headers))

    def follow(self, page: Page, link: str) -> Page:
        """What a link of a page leads to."""
        return Page(self.http.get(urljoin(page.url, link)))

    def send(self, page: Page, label: str, origin: str | None = None, **values: str) -> Page:
        """Send a form of a page, and follow where it leads."""
        form = page.form(label)
        address = urljoin(page.url, form.action)
        told = form.values | values
        if form.method == "GET":
            return Page(self.http.get(address, params=told))
        headers = {"Origin": self.origin if origin is None else origin} if origin != "" else {}
        return Page(self.http.post(address, data=told, headers=headers))
