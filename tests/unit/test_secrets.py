"""Messages without their secrets, as the contract marks them."""

from typing import Any

import orjson

from stub_server.contract.document import Document
from stub_server.contract.secrets import REDACTED, Secrets, plain
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


def test_paths_and_queries_are_stripped() -> None:
    expected = f"/v2/{REDACTED}?private_key={REDACTED}&x=1&token={REDACTED}&token_type=y"
    assert expected.encode() == plain(f"/v2/{PRIVATE}?private_key=abc&x=1&token=q&token_type=y".encode())
