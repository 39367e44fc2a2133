"""Names in free maps (metadata, settings, an order customer's phones): 1 to 64
characters, no NUL.
"""

from typing import Any

import pytest

from ..support.refusal import fields, refused
from ..support.wire import Door

CODE = "metadata_key_invalid"
GOOD = ["a", "x" * 64, "🚀" * 64, "com espaço", ".", "a/b~c", "__proto__", "\u0001"]
BAD = ["", "x" * 65, "🚀" * 65, "\0", "a\0b", "x" * 500_000]


@pytest.mark.parametrize("name", GOOD)
def test_a_name_of_1_to_64_characters_is_kept(door: Door, customer_id: str, name: str) -> None:
    answer = door.send("PUT", f"/v2/customers/{customer_id}", {"metadata": {name: "1"}})
    assert (200, {name: "1"}) == (answer.status, answer.json()["customer"]["metadata"])


@pytest.mark.parametrize("name", BAD, ids=len)
def test_any_other_name_is_refused_and_nothing_changes(
    door: Door, customer_id: str, name: str
) -> None:
    """By a schema it cannot be, so it is a conflict."""
    path = f"/v2/customers/{customer_id}"
    before = door.ask("GET", path).json()
    body = refused(
        door.send("PUT", path, {"name": "Outro", "metadata": {"a": "1", name: "1"}}), 409, CODE
    )
    assert fields(body) == {"metadata": CODE}
    assert "1 to 64 characters" in body["message"]
    assert before == door.ask("GET", path).json()


@pytest.mark.parametrize(
    ("path", "sent", "expected"),
    [
        ("/v2/projects", {"name": "Clube", "business_settings": {"": "1"}}, ["business_settings"]),
        (
            "/v2/projects",
            {"name": "Clube", "metadata": {"\0": "1"}, "content_settings": {"": "1"}},
            ["content_settings", "metadata"],
        ),
        ("/v2/projects", {"name": "Clube", "metadata": {"ok": "1"}}, []),
    ],
)
def test_every_free_map_is_held_to_it(
    door: Door, path: str, sent: dict[str, Any], expected: list[str]
) -> None:
    """Settings of a project are such maps too; all that are wrong are told at once."""
    answer = door.send("POST", path, sent)
    if expected:
        assert expected == sorted(fields(refused(answer, 409, CODE)))
    else:
        assert answer.status == 201
        door.ask("DELETE", f"/v2/projects/{answer.json()['data']['project']['id']}")
