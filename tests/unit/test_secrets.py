"""Messages without their secrets, as the contract marks them."""

from typing import Any

import orjson
import pytest

from stub_server.contract.document import Document
from stub_server.contract.secrets import (
    DEEPEST,
    LARGEST,
    LARGEST_SEARCHED,
    MOST_VALUES,
    REDACTED,
    Secrets,
    shapeless,
)
from stub_server.kernel.record import Body

KEY = "whsec_" + "A" * 40
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
                            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}
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
    found = Secrets(contract()).without(*(orjson.dumps(body) for body in bodies))
    return [None if body is None else orjson.loads(body) for body in found]


def test_operations_that_reach_a_mark_carry_secrets() -> None:
    secrets = Secrets(contract())
    assert {"carrier"} == secrets.operations
    assert {"api_pass", "authorization", "admin_key", "cookie"} <= secrets.names


def test_members_are_left_out_by_name_wherever_they_stand() -> None:
    body: Body = {"Api_Pass": "abc", "deep": [{"api_pass": {"x": 1}}, {"api_pass": None, "other": 5}]}
    expected = {"Api_Pass": REDACTED, "deep": [{"api_pass": REDACTED}, {"api_pass": None, "other": 5}]}
    assert [expected] == without(body)


def test_of_a_list_of_headers_only_credentials_are_left_out() -> None:
    headers = [{"name": "Authorization", "value": "Bearer x"}, {"name": "X-Team", "value": "blue"}]
    assert [[{"name": "Authorization", "value": REDACTED}, headers[1]]] == without(headers)


def test_what_is_a_secret_in_the_request_is_none_in_its_refusal() -> None:
    """Refusals repeat values, cut short."""
    request = {"api_pass": "correct horse battery staple"}
    told = {"message": 'api_pass: "correct horse batte… is no key', "whole": "correct horse battery staple"}
    _, answer = without(request, told)
    assert {"message": f'api_pass: "{REDACTED}… is no key', "whole": REDACTED} == answer


def test_keys_and_tokens_of_this_server_are_known_by_their_looks() -> None:
    token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"
    assert [{"note": f"{REDACTED} {REDACTED} {REDACTED}"}] == without({"note": f"{KEY} {PRIVATE} {token}"})
    assert [{"note": "task_sk_short whsec_ sk_sandbox"}] == without({"note": "task_sk_short whsec_ sk_sandbox"})


def test_what_is_no_json_is_left_out_where_it_names_a_secret() -> None:
    found = Secrets(contract()).without(b'{"api_pass": "abc', b"a=b", b"\xff\xfe", None, b"")
    assert [REDACTED.encode(), b"a=b", b"\xff\xfe", None, b""] == found


def test_messages_of_very_many_secrets_are_left_out_as_a_whole() -> None:
    """Looking for each of them in the others would take long."""
    assert [REDACTED.encode(), REDACTED.encode()] == Secrets(contract()).without(
        orjson.dumps([{"api_pass": f"a long secret {number}"} for number in range(51)]), b"{}"
    )


TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"
WHOLE = [REDACTED.encode()]


def test_paths_and_queries_are_stripped() -> None:
    expected = f"/v2/{REDACTED}?private_key={REDACTED}&x=1&token={REDACTED}&token_type=y"
    asked = f"/v2/{PRIVATE}?private_key=abc&x=1&token=q&token_type=y"
    assert expected.encode() == Secrets(contract()).line(asked.encode())


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (f"q=sk%5Fsandbox_{'a1B2' * 10}&x=1", f"{REDACTED}&x=1"),
        ("Pass%77ord=x&Cookie=y&a=b", f"Pass%77ord={REDACTED}&Cookie={REDACTED}&a=b"),
        (f"{PRIVATE}=1", f"{REDACTED}=1"),
        ("a=1&" * 60, REDACTED),
    ],
)
def test_queries_are_read_percent_decoded(query: str, expected: str) -> None:
    assert expected == Secrets(contract()).query(query)


@pytest.mark.parametrize("times", [1, 2, 3, 5])
def test_a_value_is_known_however_often_it_is_percent_encoded(times: int) -> None:
    secrets = Secrets(contract(), admin_key=b"correct-horse")
    for value in (PRIVATE.replace("_", "%5F"), "%63orrect-horse"):
        hidden = value.replace("%", "%" + "25" * (times - 1))
        assert [REDACTED] * 2 == [secrets.text(f"/v2/{hidden}"), secrets.query(f"a={hidden}")]
        told = {"message": f"There is no GET /v2/{hidden}.", f"a {hidden}": [1]}
        assert [b'{"message":"[redacted]","[redacted]":[1]}'] == secrets.without(orjson.dumps(told))
        assert WHOLE == secrets.without(f"a={hidden}".encode())
    named = "pass%77ord".replace("%", "%" + "25" * (times - 1))
    assert f"{named}={REDACTED}" == secrets.query(f"{named}=x")


def test_members_are_known_by_names_that_are_percent_encoded() -> None:
    body = {"metadata": {"pass%77ord": "correct horse", "p%2561ssword": "battery", "a%20b": "correct horse"}}
    (found,) = without(body)
    assert {"pass%77ord": REDACTED, "p%2561ssword": REDACTED, "a%20b": REDACTED} == found["metadata"]


def test_a_text_that_is_encoded_without_end_is_left_out() -> None:
    assert REDACTED == Secrets(contract()).text("%" + "25" * 20 + "41")
    assert "100% of %41 %" == Secrets(contract()).text("100% of %41 %")


@pytest.mark.parametrize("value", [PRIVATE, KEY, TOKEN, f"session_{TOKEN}", PRIVATE[:20]])
def test_a_value_of_this_server_is_known_in_any_text(value: str) -> None:
    assert REDACTED == Secrets(contract()).text(value.replace("_", "%5F").replace("e", "%65"))
    assert value not in shapeless(f"a-{value}?b")


def test_a_word_that_begins_like_a_token_is_read_once() -> None:
    """The search for the next one goes on behind it: to begin again in it would take time with its square."""
    word = "-eyJ" * 1_000
    assert word == shapeless(word)
    assert f"-{REDACTED} x" == shapeless(f"{word}.a.b x")


def test_members_are_known_in_any_case_and_written_as_escapes() -> None:
    secrets = Secrets(contract())
    for body in (b'{"pass\\u0077ord": "x"}', b'{"PassWord": "x"}', b'{"Private_Key": "x"}', b'{"cookie": "x"}'):
        assert secrets.suspects("/", b"", body)
    assert [b'{"password":"[redacted]"}', b"a"] == secrets.without(b'{"pass\\u0077ord": "x"}', b"a")
    assert WHOLE == secrets.without(b"pass%77ord=x")
    assert WHOLE == secrets.without(b'{"pass\\u0077ord": "x"')


@pytest.mark.parametrize(
    "request_",
    [
        (f"/{PRIVATE}", b"", b"", b""),
        ("/", f"q={TOKEN}".encode(), b"", b""),
        ("/", b"q=%73k", b"", b""),
        ("/", b"Password=x", b"", b""),
        ("/", b"", f"referer\nhttps://x/{KEY}".encode(), b""),
        ("/", b"", b"referer\nhttps://x/?password=x", b""),
        ("/", b"", b"", f'"{PRIVATE}"'.encode()),
        ("/", b"", b"", b'{"api_pass": 1}'),
        ("/", b"", b"", b"a=%73k"),
        ("/", b"", b"", f'{{"metadata": {{"{PRIVATE.replace("_", "%5F")}": 1}}}}'.encode()),
        ("/", b"", b"", f'{{"note": "{PRIVATE.replace("_", "%255F")}"}}'.encode()),
        ("/", b"", b"", b'[{"pass%77ord": "x"}]'),
        ("/", b"", b"", b'{"name": "%65%79%4A%68"}'),
        ("/", b"", b"", b"x" * (LARGEST_SEARCHED + 1)),
        ("/", b"", b"", b'{"a": "' + b"%25" * 4_001 + b'"}'),
    ],
)
def test_every_part_of_a_request_is_searched(request_: tuple[str, bytes, bytes, bytes]) -> None:
    secrets, (path, query, headers, body) = Secrets(contract()), request_
    assert secrets.may_be_in(headers.decode("latin-1")) or secrets.suspects(path, query, body)


def test_an_ordinary_request_is_not_looked_through() -> None:
    headers = b"host\nauthorization\naccept\nlocalhost:4600\n[redacted]\n*/*"
    body = b'{"name": "Ana", "metadata": {"crm_id": "100%", "a": "S\xc3\xa3o", "url": "/?q=a%20b%C3%A3"}}'
    secrets = Secrets(contract(), admin_key=b"hunter22")
    assert not secrets.may_be_in(headers.decode("latin-1"))
    assert not secrets.suspects("/v2/customers/x_y", b"limit=1", body)


def test_the_admin_key_is_left_out_everywhere() -> None:
    secrets = Secrets(contract(), admin_key=b"hunter2")
    assert secrets.suspects("/hunter2", b"", b"")
    assert secrets.suspects("/", b"a=hunter2", b"")
    assert secrets.may_be_in("x\nhunter2")
    assert secrets.suspects("/", b"", b"[hunter2]")
    assert secrets.suspects("/", b"", b'{"%68unter2": 1}')
    assert f"/a/{REDACTED}?b={REDACTED}".encode() == secrets.line(b"/a/hunter2?b=hunter2")
    assert REDACTED == secrets.query("b=%68unter2")
    assert [f'{{"a":"{REDACTED}"}}'.encode()] == secrets.without(b'{"a": "hunter2"}')


@pytest.mark.parametrize(
    "body",
    [
        b'"' + b"a" * LARGEST + b'"',
        b"[" + b"{}," * MOST_VALUES + b"{}]",
        b'{"a":' * (DEEPEST + 1) + b"1" + b"}" * (DEEPEST + 1),
        b"[" * 900 + b"]" * 900,
    ],
)
def test_what_is_too_much_to_look_through_is_left_out_with_what_belongs_to_it(body: bytes) -> None:
    assert WHOLE * 2 == Secrets(contract()).without(body, b"{}")


def test_secrets_that_begin_alike_are_taken_out_as_far_as_they_are_equal() -> None:
    value = "a" * 40
    assert f'"{REDACTED}{REDACTED}b"'.encode() == without_raw({"api_pass": value}, "a" * 60 + "b")


def without_raw(request: Any, answer: Any) -> bytes | None:
    """An answer without the secrets of its request, as bytes."""
    return Secrets(contract()).without(orjson.dumps(request), orjson.dumps(answer))[1]
