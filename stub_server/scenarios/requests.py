"""Checks a scenario's records against the contract's request schemas, so that requests could create them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..contract.schema import Schemas
from ..kernel.ids import named_uuid
from ..kernel.record import Body
from .files import Node
from .scenario import Scenario


def expand(value: Any) -> Any:
    """The value with every `{repeat: text, length: n}` written out to exactly n characters."""
    if isinstance(value, dict):
        if value.keys() == {"repeat", "length"} and isinstance(value["repeat"], str) and value["repeat"]:
            text, length = value["repeat"], int(value["length"])
            return (text * (length // len(text) + 1))[:length]
        return {name: expand(member) for name, member in value.items()}
    return [expand(item) for item in value] if isinstance(value, list) else value


class RequestSchemas:
    """The contract's request schemas, compiled when first used."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._compiled: dict[str, Any] = {}

    def check(self, name: str, body: Body, fail: Callable[[str], Exception]) -> None:
        """Raises `fail(reason)` for the first violation."""
        compiled = self._compiled.get(name)
        if compiled is None:
            compiled = self._compiled[name] = self._schemas.component(name, request=True)
        for found in compiled.iter_errors(body):
            error = _nearest(found)
            where = ".".join(str(step) for step in error.instance_path)
            raise fail(f"{where + ': ' if where else ''}{error.message[:300]} (by {name} of the contract)")


def _nearest(error: Any) -> Any:
    """Of a choice that nothing fits, the violation that is nearest to a member; any other as it is."""
    choices = [each for branch in getattr(error.kind, "context", ()) for each in branch]
    return max(choices, key=lambda each: len(each.instance_path)) if choices else error


def check_specs(scenario: Scenario, requests: RequestSchemas) -> None:
    """Check plans, keys and webhooks of a scenario. Raises ScenarioError."""
    specs = scenario.projects if isinstance(scenario.projects, tuple) else ()
    slugs = {spec.slug for spec in specs}
    for spec in specs:
        ident = named_uuid("project", spec.slug)
        for number, (fields, _) in enumerate(spec.plans):
            place = Node(fields, spec.node.file, f"{spec.node.key}.plans[{number}]")
            requests.check("PlanCreate", {"projectId": ident} | fields, place.fail)
    for key in scenario.keys:
        asked = key.fields.get("allowed_projects", [])
        for slug in asked if isinstance(asked, list) else [asked]:
            if slug not in slugs:
                raise key.node["allowed_projects"].fail(f"there is no project {slug!r}")
        said = {
            name: value for name, value in key.fields.items() if name not in ("allowed_projects", "expires_in_days")
        }
        requests.check("ApiKeyCreate", said, key.node.fail)
    for hook in scenario.webhooks:
        if hook.project is not None and hook.project not in slugs:
            raise hook.node["project"].fail(f"there is no project {hook.project!r}")
        requests.check("WebhookCreate", hook.fields, hook.node.fail)
