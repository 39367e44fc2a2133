"""Which requests find an operation, and what the others are told."""

import pytest

from ..support.contract import document
from ..support.refusal import refused
from ..support.wire import Door

ID = "0b1f6c1e-6a0e-4f0b-9a53-6a3f3c1c9b55"


def served(methods: list[str]) -> str:
    """The Allow header of a path with these operations."""
    return ", ".join(sorted({*methods, "OPTIONS", *(["HEAD"] if "GET" in methods else [])}))


def concrete(path: str) -> str:
    """A path of the contract with ids in the place of its templates."""
    return "/".join(
        (
            segment
            if not segment.startswith("{")
            else "pk_sandbox_0000000000"
            if segment == "{publicKey}"
            else ID
        )
        for segment in path.split("/")
    )


PATHS = {
    path: sorted(
        method.upper() for method in item if method in ("get", "put", "post", "delete", "patch")
    )
    for path, item in document().raw["paths"].items()
}


@pytest.mark.parametrize("path", PATHS)
def test_a_405_names_every_method_of_its_path(door: Door, path: str) -> None:
    """Also the ones that another operation of the same path answers."""
    methods = PATHS[path]
    wrong = next(m for m in ("DELETE", "PATCH", "PUT", "POST", "GET") if m not in methods)
    answer = door.ask(wrong, concrete(path), b"{}")
    refused(answer, 405, "method_not_allowed")
    assert answer.header("allow") == served(methods)


@pytest.mark.parametrize("path", PATHS)
def test_options_is_204_with_the_same_allow(door: Door, path: str) -> None:
    answer = door.ask("OPTIONS", concrete(path), token=None)
    assert (204, b"") == (answer.status, answer.body)
    assert answer.header("allow") == served(PATHS[path])
    assert answer.header("x-request-id")


@pytest.mark.parametrize(
    "path", ["/v2/customers?limit=1", "/api-keys/info", "/v2/customers/{customer}", "/openapi.json"]
)
def test_head_has_the_headers_of_get_and_no_body(door: Door, customer_id: str, path: str) -> None:
    path = path.replace("{customer}", customer_id)
    get = door.ask("GET", path)
    head = door.ask("HEAD", path)
    assert (200, 200, b"") == (get.status, head.status, head.body)
    differ = ("x-request-id", "date")
    assert [h for h in get.headers if h[0] not in differ] == [
        h for h in head.headers if h[0] not in differ
    ]


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
@pytest.mark.parametrize(
    "path",
    ["/v2/customers/", f"/v2/customers/{ID}/", "/api-keys/", "/v2/orders/pix/", "//v2/customers"],
)
def test_a_slash_too_many_is_another_path_and_never_a_redirect(
    door: Door, method: str, path: str
) -> None:
    refused(door.ask(method, path, b"{}"), 404, "route_not_found")


@pytest.mark.parametrize(
    "path",
    [
        "/v2", "/v3/customers", "/v2/api-keys", "/V2/customers", "/v2/Customers", "/v2/customers;x=1",
        "/v2/customers/../orders", "/v2/./customers", "/v2/../../etc/passwd",
        "/v2/%2e%2e/orders", "/v2/customers%00", "/v2/customers%20", "/v2/customers%", "/v2/customers%zz",
        "/v2/customers%C3%28", "/v2/clientes/%E2%82%AC", "/v2//customers", "/openapi.json/", "/openapi.xml", "/%2e",
        f"/v2/customers/{ID}/orders", f"/v2/projects/{ID}/stats/x", "/v2/webhooks/logs/x/retry/y",
    ],
)  # fmt: skip
def test_an_unknown_path_is_404_in_the_one_shape(door: Door, path: str) -> None:
    refused(door.ask("GET", path), 404, "route_not_found")
