"""What `make contract` adds to the hooks that users are given: ids that exist.

A schemathesis extension. Everything is derived from the value that schemathesis made, so that one
seed stays one sequence of requests.
"""

import atexit
import gc
from typing import Any

import schemathesis
from hypothesis import strategies as st

from stub_server.storage.package import MEDIA
from tests.contract import pack
from tests.contract.coherent import coherent
from tests.contract.controls import FORK, Controls
from tests.contract.harmless import harmless
from tests.contract.known import Known

import sandbox_hooks  # isort: skip - found where the pack is

assert pack.PACK.is_dir()
# as in the runs of the tests (tests/conftest.py): else the collector takes 7 % of the time
gc.freeze()
gc.set_threshold(5_000, 50, 10)
known = Known(is_real=lambda value: value in sandbox_hooks.Fork.seen)
controls = Controls(sandbox_hooks.URL)
# What an import is given to be accepted is a file that the same server has exported.
schemathesis.openapi.media_type(MEDIA, st.builds(controls.file))


@schemathesis.hook
def after_load_schema(context: Any, schema: Any) -> None:
    """Learn what exists in the fork that was just made; each fork of that name has the same."""
    known.learn(sandbox_hooks.URL, sandbox_hooks.Fork.token)
    atexit.register(controls.drop)


@schemathesis.hook
def map_path_parameters(context: Any, path_parameters: Any) -> Any:
    """Random ids find nothing: let most of them be ids of records that exist."""
    return known.aim_path(path_parameters)


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    """The same for what a body refers to; and what it says of a customer agrees."""
    return coherent(known.aim_body(body))


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """What the other hooks do not see: the coverage phase, addresses of receivers, and what
    controls act on.

    Only in what is meant to be accepted: what is meant to be refused would be judged anew, and
    perhaps as valid.
    """
    if case.meta is None:
        return
    name = name_of(case)
    phase = case.meta.phase.name.value
    is_first = controls.begin(sandbox_hooks.Fork.forks)
    controls.prepare(name)
    if name == "deleteSandbox" and case.path_parameters.get("sandboxName") == FORK:
        case.path_parameters = controls.aim_path(name, case.path_parameters, every=True)
    query = controls.hasten(case.query)
    if query != case.query:
        case.query = query
    if case.meta.generation.mode.value != "positive":
        return
    path = case.path_parameters
    body = case.body
    if phase == "coverage":
        # Of some operations this phase sends a request or two: were ids spared for the 404, nothing
        # would get through.
        path = known.aim_path(path, salt=repr(body) if isinstance(body, dict) else "", every=True)
        body = known.aim_body(body)
    # A link that gives a document puts it beside a type that was made up.
    body = coherent(body)
    body = controls.aim_body(name, body, every=phase == "coverage")
    if phase == "stateful":
        query = known.aim_query(name, query)
        path = controls.begin_path(name, path) if is_first else path
    else:
        path = controls.aim_path(name, path, every=phase == "coverage")
        controls.empty_for(name, body)
    body = harmless(name, body)
    if path != case.path_parameters:
        case.path_parameters = path
    if query != case.query:
        case.query = query
    if body is not case.body:
        case.body = body


@schemathesis.hook
def after_call(context: Any, case: Any, response: Any) -> None:
    """Worlds that the run makes do not pile up."""
    controls.made(name_of(case), response)


def name_of(case: Any) -> str:
    """The operationId of a case."""
    return str(case.operation.definition.raw.get("operationId", ""))
