"""An overlay corrects the contract at start, and the server routes, validates and
publishes by the result.
"""

from dataclasses import replace
from pathlib import Path
from time import monotonic

import pytest

from stub_server.app import create_app
from stub_server.contract.source import ContractError
from stub_server.settings import Settings

from ..conftest import Serve
from ..support.make import customer_body
from ..support.refusal import fields, refused
from ..support.wire import Door
from .conftest import door_to

pytestmark = pytest.mark.check

RENAMED = """\
overlay: 1.0.0
info: { title: The real path of customers, version: "1" }
actions:
  - target: $.paths
    update: { /v2/clients: {}, "/v2/clients/{clientId}": {} }
  - target: $.paths['/v2/clients']
    copy: $.paths['/v2/customers']
  - target: $.paths['/v2/customers']
    remove: true
"""
FIELD = """\
overlay: 1.0.0
info: { title: Customers have a nickname, version: "1" }
actions:
  - target: $.components.schemas['CustomerCreate','CustomerUpdate','Customer'].properties
    update: { nickname: { type: string, maxLength: 5 } }
"""
INTERNAL = (
    FIELD.replace("nickname", "made_by")
    + """\
  - target: $.components.schemas['ApiKeyCreate','ApiKeyWithSecret','ApiKey'].properties
    update: { digest: { type: string } }
"""
)
ENUM = """\
overlay: 1.0.0
info: { title: Only people buy, version: "1" }
actions:
  - target: $.components.schemas.CustomerCreate.properties.type.enum
    remove: true
  - target: $.components.schemas.CustomerCreate.properties.type
    update: { enum: [individual] }
"""
OPERATION = """\
overlay: 1.0.0
info: { title: An operation of one's own, version: "1" }
actions:
  - target: $.paths
    update:
      /v2/coupons:
        get:
          operationId: listCoupons
          tags: [Coupons]
          security: [{ bearer: [] }]
          x-scopes: ["orders:read"]
          responses: { "200": { description: Coupons. } }
"""


@pytest.fixture
def overlaid(
    serve: Serve, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Door:
    """A server with the overlays of the test's parameter."""
    folder = tmp_path_factory.mktemp("overlays")
    files = []
    for number, text in enumerate(request.param):
        files.append(folder / f"{number}.yaml")
        files[-1].write_text(text, encoding="utf-8")
    return door_to(serve(overlays=tuple(files), scenario="empty"))


@pytest.mark.parametrize(
    "overlaid",
    [[RENAMED.replace(', "/v2/clients/{clientId}": {}', "")]],
    indirect=True,
    ids=["renamed"],
)
def test_a_renamed_path_is_the_path(overlaid: Door) -> None:
    assert overlaid.ask("GET", "/v2/clients?limit=1").status == 200
    made = overlaid.send("POST", "/v2/clients", customer_body())
    assert made.status == 201
    refused(overlaid.ask("GET", "/v2/customers"), 404, "route_not_found")
    refused(overlaid.send("POST", "/v2/clients", {"name": 1}), 422, "validation_error")
    answer = overlaid.ask("DELETE", "/v2/clients")
    refused(answer, 405, "method_not_allowed")
    assert answer.header("allow") == "GET, HEAD, OPTIONS, POST"


@pytest.mark.parametrize("overlaid", [[FIELD]], indirect=True, ids=["field"])
def test_an_added_field_is_taken_and_validated(overlaid: Door) -> None:
    assert overlaid.send("POST", "/v2/customers", customer_body()).status == 201
    made = overlaid.send("POST", "/v2/customers", customer_body(nickname="Mari"))
    assert made.status == 201, made.body
    long = overlaid.send("POST", "/v2/customers", customer_body(nickname="Marininha"))
    assert fields(refused(long, 422, "validation_error")) == {"nickname": "max"}
    ident = made.json()["customer"]["id"]
    assert overlaid.send("PUT", f"/v2/customers/{ident}", {"nickname": "Nina"}).status == 200


@pytest.mark.parametrize("overlaid", [[INTERNAL]], indirect=True, ids=["internal"])
def test_an_added_field_may_have_the_name_of_an_internal_one(overlaid: Door) -> None:
    """Callers see what they sent, and rules read their own: a key is found by its digest, and sees
    the customers that keys of its projects made.
    """
    project = {"name": "Clube", "status": "active"}
    ident = overlaid.send("POST", "/v2/projects", project).json()["data"]["project"]["id"]
    scopes = ["customers:read", "customers:write"]
    body = {"name": "Chave", "scopes": scopes, "allowed_projects": [ident], "digest": "abc"}
    key = overlaid.send("POST", "/api-keys", body).json()["api_key"]
    partner = replace(overlaid, token=key["private_key"])
    partner.send("POST", "/v2/customers", customer_body(made_by="Mari"))
    (customer,) = partner.ask("GET", "/v2/customers").json()["customers"]
    assert ("abc", "Mari") == (key["digest"], customer["made_by"])


@pytest.mark.parametrize(
    "overlaid",
    [
        [OPERATION],
        [
            OPERATION.replace("listCoupons", "getCredentials").replace(
                "Coupons]", "control.sandbox]"
            )
        ],
        [OPERATION.replace("listCoupons", "list_customers").replace("Coupons]", "Customers]")],
    ],
    indirect=True,
)
def test_an_operation_without_behaviour_is_501(overlaid: Door) -> None:
    """Whatever its id and tag are, an added operation has no handler."""
    answer = overlaid.ask("GET", "/v2/coupons")
    assert (501, "not_implemented") == (answer.status, answer.json()["code"])
    assert answer.json()["request_id"] == answer.header("x-request-id")
    refused(overlaid.ask("GET", "/v2/coupons", token=None), 401, "missing_credentials")


@pytest.mark.parametrize("overlaid", [[FIELD, ENUM]], indirect=True, ids=["two"])
def test_overlays_are_applied_in_order_and_published(overlaid: Door) -> None:
    published = overlaid.ask("GET", "/openapi.json").json()["components"]["schemas"][
        "CustomerCreate"
    ]["properties"]
    assert published["nickname"] == {"type": "string", "maxLength": 5}
    assert published["type"]["enum"] == ["individual"]


HEAD = 'overlay: 1.0.0\ninfo: { title: x, version: "1" }\nactions:\n'


def on(method: str, update: str) -> str:
    """An overlay that updates an operation of /v2/customers."""
    return HEAD + f"  - target: $.paths['/v2/customers'].{method}\n    update: {{ {update} }}\n"


BROKEN = {
    "no file": (None, r"overlay\.yaml: no such file"),
    "no YAML": ("overlay: [", r"overlay\.yaml:2: "),
    "no overlay": ("openapi: 3.0.3\n", r"overlay\.yaml:1: \$: 'overlay' is a required property: an OpenAPI Overlay has"),
    "another version": ("overlay: 2.0.0\nactions: [{}]\n", r"overlay\.yaml:1: .*versions 1\.0 and 1\.1 are known"),
    "no actions": ("overlay: 1.0.0\n", r"overlay\.yaml:1: .*'actions' is a required property"),
    "no deed": (HEAD + "  - target: $.info\n", r"overlay\.yaml:4: .*an action needs a target .* has update, copy or remove"),
    "a misspelt deed": (HEAD + "  - { target: $.info, updates: {} }\n", r"overlay\.yaml:4: .*'updates'"),
    "no JSONPath": (HEAD + "  - { target: $.paths[, remove: true }\n".replace("$.paths[", '"$.paths["'),
    r"overlay\.yaml:4: .*is not a JSONPath"),
    "a place that has moved": (
        HEAD + "  - target: $.components.parameters.IdlePlanId.schema\n    remove: true\n",
        r"IdlePlanId\.schema selects nothing in the contract: it is \$\.components\.parameters\.PlanId\.schema now",
    ),
    "selects nothing": (
        HEAD + "  - { target: $.info, update: {} }\n  - { target: '$.paths[\"/v2/clients\"]', remove: true }\n",
        r"overlay\.yaml:5: \$\.paths\[.*\] selects nothing",
    ),
    "something beside a reference": (
        HEAD + "  - { target: $.components.schemas.PlanCreate.properties.interval_count, update: { maximum: 12 } }\n",
        r"overlay\.yaml:4: .* selects a reference, .*: select its target, #/components/schemas/PlanCreateIntervalCount",
    ),
    "an object by a text": (HEAD + "  - { target: $.info, update: x }\n",
    r"overlay\.yaml:4: an object can only be updated with an object"),
    "removes everything": (HEAD + "  - { target: $, remove: true }\n",
    r"overlay\.yaml:4: the whole contract cannot be removed"),
    "breaks a reference": (HEAD + "  - { target: $.components.schemas.Phone, remove: true }\n",
    r"\$\.components\.schemas\.Phones\S*: #/components/schemas/Phone leads nowhere"),
    "an id twice": (on("get", "operationId: getCustomer"), r"operationId|getCustomer"),
    "a status that is none": (on("get", "responses: { ok: { description: x } }"),
    r"\$\.paths\['/v2/customers'\]\.get\.responses: 'ok'"),
    "a scope that is none": (on("get", "x-scopes: [clients:read]"), r"\.get\['x-scopes'\]: clients:read is no scope"),
    "a range of statuses": (on("get", "responses: { 2XX: { description: x } }"),
    r"\.get\.responses: 2XX: name every status"),
    "no responses": (
        HEAD + "  - target: $.paths[\"/v2/customers\"].get.responses\n    remove: true\n",
        r"\$\.paths\['/v2/customers'\]\.get: 'responses' is a required property",
    ),
    "no name of an operation": (
        HEAD + "  - target: $.paths[\"/v2/customers\"].get.operationId\n    remove: true\n",
        r"\$\.paths\['/v2/customers'\]\.get: an operation needs an operationId",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.matrix
def test_a_broken_overlay_stops_the_start_with_place_and_reason(tmp_path: Path, what: str) -> None:
    text, message = BROKEN[what]
    file = tmp_path / "overlay.yaml"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(ContractError, match=message) as caught:
        create_app(Settings(overlays=(file,)))
    assert str(caught.value).startswith(str(file))


PATTERN = """\
overlay: 1.0.0
info: { title: Other ids of orders, version: "1" }
actions:
  - target: $.components.parameters.OrderId.schema.format
    remove: true
  - target: $.components.parameters.OrderId.schema
    update: { pattern: "^([0-9a-f-]|[0-9a-f]{2})+$" }
"""


@pytest.mark.promise("no-regular-expression-reads-stranger")
@pytest.mark.parametrize("overlaid", [[PATTERN]], indirect=True, ids=["pattern"])
def test_a_pattern_of_ids_is_not_tried_again_and_again(overlaid: Door) -> None:
    """Each letter more had everybody wait 1.6 times as long, these for seconds."""
    began = monotonic()
    refused(overlaid.ask("GET", f"/v2/orders/{'a' * 36}!"), 404, "not_found")
    assert monotonic() - began < 1


BACK = """\
overlay: 1.0.0
info: { title: Values are words, version: "1" }
actions:
  - target: $.components.schemas.StringMap.additionalProperties
    update: { pattern: '^(?:(?!  )[\\w@.+,-]+\\s?)*$' }
"""


@pytest.mark.parametrize("overlaid", [[BACK]], indirect=True, ids=["steps back"])
def test_a_text_of_which_a_pattern_takes_too_many_steps_does_not_fit(overlaid: Door) -> None:
    sent = customer_body(metadata={"a": "a" * 24 + "!"})
    answer = overlaid.send("POST", "/v2/customers", sent)
    assert fields(refused(answer, 422, "validation_error")) == {"metadata.a": "format"}
