"""Messages without their secrets, as the contract marks them."""

from time import thread_time

import orjson
import pytest

from stub_server.contract.redaction import LARGEST, Redactor
from stub_server.contract.secrets import FORMS, REDACTED

from ..support.contract import document

*_, JWT = FORMS


def test_what_is_a_secret_in_the_request_is_none_in_its_refusal() -> None:
    """Refusals repeat values, cut short."""
    secret = "correct horse battery staple"
    told = {"message": f'private_key: "{secret[:19]}… is no key', "whole": secret}
    sent = orjson.dumps({"private_key": secret})
    _, answer = Redactor(document()).messages(sent, orjson.dumps(told))
    assert {"message": f'private_key: "{REDACTED}… is no key', "whole": REDACTED} == orjson.loads(
        answer or b""
    )


def test_what_only_looks_like_a_token_stays() -> None:
    others = (
        "task_sk_short whsec_ sk_sandbox_ sk_live_0123456789abcdef"
        " eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"
    )
    body = orjson.dumps({"note": others})
    assert [body] == Redactor(document()).messages(body)


def test_what_is_no_json_loses_its_secrets_too() -> None:
    assert [
        f'{{"private_key": "{REDACTED}'.encode(),
        f"a=b&private_key={REDACTED}&d=e".encode(),
        b"\xff\xfe",
    ] == Redactor(document()).messages(
        b'{"private_key": "abc', b"a=b&private_key=c&d=e", b"\xff\xfe"
    )


WHOLE = [REDACTED.encode()]


@pytest.mark.parametrize("text", [begins * 3_000 for begins in FORMS] + [JWT + "a" * 90_000])
def test_words_that_begin_like_a_token_are_read_in_linear_time(text: str) -> None:
    started = thread_time()
    Redactor().text(text)
    assert thread_time() - started < 1, "going back again and again takes minutes"


@pytest.mark.promise("search-for-secrets")
def test_what_is_too_much_to_look_through_is_left_out_with_what_belongs_to_it() -> None:
    assert WHOLE * 2 == Redactor(document()).messages(b'"' + b"a" * LARGEST + b'"', b"{}")


@pytest.mark.parametrize(
    "body",
    [
        b'"' * LARGEST,
        b'"private_key":"' * (LARGEST // 15),
        b'"value":"' * (LARGEST // 9),
        b'"name":"cookie",' * (LARGEST // 16),
        b'{"private_key":"' + b"a" * 200_000 + b'","b":"' + b"a" * 50_000 + b'"}',
        b'{"private_key":"' + b'\\"' * 120_000,
        b"&private_key=" * (LARGEST // 13),
        b'"private_key"' + b" " * 200_000,
    ],
)
def test_a_body_is_searched_in_linear_time(body: bytes) -> None:
    """The largest that is searched, of shapes that would have a search go back, which
    takes minutes.
    """
    redactor = Redactor(document(), own=(b"hunter2",))
    redactor.messages(b"{}")
    started = thread_time()
    redactor.messages(body)
    assert thread_time() - started < 1
