"""What the journal records: everything about a request but its secrets."""

from contextlib import closing
from time import monotonic, sleep

import httpx2
import pytest

from stub_server.contract.secrets import LEFT_OUT, REDACTED
from stub_server.data.keys import own_pair
from stub_server.engine.kept import Journal, Trace
from stub_server.testing import Sandbox, Server

from ..conftest import Serve
from ..support.live import NO_TLS, Live
from ..support.make import Json, created

TARGET = "https://shop.example.com/hooks"


@pytest.fixture
def journal(live: Live, sandbox: Sandbox) -> Journal:
    """The requests that are kept, seen from inside."""
    return journal_of(live, sandbox)


def journal_of(live: Live, sandbox: Sandbox) -> Journal:
    """The requests that a sandbox keeps."""
    return live.app.sandboxes.entry(sandbox.name).sandbox.journal


def everything(journal: Journal) -> str:
    """All that it holds, as text."""
    return str([{name: getattr(trace, name) for name in trace.__slots__} for trace in journal])


def kept(journal: Journal, answer: httpx2.Response) -> Trace:
    """The newest request, once it is that of an answer: its client may be told before it has
    ended.
    """
    limit = monotonic() + 10
    while len(journal) == 0 or next(reversed(journal)).id != answer.headers["X-Request-Id"]:
        assert monotonic() < limit, answer.text
        sleep(0.01)
    return next(reversed(journal))


# -- what is kept


@pytest.mark.promise("other-charsets-left-out")
@pytest.mark.parametrize("charset", ["utf-16", "UTF-16LE", "utf-32", "utf-7", "cp037"])
def test_no_body_is_kept_in_a_charset_in_which_secrets_are_not_found(
    api: httpx2.Client, journal: Journal, charset: str
) -> None:
    content = '{"name": "Ana"}'.encode(charset)
    for before in ("", ' x="charset=utf-8";', " charset=utf-8;"):
        headers = {"Content-Type": f"application/json;{before} charset={charset}"}
        answer = api.post("/v2/customers", content=content, headers=headers)
        assert kept(journal, answer).body == LEFT_OUT, headers


# -- what is not


@pytest.mark.promise("no-secret-in-journal")
@pytest.mark.check
def test_no_secret_is_in_the_journal(
    api: httpx2.Client, journal: Journal, sandbox_name: str, credentials: Json
) -> None:
    """Keys and tokens that are sent or answered: in headers, bodies, queries, paths
    and refusals.
    """
    own = credentials
    signing = "whsec_" + "QUJD" * 8
    receiver = {
        "url": TARGET,
        "events": ["*"],
        "headers": [{"name": "Authorization", "value": "Basic c2VjcmV0IHdvcmQ="}],
    }
    key = created(api.post("/api-keys", json={"name": "a", "scopes": ["plans:read"]}))["api_key"]
    webhook = created(api.post("/v2/webhooks", json=receiver))["webhook"]
    rotated = api.post(f"/v2/webhooks/{webhook['id']}/regenerate-key", json={}).json()
    token = created(api.post("/_sandbox/tokens", json={}))["token"]
    fork = created(api.post(f"/_sandbox/sandboxes/{sandbox_name}/fork", json={}))["sandbox"][
        "credentials"
    ]
    api.get(f"/v2/webhooks/{webhook['id']}")
    api.get("/v2/webhooks")
    bad = api.post("/_sandbox/certify", json={"url": TARGET, "signing_key": signing[:-3] + " bad"})
    assert 422 == bad.status_code
    name = {"name": "Authorization"}
    value = {"value": "Basic c2VjcmV0IHdvcmQ="}
    between = {"on": True, "note": 'of "our" shop', "of": {"in": [1, "two"]}}
    for odd in (name | between | value, value | between | name):
        assert 422 == api.post("/v2/webhooks", json=receiver | {"headers": [odd]}).status_code
    api.post(
        "/_sandbox/certify",
        content=f'{{"signing_key": "{signing}"',
        headers={"Content-Type": "application/json"},
    )
    api.post("/v2/customers", json={"private_key": own["private_key"]})
    api.post("/v2/nowhere", json={"anything": own["private_key"], "signing_key": signing})
    api.get(f"/v2/{own['private_key']}?x=1")
    api.get(f"/v2/plans?api_key={own['private_key']}&token={token}")
    headers = {
        "X-Api-Key": own["private_key"],
        "Cookie": f"session={token}",
        "X-Sandbox-Admin-Key": "hunter2hunter2",
    }
    httpx2.get(f"{api.base_url}v2/plans", headers=headers, verify=NO_TLS)
    api.get("/v2/plans", headers=headers | {"Authorization": f"Bearer {own['private_key']}"})
    found = everything(journal)
    secrets = [
        own["private_key"], own["jwt"], key["private_key"], webhook["signing_key"], token, fork["private_key"],
        fork["jwt"], signing, signing[:-3], "c2VjcmV0IHdvcmQ=", "hunter2", rotated["webhook"]["signing_key"],
    ]  # fmt: skip
    assert [] == [secret for secret in secrets if secret in found]
    assert found.count(REDACTED) > 20


JSON = {"Content-Type": "application/json"}


@pytest.mark.promise("no-misplaced-token-in-journal")
def test_no_secret_is_kept_of_an_operation_that_has_none(
    api: httpx2.Client, journal: Journal, credentials: Json
) -> None:
    """Wherever somebody puts it, percent-encoded once or written as escapes, and glued to
    other letters.
    """
    own = credentials["private_key"]
    token = credentials["jwt"]
    before = len(journal)
    for headers in (
        {"Referer": f"https://shop.example/?key={own}"},
        {"Referer": "https://shop.example/?private_key=hunter2hunter2"},
        {"Referer": "https://shop.example/?private%5Fkey=hunter2hunter2"},
        {"X-Forwarded-Authorization": f"Bearer {token}"},
        {"Idempotency-Key": own},
        {"X-Note": own.replace("_", "%5F")},
        {"X-Note": f"x{own}y"},
    ):
        api.get("/v2/plans", headers=headers)
    for query in (
        f"a={own}",
        f"a={token}",
        f"{own}=1",
        "Token=hunter2hunter2",
        "tok%65n=hunter2hunter2",
        f"a={own.replace('_', '%5F')}",
    ):
        api.get(f"/v2/plans?{query}")
    for text in (own.replace("_", "%5F"), f"key{own}key", f"t{token}"):
        api.get(f"/v2/plans/{text}")
        api.get(f"/v2/nowhere/{text}")
    for content in (
        '{"Private_Key": "hunter2hunter2"}', '{"cookie": "hunter2hunter2"}', f'{{"name": "{own}"}}',
        f'{{"name": "{token}"}}', f'{{"name": "a{own}b{token}"}}', '{"name": "' + own.replace("_", "\\u005f") + '"}',
        '{"private\\u005fkey": "hunter2hunter2"}', '{"metadata": {"' + own.replace("_", "%5f") + '": "a"}}',
        '{"metadata": {"a": "' + own.replace("_", "%5F") + '"}}',
    ):  # fmt: skip
        answer = api.post("/v2/customers", content=content, headers=JSON)
    kept(journal, answer)
    assert 28 == len(journal) - before
    found = everything(journal) + api.get("/_sandbox/requests.har").text
    hidden = own.replace("_", "%5F"), own.replace("_", "%5f"), own.replace("_", "\\u005f")
    secrets = (own, own[11:], own[11:30], token, token[-40:], "hunter2", *hidden)
    assert [] == [secret for secret in secrets if secret in found]


@pytest.mark.promise("tokens-have-forms")
@pytest.mark.check
def test_all_tokens_of_the_server_have_forms_that_are_known(serve: Serve) -> None:
    """Those that it gives, one by one, glued to letters, in a place of no secret; the operator's
    own texts too.
    """
    live = serve(seed=31, admin_key="correct-horse", secret=b"battery-staple", scenario="empty")
    with (
        closing(Server(live.url, live.settings.admin_key)) as server,
        server.sandbox() as sandbox,
    ):
        api = sandbox.api
        journal = journal_of(live, sandbox)
        made = created(api.post("/api-keys", json={"name": "a", "scopes": ["plans:read"]}))[
            "api_key"
        ]
        hook = sandbox.deliver_to(TARGET)
        own = sandbox.control.get("/credentials").json()
        tokens = [
            own["private_key"],
            own["jwt"],
            own["control_key"],
            made["private_key"],
            hook["signing_key"],
        ]
        for token in (*tokens, "correct-horse", "battery-staple"):
            for body in ({"name": f"x{token}y"}, {f"x{token}y": 1}):
                trace = kept(journal, api.post("/v2/customers", json=body))
                told = str([trace.body, trace.answer, *(trace.parts or ())])
                assert REDACTED in told
                assert token[min(12, len(token) // 2) :] not in told, token


@pytest.mark.promise("no-admin-key-in-journal")
@pytest.mark.check
def test_the_admin_key_is_kept_nowhere(serve: Serve) -> None:
    live = serve(seed=29, admin_key="correct-horse", scenario="empty")
    headers = {"X-Sandbox-Admin-Key": "correct-horse", "X-Note": "is correct-horse"}
    for path in ("/v2/correct-horse", "/v2/plans?a=correct-horse", "/v2/plans?a=correct%2Dhorse"):
        httpx2.get(live.url + path, headers=headers, verify=NO_TLS, timeout=30)
    httpx2.post(
        f"{live.url}/v2/nowhere",
        json={"a": ["correct-horse"]},
        headers=headers,
        verify=NO_TLS,
        timeout=30,
    )
    for name in ("Correct-Horse", "X-Sandbox-Correct-Horse"):  # a warning repeats it
        httpx2.get(f"{live.url}/v2/plans", headers={name: "1"}, verify=NO_TLS, timeout=30)
    journal = live.app.sandboxes.default.journal
    kept = str([{name: getattr(trace, name) for name in trace.__slots__} for trace in journal])
    assert 6 == len(journal)
    assert "correct" not in kept
    assert REDACTED in kept


@pytest.mark.check
@pytest.mark.parametrize(
    "content",
    [
        r'{"name": "q\/8Zr0v\"N1kTt"}',
        r'{"name": "q/8Zr0v\"N1kTt"}',
        r'{"name": "\u0071\/8Zr0v\u0022N1kTt"}',
        r'{"name": "q\/8Zr0v\"N1kTt',
        'q/8Zr0v"N1kTt',
    ],
)
def test_the_admin_key_is_kept_nowhere_however_it_is_spelled(serve: Serve, content: str) -> None:
    """PHP writes `/` as `\\/` in JSON."""
    key = 'q/8Zr0v"N1kTt'
    live = serve(seed=29, admin_key=key, scenario="empty")
    sandbox = live.app.sandboxes.default
    headers = {"Authorization": f"Bearer {own_pair(sandbox)[1]}", **JSON}
    answer = httpx2.post(
        f"{live.url}/v2/customers", content=content, headers=headers, verify=NO_TLS, timeout=30
    )
    assert answer.status_code in (400, 422)
    (trace,) = [trace for trace in sandbox.journal if trace.id == answer.headers["x-request-id"]]
    assert "N1kTt" not in str([trace.body, trace.answer, trace.path, *(trace.parts or ())])


@pytest.mark.promise("no-secret-in-log")
@pytest.mark.check
def test_the_log_is_told_no_secret(live: Live, api: httpx2.Client, credentials: Json) -> None:
    """Neither of a request that is kept nor of one that is not; warnings repeat names
    of members.
    """
    told = []
    listeners = live.app.server.listeners
    listeners.append(lambda trace: told.append((trace.path, list(trace.warnings))))
    own = credentials["private_key"]
    try:
        api.get(f"/v2/plans/{own}")
        api.get(f"/_sandbox/requests/{own}")
        api.get(f"/v2/plans?{own[:20]}=1")
        httpx2.get(
            f"{live.url}/_sandbox/clock", headers={f"X-Sandbox-{own[:20]}": "1"}, verify=NO_TLS
        )
        limit = monotonic() + 10
        # it is told when the client has its answer already
        while len(told) < 4 and monotonic() < limit:
            sleep(0.01)
    finally:
        del listeners[-1]
    assert [
        (f"/v2/plans/{REDACTED}", []),
        (f"/_sandbox/requests/{REDACTED}", []),
        ("/v2/plans", [f"unknown_query_parameter:{REDACTED}"]),
        ("/_sandbox/clock", [f"unknown_sandbox_header:x-sandbox-{REDACTED}"]),
    ] == told
