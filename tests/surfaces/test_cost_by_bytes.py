"""Nothing of a request costs more than its length: bytes of strangers in every place where they
enter.

Judged is CPU time: nobody else waits longer than `MOST_HOLD` for a turn. `test_expressions.py`
judges the regular expressions among what reads these bytes.
"""

import re
from collections.abc import Callable, Iterator
from gzip import compress, decompress
from itertools import count
from typing import NamedTuple
from urllib.parse import quote, urlencode

import pytest

from stub_server.domain.brcode import encode
from stub_server.storage.package import MEDIA

from ..support.cost import Measured, measured, slowness
from ..support.make import order_body, typed
from ..support.receiver import receiving
from ..support.wire import Answer, Door, Header

MOST_HOLD = 0.050 * slowness()  # seconds of CPU time in which nobody else is served
HEAD, BODY, KEPT, FORM = 60_000, 1_000_000, 260_000, 490_000  # bytes: nearly the most of each

Send = Callable[[], object]
"""What is measured: the requests that are sent."""
Prepare = Callable[[Door, bytes], Send]
"""Takes the hostile bytes, and does what comes before."""


# -- the bytes


def repeated(piece: str, before: str = "", after: str = "") -> Callable[[int], bytes]:
    """As many pieces as fit, between two texts."""
    return lambda size: (before + piece * (size // len(piece.encode())) + after).encode()


def distinct(form: str, before: str = "", after: str = "") -> Callable[[int], bytes]:
    """As many different pieces as fit; `form` has a place for a number."""
    return lambda size: (
        before + "".join(form.format(n) for n in range(size // (len(form) + 4))) + after
    ).encode()


def nested(opened: str, inner: str, closed: str, levels: int = 0) -> Callable[[int], bytes]:
    """One value in another: as deep as fits, or `levels` deep and then as wide as fits."""

    def made(size: int) -> bytes:
        if not levels:
            depth = size // len(opened + closed)
            return (opened * depth + inner + closed * depth).encode()
        wide = ",".join([inner] * (size // (len(inner) + 1)))
        return (opened * levels + f"[{wide}]" + closed * levels).encode()

    return made


PIECES = {
    "one letter": "a",
    "quotes": '"',
    "slashes": "a/",
    "dots": "a.",
    "commas": "a,",
    "semicolons": "a=b; ",
    "brackets": "[",
    "braces": '{"a":',
    "percent signs": "%",
    "percent signs, encoded again": "%25",
    "beginnings of keys": "sk_sandbox_",
    "beginnings of tokens": "eyJ0eXAiOiJhdCtqd3QiLCJhbGciOiJIUzI1NiJ9.a",
    "secret members of a query": "token=a&",
    "hyphens and digits": "1-",
    "words": "when is a ",
    "accents": "á",
    "letters with two accents each": "a\u0301\u0316",
}
"""Of which a text is made again and again."""
TEXTS: dict[str, Callable[[int], bytes]] = {
    **{name: repeated(piece) for name, piece in PIECES.items()},
    "digits": repeated("1", after="x"),
    "marks": repeated("!", after="x"),
    "blanks": repeated(" ", before="x", after="x"),
    "a quote and escaped ones": repeated('\\"', before='"'),
    "at signs": repeated("@", after=" "),
    "stars": repeated("a*", after="b"),
    "different words": distinct("w{0},"),
}
TOOLS = (
    "a long text",
    "a wide list of texts",
    "different members",
    "brackets without their end",
    "lists in lists with few commas",
)
NAMES = {
    "a long text": "a",
    "escaped quotes": '\\"',
    "surrogates": "\\ud83d",
    "accents": "a\u0301\u0316",
    "percent signs": "%25",
    "beginnings of keys": "sk_sandbox_",
    "beginnings of tokens": "eyJ0eXAiOiJhdCtqd3QiLCJhbGciOiJIUzI1NiJ9.a",
}
"""Pieces of which a name in a body is made."""
BODIES: dict[str, Callable[[int], bytes]] = {
    **{name: repeated(piece, '{"name":"', '"}') for name, piece in NAMES.items()},
    "a text without its end": repeated('\\"', '{"name":"'),
    "only quotes": repeated('"'),
    "a quote and escaped ones": repeated('\\"', before='"'),
    "a quote and backslashes": repeated("\\", before='"'),
    "brackets without their end": repeated("["),
    "braces without their end": repeated('{"a":'),
    "lists in lists": nested("[", "", "]"),
    "objects in objects": nested('{"a":', "1", "}"),
    "a wide list, deep inside": nested("[", "1", "]", levels=200),
    "lists in lists with few commas": repeated("[" * 28 + "]" * 28 + ",", "[", "1]"),
    "a wide list of texts": nested("[", '"a"', "]", levels=1),
    "a wide list of objects": nested("[", "{}", "]", levels=1),
    "items": nested('{"items":', '{"amount":1}', "}", levels=1),
    "different members": distinct('"k{0}":1,', "{", '"z":1}'),
    "different texts": distinct('"k{0}",', "[", "1]"),
    "one member again and again": repeated('"name":1,', "{", '"z":1}'),
    "a long number": repeated("1", '{"amount":', "}"),
    "a long fraction": repeated("1", '{"amount":0.', "}"),
    "many numbers": repeated("-1.5e3,", "[", "1]"),
    "words of JSON": repeated("true,", "[", "1]"),
    "lines": repeated("\n", '{"name":', "1}"),
    "texts on lines": repeated('"\n'),
    "HTML": repeated("<b>&"),
    "secret members": repeated('"token":"', "{"),
    "a secret member and escaped quotes": repeated('\\"', '{"token":"'),
    "secret headers": repeated('"name":"authorization","value":"\\"', "[{"),
    "values of headers": repeated('"value":"\\"'),
    "ids": distinct('"0b1f6c1e-6a0e-4f0b-9a53-{0:012}",', "[", "1]"),
}


# -- the places


def target(form: str, method: str = "GET") -> Prepare:
    """In a path or query: `form` has the place."""
    return lambda door, text: lambda: door.ask(method, form.format(quote(text)[:HEAD]))


def header(name: str, method: str = "GET", path: str = "/v2/projects") -> Prepare:
    def prepare(door: Door, text: bytes) -> Send:
        token = None if name == "Authorization" else ""
        return lambda: door.ask(method, path, headers=[(name, text.strip())], token=token)

    return prepare


def headers(form: str, number: int | None = None) -> Prepare:
    """Many headers, one of them twice:

    `form` has a place for a number in a name. Without a number as many as fit.
    """

    def prepare(door: Door, text: bytes) -> Send:
        many = number or len(text) // (len(form) + 8)
        value = text[: len(text) // many - len(form) - 4] if number else b""
        sent: list[Header] = [(form.format(n), value.strip()) for n in range(many)] + [
            ("Accept", "*/*")
        ] * 2
        return lambda: door.ask("GET", "/v2/projects", headers=sent)

    return prepare


def members(form: str, path: str = "/v2/projects") -> Prepare:
    """Many members of a query: as many as fit, or 1,000 where `form` has a place for a text."""

    def prepare(door: Door, text: bytes) -> Send:
        if "{1}" in form:
            value = quote(text[: len(text) // 1_000])[: len(text) // 1_000]
            query = "&".join(form.format(n, value) for n in range(1_000))[:HEAD]
        else:
            query = "&".join(
                form.format(n) for n in range(len(text) // (len(form) + (5 if "{" in form else 1)))
            )
        return lambda: door.ask("GET", f"{path}?{query}")

    return prepare


def body(method: str, path: str, media: str = "application/json") -> Prepare:
    return lambda door, content: lambda: door.ask(method, path, content, media=media)


def call_of_a_tool(door: Door, content: bytes) -> Send:
    """A call of the API by the tools for agents."""
    headers = [("Accept", "application/json"), ("X-Sandbox", "default")]
    begin = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    begin += b'"clientInfo":{"name":"a","version":"1"}}}'
    session = door.ask("POST", "/_sandbox/mcp", begin, headers=headers, token=None).header(
        "mcp-session-id"
    )
    headers.append(("Mcp-Session-Id", str(session)))
    call = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_api","arguments":{"path":"/v2/orders",'
    body = call + b'"query":{"a":' + content + b"}}}}"
    return lambda: door.ask("POST", "/_sandbox/mcp", body, headers=headers, token=None)


def expected_text(door: Door, text: bytes) -> Send:
    """What a verification expects of a member of a request: another text each time, as
    patterns are remembered.
    """
    door.ask("POST", "/v2/customers", b'{"name":"Ana"}')
    wanted = text.decode(errors="replace")
    number = count()

    def send() -> Answer:
        expected = {"request": {"body": {"name": f"{next(number)}{wanted}"}}}
        return door.send("POST", "/_sandbox/requests/verify", expected)

    return send


def page_of(made: Callable[[Door, bytes], object], form: str) -> Prepare:
    """What shows something that was made with these bytes; `form` has a place for its id."""

    def prepare(door: Door, content: bytes) -> Send:
        ident = made(door, content)
        return lambda: shown(door.ask("GET", form.format(ident)))

    return prepare


def request(door: Door, content: bytes) -> str | None:
    """The id of a refused request with this body."""
    return door.ask("POST", "/v2/customers", content).header("x-request-id")


def message(door: Door, content: bytes) -> int:
    """The number of a message of an inbox."""
    return typed(int, door.ask("POST", "/_sandbox/inbox/hostile", content).json()["received"])


def delivery(door: Door, content: bytes) -> str:
    """The id of a test delivery to a receiver that answers so."""
    with receiving() as receiver:
        receiver.body = content
        return delivery_to(door, receiver.url)


def delivery_to(door: Door, url: str) -> str:
    """The id of a test delivery to an address, of a webhook that is deleted then: there may be only
    so many.
    """
    made = door.send("POST", "/v2/webhooks", {"url": url, "events": ["webhook.test"]}).json()
    path = f"/v2/webhooks/{made['webhook']['id']}"
    ident: str = door.send("POST", f"{path}/test", {}).json()["log"]["id"]
    assert door.ask("DELETE", path).status == 200
    return ident


def shown(answer: Answer) -> None:
    assert answer.status == 200, answer.body[:500]


def posted(path: str, filled: Callable[[bytes], str]) -> Prepare:
    """A form that a page of the server has made for its visitor; `filled` are its fields."""

    def prepare(door: Door, text: bytes) -> Send:
        sent, token = visited(door)
        content = f"token={token}&to=/console/faults&{filled(text)}".encode()
        return lambda: door.ask(
            "POST", path, content, headers=sent, media="application/x-www-form-urlencoded"
        )

    return prepare


def form_field(path: str, name: str, **others: str) -> Prepare:
    """In a field of a form."""
    return posted(path, lambda text: f"{urlencode(others)}&{name}={quote(text)[: len(text)]}")


def form_fields(form: str) -> Prepare:
    """Many fields of a form."""
    return posted(
        "/console/faults/make",
        lambda text: "&".join(form.format(n) for n in range(len(text) // (len(form) + 4))),
    )


def visited(door: Door) -> tuple[list[Header], str]:
    """The headers of a visitor of the console, and the token of their forms."""
    answer = door.ask("GET", "/console/faults")
    cookie = answer.all("set-cookie")[0].partition(";")[0]
    token = re.findall(rb'name="token" value="([^"]+)"', answer.body)[0].decode()
    return [("Cookie", cookie), ("Origin", f"http://127.0.0.1:{door.port}")], token


def import_line(door: Door, content: bytes) -> Send:
    """A line of a file that is imported: the first record of an export, replaced."""
    lines = decompress(door.ask("GET", "/_sandbox/export").body).splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith(b'{"record"'))
    lines[first] = b'{"record":' + content + b"}"
    packed = compress(b"\n".join(lines) + b"\n", 1)

    def send() -> None:
        answer = door.ask("POST", "/_sandbox/import", packed, media=MEDIA)
        assert (answer.status, answer.json()["code"]) == (422, "unusable_file"), answer.body

    return send


class Place(NamedTuple):
    """A place where bytes of strangers enter, or are shown; `size` is the most that it takes."""

    name: str
    prepare: Prepare
    size: int
    shapes: dict[str, Callable[[int], bytes]]


ONE = {"as many as fit": repeated("a")}
LISTS = {  # 18,000 of them, with less than a thousand commas
    "lists in items": repeated("[" * 20 + "]" * 20 + ",", '{"items":[', "1]}"),
    "lists in members": distinct(f'"{{0}}":{"[" * 20 + "]" * 20},', "{", '"z":1}'),
}
TARGETS = {
    "a path of no operation": "/v2/{}",
    "an id in a path": "/v2/orders/{}",
    "a name in a path of the control surface": "/_sandbox/snapshots/{}",
    "the name of a sandbox": "/s/{}/v2/orders",
    "the name of a page": "/docs/{}",
    "a path of the guide": "/guide/{}",
    "a path of the console": "/console/{}",
    "a path of a payer": "/pay/{}",
    "a search": "/v2/customers?search={}",
    "a number in a query": "/v2/orders?minAmount={}",
    "an instant in a query": "/v2/orders?createdFrom={}",
    "an unknown name in a query": "/v2/orders?{}=1",
    "a text that requests contain": "/_sandbox/requests?contains={}",
    "a pattern of paths": "/_sandbox/requests?path={}",
    "a pattern of sandboxes": "/_sandbox/sandboxes?name={}",
    "a search of the guide": "/guide?q={}",
    "a search of the console": "/console/find?q={}",
    "a filter of the console": "/console/requests?contains={}",
    "the text of a QR code": "/_sandbox/qr.svg?code={}",
}
"""Where a path or a query has the bytes."""
POSTED = {
    "a customer": "/v2/customers",
    "an order": "/v2/orders/pix",
    "a webhook": "/v2/webhooks",
    "a project": "/v2/projects",
    "a body of no operation": "/v2/nothing",
    "a fault rule": "/_sandbox/faults",
    "an event": "/_sandbox/events",
    "what requests are expected": "/_sandbox/requests/verify",
    "a message of an inbox": "/_sandbox/inbox/hostile",
}
"""Where a body is posted to."""
PLACES = [
    *(Place(name, target(form), HEAD, TEXTS) for name, form in TARGETS.items()),
    Place("the name of an inbox", target("/_sandbox/inbox/{}", "POST"), HEAD, TEXTS),
    Place("members of a query", members("a{}=1"), HEAD, ONE),
    Place("one member again and again", members("page=1"), HEAD, ONE),
    Place("the shortest members", members("a"), HEAD, ONE),
    Place("the shortest members, of a control", members("a", "/_sandbox/requests"), HEAD, ONE),
    Place("the shortest members, of a page", members("a", "/console/requests"), HEAD, ONE),
    Place("a thousand members of a query", members("a{0}={1}"), HEAD, TEXTS),
    Place(
        "a thousand members of a page's query",
        members("a{0}={1}", "/console/requests"),
        HEAD,
        TEXTS,
    ),
    Place("different headers", headers("x-a{}"), HEAD, ONE),
    Place("different headers of the sandbox", headers("x-sandbox{}"), HEAD, ONE),
    Place("one header again and again", headers("a"), HEAD, ONE),
    Place("ninety headers", headers("x-sandbox-{}", 90), HEAD, TEXTS),
    *(
        Place(f"the header {name}", header(name), HEAD, TEXTS)
        for name in (
            "Authorization",
            "Accept",
            "Prefer",
            "X-Sandbox",
            "X-Sandbox-Simulate",
            "X-Sandbox-Delay",
            "X-Sandbox-As-Of",
            "X-Sandbox-Client-IP",
            "X-Sandbox-Admin-Key",
            "Origin",
            "Idempotency-Key",
            "User-Agent",
            "If-Match",
        )
    ),
    Place("the type of a body", header("Content-Type", "POST"), HEAD, TEXTS),
    Place("the coding of a body", header("Content-Encoding", "POST"), HEAD, TEXTS),
    Place("a cookie of a page", header("Cookie", path="/console/faults"), HEAD, TEXTS),
    Place("the host of a page", header("X-Forwarded-Host", path="/console/faults"), HEAD, TEXTS),
    *(Place(name, body("POST", path), BODY, BODIES) for name, path in POSTED.items()),
    Place("lists in an order", body("POST", "/v2/orders/pix"), 37_000, LISTS),
    Place(
        "words that are not listed",
        body("POST", "/v2/webhooks"),
        33_000,
        {"events": distinct('"subscription.renewal_duee{0}",', '{"events":[', '""]}')},
    ),
    Place("settings", body("PATCH", "/_sandbox/settings"), BODY, BODIES),
    Place("a text that is expected of a request", expected_text, BODY // 7, TEXTS),
    Place("a line of a file", import_line, BODY, BODIES),
    Place(
        "the answer of a receiver",
        lambda door, content: lambda: delivery(door, content),
        BODY,
        BODIES,
    ),
    Place("the page of a request", page_of(request, "/console/requests/{}"), KEPT, BODIES),
    Place("a request of the journal", page_of(request, "/_sandbox/requests/{}"), KEPT, BODIES),
    Place(
        "lists in a request of the journal",
        page_of(request, "/_sandbox/requests/{}"),
        37_000,
        LISTS,
    ),
    Place(
        "the body of a request",
        page_of(request, "/console/whole/_sandbox/requests/{}"),
        KEPT,
        BODIES,
    ),
    Place("the page of a message", page_of(message, "/console/inboxes/hostile/{}"), BODY, BODIES),
    Place(
        "the page of an inbox",
        page_of(message, "/console/inboxes/hostile?page=1&x={}"),
        BODY,
        BODIES,
    ),
    Place(
        "the page of a delivery", page_of(delivery, "/console/webhooks/deliveries/{}"), BODY, BODIES
    ),
    Place("a query of a tool", call_of_a_tool, BODY, {name: BODIES[name] for name in TOOLS}),
    Place("a rule in a form", form_field("/console/try/createFault", "body"), FORM, BODIES),
    Place("a body in a form", form_field("/console/try/createCustomer", "body"), FORM, BODIES),
    Place(
        "headers in a form",
        form_field("/console/try/createCustomer", "headers", body="{}"),
        FORM,
        TEXTS,
    ),
    Place("a name in a form", form_field("/console/faults/make", "name"), FORM, TEXTS),
    Place("many fields of a form", form_fields("a{}=1"), FORM, ONE),
]
CASES = pytest.mark.parametrize("place", PLACES, ids=[place.name for place in PLACES])


@pytest.fixture(scope="module")
def server() -> Iterator[Measured]:
    """A server whose CPU time is read."""
    with measured() as made:
        for path in (
            "/",
            "/guide?q=order",
            "/console/requests",
            "/openapi.json",
            "/_sandbox/qr.svg?code=x",
        ):
            made.door.ask("GET", path)  # what the first visitor waits for
        yield made


@pytest.mark.promise("nothing-request-costs-more-length")
@pytest.mark.check
@CASES
@pytest.mark.matrix
def test_the_most_bytes_hold_nobody_up(server: Measured, place: Place) -> None:
    wrong = {}
    for shape, made in place.shapes.items():
        hold = server.heart.least(
            place.prepare(server.door, made(place.size)), enough=MOST_HOLD
        ).hold
        if hold > MOST_HOLD:
            wrong[shape] = hold
    assert not wrong


def pix_code(number: int) -> str:
    """A code of a sandbox with the longest names."""
    return encode(100 + number, "a" * 35, "Loja" * 10, "Recife" * 10)


@pytest.mark.promise("text-qr-code")
def test_images_of_long_codes_are_drawn_beside_others(server: Measured) -> None:
    """Each took 150 to 200 ms of everybody's time. One that was drawn before is not drawn again."""
    codes = iter(map(pix_code, range(100)))
    path = "/_sandbox/qr.png?code="
    cost = server.heart.least(lambda: shown(server.door.ask("GET", path + quote(next(codes)))))
    assert cost.hold <= MOST_HOLD
    last = quote(pix_code(4))
    assert (
        server.heart.least(lambda: shown(server.door.ask("GET", path + last))).total
        < cost.total / 5
    )
    assert server.door.ask("GET", path + "0" * 513).status == 422


@pytest.mark.promise("nothing-request-costs-more-length")
def test_a_word_that_a_search_repeats_is_looked_for_once(server: Measured) -> None:
    """A hundred of them took a quarter of a second, in which no other search was answered."""
    once, often = (
        lambda n=n: shown(server.door.ask("GET", f"/guide?q={'a+' * n}")) for n in (1, 100)
    )
    assert server.heart.least(often).total < 8 * server.heart.least(once).total


@pytest.mark.promise("nothing-request-costs-more-length")
def test_a_sorted_list_of_large_records_holds_nobody_up(server: Measured) -> None:
    """Of 4,096 orders with as many items as fit, each was opened to be sorted: a
    third of a second.
    """
    ids = server.door.ask("GET", "/_sandbox/credentials").json()["sample"]
    items = [{"description": "a" * 256, "quantity": 1, "amount": 1}] * 100
    order = order_body(ids["projectId"], ids["planId"], totalAmount=100, items=items)
    for _ in range(1_500):
        assert server.door.send("POST", "/v2/orders/pix", order).status == 201
    days = count(1)  # a list that was asked for before is remembered

    def send() -> None:
        since = f"2001-01-{next(days):02}T00:00:00Z"
        shown(
            server.door.ask(
                "GET", f"/v2/orders?status=pending&sort=totalAmount&limit=1&created_since={since}"
            )
        )

    assert server.heart.least(send).hold <= MOST_HOLD


@pytest.mark.promise("others-served-beside-jobs")
def test_orders_of_an_archived_project_hold_nobody_up() -> None:
    """One step canceled 500 of them, and opened deliveries to every webhook for each."""
    with measured() as server:
        door = server.door
        ids = door.ask("GET", "/_sandbox/credentials").json()["sample"]
        for number in range(12):
            hook = {"url": f"https://hooks{number}.example/", "events": ["order.*"]}
            assert door.send("POST", "/v2/webhooks", hook).status == 201
        order = order_body(ids["projectId"], ids["planId"])
        for _ in range(300):
            assert door.send("POST", "/v2/orders/pix", order).status == 201

        def archive() -> None:
            shown(door.send("POST", f"/v2/projects/{ids['projectId']}/archive", {}))
            shown(door.ask("GET", "/v2/orders?limit=1"))

        assert server.heart.cost_of(archive).hold <= MOST_HOLD
        pending = f"/v2/orders?projectId={ids['projectId']}&status=pending"
        assert door.ask("GET", pending).json()["pagination"]["total"] == 0


@pytest.mark.promise("nothing-request-costs-more-length")
def test_a_page_of_large_events_and_a_large_answer_hold_nobody_up(server: Measured) -> None:
    """A hundred were 31 MB, which were written, and then read again to be checked."""
    assert server.door.send("POST", "/_sandbox/reset", {}).status == 200
    ids = server.door.ask("GET", "/_sandbox/credentials").json()["sample"]
    items = [{"description": "\x01" * 256, "quantity": 1, "amount": 1}] * 100
    metadata = {f"name{number}": "\x01" * 500 for number in range(50)}
    order = order_body(
        ids["projectId"], ids["planId"], totalAmount=100, items=items, metadata=metadata
    )
    for _ in range(100):
        assert server.door.send("POST", "/v2/orders/pix", order).status == 201
    page = "/_sandbox/events?type=order.created&limit=100"
    assert len(server.door.ask("GET", page).body) > 25_000_000
    assert server.heart.least(lambda: shown(server.door.ask("GET", page))).hold <= MOST_HOLD
    shown(server.door.ask("GET", "/v2/orders?limit=100"))
    (listed,) = server.door.ask("GET", "/_sandbox/requests?operationId=listOrders&limit=1").json()[
        "requests"
    ]
    path = f"/_sandbox/requests/{listed['id']}"
    assert len(server.door.ask("GET", path).body) > 15_000_000
    assert server.heart.least(lambda: shown(server.door.ask("GET", path))).hold <= MOST_HOLD
