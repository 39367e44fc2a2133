"""What schemathesis must know to reach more than refusals: formats, ids that exist, fresh values, a fresh world.

A schemathesis extension, named as `hooks` in `schemathesis.toml`. `SANDBOX_URL` is where the server is, and
`SANDBOX_TOKEN` a credential that may do everything.
Everything is derived from the value that schemathesis made, so that one seed stays one sequence of requests.
"""

import os
from typing import Any

import httpx2
import schemathesis
from schemathesis.openapi.checks import EnsureResourceAvailability

from tests.contract import formats, fresh
from tests.contract.known import Known

schemathesis.openapi.format("document", formats.documents())
schemathesis.openapi.format("ip-network", formats.networks())

known = Known()


@schemathesis.hook
def map_path_parameters(context: Any, path_parameters: Any) -> Any:
    """Random ids find nothing: let most of them be ids of records that exist."""
    return known.aim_path(_operation(context), path_parameters)


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    """The same for what a body refers to."""
    return known.aim_body(body)


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """What the other hooks do not see: the coverage phase, headers, and whole requests.

    Only in what is meant to be accepted: what is meant to be refused would be judged anew, and perhaps as valid.
    """
    if case.meta is None or case.meta.generation.mode.value != "positive":
        return
    operation, phase = _operation(case), case.meta.phase.name.value
    path, body = case.path_parameters, case.body
    if phase == "coverage":
        # Of some operations this phase sends a request or two: were they spared, nothing would get through.
        path = known.aim_path(operation, path, salt=repr(body), every=True)
        body = fresh.unique(operation, known.aim_body(body))
    if phase != "stateful":
        path = known.spare(operation, path, body)
    body = fresh.harmless(operation, body)
    if path != case.path_parameters:
        case.path_parameters = path
    if body is not case.body:
        case.body = body
    fresh.rekey(case.headers, body)


def _operation(context: Any) -> str:
    name: str = context.operation.definition.raw.get("operationId", "")
    return name


@schemathesis.hook
def filter_failure(context: Any, failure: Any, case: Any, response: Any) -> bool:
    """The 404 of a reference in the body is not the 404 of the target: what was created is there, and was found."""
    if not isinstance(failure, EnsureResourceAvailability):
        return True
    code: str = response.json()["code"]
    return code != "reference_not_found"


@schemathesis.hook
def after_load_schema(context: Any, schema: Any) -> None:
    """Learn what exists, and begin every scenario of the stateful phase in a fresh world.

    Hypothesis repeats the beginnings of scenarios and stops where the same request is answered differently, which a
    world that remembers does. A backend without control surface is asked for what exists, and never reset.
    """
    base = os.environ["SANDBOX_URL"].rstrip("/")
    known.learn(base, os.environ["SANDBOX_TOKEN"])
    sandboxed = httpx2.get(f"{base}/_sandbox/health", timeout=10).is_success
    build = schema.build_state_machine

    def build_with_reset(**options: Any) -> Any:
        machine = build(**options)

        # The base class is made at run time from the contract, where mypy cannot see it.
        class Fresh(machine):  # type: ignore[misc, valid-type]
            def __init__(self) -> None:
                if sandboxed:
                    httpx2.post(f"{base}/_sandbox/reset", timeout=30).raise_for_status()
                super().__init__()

        return Fresh

    schema.build_state_machine = build_with_reset
