"""Python: the client that openapi-python-client makes calls every operation and parses
every answer.
"""

import importlib
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import UUID

import pytest

from stub_server.server.resolver import snake

from ..support.contract import document
from ..support.estate import Estate, token
from ..support.live import Live
from ..support.requests import LAST, OPERATIONS, QUERIES, UNKNOWN, body_of

pytestmark = [pytest.mark.check, pytest.mark.turn]

NAME = "generated_client"
SPARE = ("deletePlan", "deleteProject")
"""What needs records that nobody bought from."""


def generate(url: str, target: Path, *options: str) -> None:
    """The client of a served contract, made as anybody would."""
    settings = target.parent / "settings.yaml"
    settings.write_text("post_hooks: []\n", encoding="utf-8")  # its formatter is for readers
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--url", url]
    command += ["--meta", "none", "--output-path", str(target), "--config", str(settings)]
    made = subprocess.run([*command, *options], capture_output=True, text=True, timeout=120)
    assert made.returncode == 0, made.stdout + made.stderr


@pytest.fixture(scope="module")
def package(live: Live, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The client, imported."""
    folder = tmp_path_factory.mktemp("python")
    generate(f"{live.url}/openapi.json", folder / NAME, "--fail-on-warning")
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module(NAME)
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.partition(".")[0] == NAME]:
            del sys.modules[name]


class Caller:
    """Calls an operation through its generated module, with the arguments that a person
    would write.
    """

    def __init__(self, package: ModuleType, estate: Estate) -> None:
        bearer = token(estate.live, estate.sandbox, estate.merchant_id)
        base = f"{estate.live.url}/s/{estate.sandbox}"
        self._client = package.AuthenticatedClient(
            base_url=base, token=bearer, raise_on_unexpected_status=True
        )

    def __enter__(self) -> "Caller":
        self._client.__enter__()
        return self

    def __exit__(self, *told: object) -> None:
        self._client.__exit__(*told)

    def call(self, name: str, ids: dict[str, str]) -> Any:
        """The detailed answer of an operation that is aimed at these ids."""
        operation = OPERATIONS[name]
        module = importlib.import_module(
            f"{NAME}.api.{operation.tag.lower().replace(' ', '_')}.{snake(name)}"
        )
        parameters = inspect.signature(module.sync_detailed).parameters
        arguments: dict[str, Any] = {"client": self._client}
        for place in re.findall(r"\{(\w+)\}", operation.path):
            arguments[snake(place)] = ids[place] if place == "publicKey" else UUID(ids[place])
        for member, value in (QUERIES[name](ids) if name in QUERIES else {}).items():
            arguments[snake(member)] = UUID(value)
        body = body_of(operation, ids)
        if body is not None:
            model = getattr(
                importlib.import_module(f"{NAME}.models"),
                self._model(parameters["body"].annotation),
            )
            arguments["body"] = model.from_dict(body)
            assert normal(body).items() <= normal(arguments["body"].to_dict()).items(), (
                "the model loses what it is given"
            )
        return module.sync_detailed(**arguments)

    @staticmethod
    def _model(annotation: Any) -> str:
        return str(getattr(annotation, "__name__", annotation)).partition(" ")[0]


def normal(value: Any) -> Any:
    """JSON with every instant in one spelling: a client writes the offset of UTC as it likes."""
    if isinstance(value, dict):
        return {name: normal(each) for name, each in value.items()}
    if isinstance(value, list):
        return [normal(each) for each in value]
    if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\dT", value):
        return datetime.fromisoformat(value)
    return value


def holds(answer: Any, name: str) -> None:
    """A success of the type that the contract names, which holds all that was answered
    and nothing else.
    """
    (expected,) = [status for status in OPERATIONS[name].responses if status < 300]
    assert expected == answer.status_code, answer.content
    schema = (
        OPERATIONS[name].responses[expected].media["application/json"]["$ref"].rpartition("/")[2]
    )
    assert schema == type(answer.parsed).__name__
    assert normal(json.loads(answer.content)) == normal(answer.parsed.to_dict())


def test_every_operation_is_called_and_its_answer_parsed_whole(
    package: ModuleType, shop: Estate
) -> None:
    ordinary = [
        name for name, each in OPERATIONS.items() if name not in LAST and each.method != "DELETE"
    ]
    called = [*ordinary, *LAST]
    with Caller(package, shop) as caller:
        for name in called:
            holds(caller.call(name, shop.ids), name)
        spare = {"projectId": str(caller.call("createProject", shop.ids).parsed.data.project.id)}
        spare["planId"] = str(caller.call("createPlan", spare).parsed.plan.id)
        for name in SPARE:
            holds(caller.call(name, spare), name)
    assert set(document().operations) == {*called, *SPARE}
    assert 49 == len({*called, *SPARE})


def test_every_refusal_is_the_one_type(package: ModuleType, home: Estate) -> None:
    nothing = dict.fromkeys(home.ids, UNKNOWN) | {"publicKey": "pk_sandbox_" + "0" * 24}
    aimed = [
        name for name, each in OPERATIONS.items() if 404 in each.responses and "{" in each.path
    ]
    assert len(aimed) > 20
    with Caller(package, home) as caller:
        for name in aimed:
            answer = caller.call(name, nothing)
            assert ("Error", 404, 404) == (
                type(answer.parsed).__name__,
                answer.status_code,
                answer.parsed.status,
            )
            assert answer.parsed.request_id == answer.headers["X-Request-Id"]


def test_what_may_be_null_has_one_type(package: ModuleType) -> None:
    """A generator that meets null inside an enum makes three types of it."""
    models = importlib.import_module(f"{NAME}.models")
    split = [name for name in dir(models) if re.search(r"Type\d+Type\d+", name)]
    assert [] == split
    assert {"day", "week", "month", "year"} == {str(member) for member in models.PlanInterval}


def test_a_webhook_is_parsed_by_the_type_of_its_event(package: ModuleType) -> None:
    models = importlib.import_module(f"{NAME}.models")
    for name, event in document().events.items():
        model = getattr(models, event["schema"]["$ref"].rpartition("/")[2])
        parsed = model.from_dict(event["example"])
        assert name == parsed.type_
        assert normal(event["example"]) == normal(parsed.to_dict())


def test_the_served_control_contract_makes_a_client_too(live: Live, tmp_path: Path) -> None:
    generate(f"{live.url}/_sandbox/openapi.json", tmp_path / "made")
    assert (tmp_path / "made" / "api" / "sandbox_clock" / "advance_clock.py").is_file()
