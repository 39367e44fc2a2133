"""Messages without their secrets, as the contract marks them."""

from time import thread_time
from typing import Any

import orjson
import pytest

from stub_server.contract.document import Document
from stub_server.contract.redaction import LARGEST, Redactor
from stub_server.contract.secrets import FORMS, REDACTED
from stub_server.core.record import Body

*_, JWT = FORMS
PRIVATE = "sk_sandbox_" + "a1B2" * 10


def contract() -> Document:
    """Two operations, of which one reaches a mark, through two references."""
    answer = {"200": {"description": "", "content": {"application/json": {"schema": {}}}}}
    return Document(
        {
            "paths": {
                "/a": {"get": {"operationId": "plain", "tags": ["T"], "responses": answer}},
                "/b": {
                    "post": {
                        "operationId": "carrier",
                        "tags": ["T"],
                        "requestBody": {
                            "content": {
                                "application/json": {"schema": {"$ref": "#/components/schemas/A"}}
                            }
                        },
                        "responses": answer,
                    }
                },
            },
            "components": {
                "schemas": {
                    "A": {"type": "array", "items": {"$ref": "#/components/schemas/B"}},
                    "B": {
                        "properties": {
                            "api_pass": {"type": "string", "x-secret": True},
                            "list": {"$ref": "#/components/schemas/A"},
                        }
                    },
                    "C": {"type": "string", "description": "x-secret"},
                }
            },
        }
    )


def without(*bodies: Any) -> list[Any]:
    """JSON values without their secrets."""
    found = Redactor(contract()).messages(*(orjson.dumps(body) for body in bodies))
    return [None if body is None else orjson.loads(body) for body in found]


def test_operations_that_reach_a_mark_carry_secrets() -> None:
    redactor = Redactor(contract())
    assert {"carrier"} == redactor.operations
    assert {"api_pass", "authorization", "cookie"} <= redactor.names


def test_members_are_left_out_by_name_wherever_they_stand() -> None:
    body: Body = {
        "Api_Pass": "abc",
        "deep": [{"api_pass": 'a\\"b\\'}, {"api_pass": None, "other": 5}],
    }
    expected = {
        "Api_Pass": REDACTED,
        "deep": [{"api_pass": REDACTED}, {"api_pass": None, "other": 5}],
    }
    assert [expected] == without(body)


def test_what_is_a_secret_in_the_request_is_none_in_its_refusal() -> None:
    """Refusals repeat values, cut short."""
    request = {"api_pass": "correct horse battery staple"}
    told = {
        "message": 'api_pass: "correct horse batte… is no key',
        "whole": "correct horse battery staple",
    }
    _, answer = without(request, told)
    assert {"message": f'api_pass: "{REDACTED}… is no key', "whole": REDACTED} == answer


def test_what_only_looks_like_a_token_stays() -> None:
    others = (
        "task_sk_short whsec_ sk_sandbox_ sk_live_0123456789abcdef"
        " eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"
    )
    assert [{"note": others}] == without({"note": others})


def test_what_is_no_json_loses_its_secrets_too() -> None:
    assert [
        f'{{"api_pass": "{REDACTED}'.encode(),
        f"a=b&api_pass={REDACTED}&d=e".encode(),
        b"\xff\xfe",
    ] == Redactor(contract()).messages(b'{"api_pass": "abc', b"a=b&api_pass=c&d=e", b"\xff\xfe")


WHOLE = [REDACTED.encode()]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (f"q=sk%5Fsandbox_{'a1B2' * 10}&x=1", REDACTED),
        ("Api_Pass=x&Cookie=y&a=b", f"Api_Pass={REDACTED}&Cookie={REDACTED}&a=b"),
        (f"{PRIVATE}=1", f"{REDACTED}=1"),
        ("a=%20&b=100%", "a=%20&b=100%"),
    ],
)
def test_queries_are_read_percent_decoded(query: str, expected: str) -> None:
    assert expected == Redactor(contract()).query(query)


def test_a_value_is_known_percent_encoded_once() -> None:
    redactor = Redactor(contract(), own=(b"correct-horse",))
    for hidden in (PRIVATE.replace("_", "%5F"), "%63orrect-horse"):
        assert [REDACTED] * 2 == [redactor.text(f"/v2/{hidden}"), redactor.query(f"a={hidden}")]
        assert WHOLE == redactor.messages(
            orjson.dumps({"message": f"There is no GET /v2/{hidden}."})
        )
        assert WHOLE == redactor.messages(f"a={hidden}".encode())


@pytest.mark.parametrize("text", [begins * 3_000 for begins in FORMS] + [JWT + "a" * 90_000])
def test_words_that_begin_like_a_token_are_read_in_linear_time(text: str) -> None:
    started = thread_time()
    Redactor().text(text)
    assert thread_time() - started < 1, "going back again and again takes minutes"


def test_members_are_known_in_any_case_and_values_written_as_escapes() -> None:
    redactor = Redactor(contract(), own=(b"/hunter2=",))
    for body in (b'{"Api_Pass": "x"}', b'{"cookie": "x"}', b'"\\u002fhunter2="'):
        assert redactor.suspects(body)
    for spelled in (b'"\\/hunter2="', b'"/hunter2\\u003d"', b'"\\u002Fhunter2\\u003D'):
        assert b"hunter2" not in (redactor.messages(b'{"a": ' + spelled + b"}")[0] or b"")
    assert WHOLE == redactor.messages(orjson.dumps(PRIVATE).replace(b"_", b"\\u005f"))


@pytest.mark.promise("search-for-secrets")
def test_what_is_too_much_to_look_through_is_left_out_with_what_belongs_to_it() -> None:
    assert WHOLE * 2 == Redactor(contract()).messages(b'"' + b"a" * LARGEST + b'"', b"{}")


@pytest.mark.parametrize(
    "body",
    [
        b'"' * LARGEST,
        b'"api_pass":"' * (LARGEST // 12),
        b'"value":"' * (LARGEST // 9),
        b'"name":"cookie",' * (LARGEST // 16),
        b'{"api_pass":"' + b"a" * 200_000 + b'","b":"' + b"a" * 50_000 + b'"}',
        b'{"api_pass":"' + b'\\"' * 120_000,
        b"&api_pass=" * (LARGEST // 10),
        b'"api_pass"' + b" " * 200_000,
    ],
)
def test_a_body_is_searched_in_linear_time(body: bytes) -> None:
    """The largest that is searched, of shapes that would have a search go back, which
    takes minutes.
    """
    redactor = Redactor(contract(), own=(b"hunter2",))
    redactor.messages(b"{}")
    started = thread_time()
    redactor.messages(body)
    assert thread_time() - started < 1


def test_secrets_that_begin_alike_are_taken_out_as_far_as_they_are_equal() -> None:
    value = "a" * 40
    assert f'"{REDACTED}{REDACTED}b"'.encode() == without_raw({"api_pass": value}, "a" * 60 + "b")


def without_raw(request: Any, answer: Any) -> bytes | None:
    """An answer without the secrets of its request, as bytes."""
    return Redactor(contract()).messages(orjson.dumps(request), orjson.dumps(answer))[1]
