"""The verb `faults`: lists, makes and deletes the rules by which requests and deliveries fail on demand."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from .options import answer_of, json_text, of_a_server, printable, tell

_SETTINGS = {"auto_envvar_prefix": "STUB", "show_default": True}
Rule = dict[str, Any]


@click.group(context_settings=_SETTINGS)
def faults() -> None:
    """List, add and delete fault rules of a sandbox.

    Exit code 1 when the sandbox refuses, 2 when it cannot be asked.
    """


@faults.command("list", context_settings=_SETTINGS)
@of_a_server
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def list_rules(server: str, sandbox: str, admin_key: str | None, as_json: bool) -> None:
    """List the rules, newest first."""

    found = answer_of(server, sandbox, admin_key, lambda running: running.every("/faults", "faults"))
    tell(found, "\n".join(map(line, found["faults"])) or "There is no fault rule.", as_json=as_json)


@faults.command("add", context_settings=_SETTINGS)
@click.argument("rule")
@of_a_server
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def add_rule(rule: str, server: str, sandbox: str, admin_key: str | None, as_json: bool) -> None:
    """Add a rule from RULE: the name of a preset, a rule as JSON, or - for JSON from standard input."""
    body = _read(sys.stdin.read() if rule == "-" else rule)

    made = answer_of(
        server, sandbox, admin_key, lambda running: running.control("POST", "/faults", json=body), may_be_new=True
    )
    tell(made, line(made["fault"]), as_json=as_json)


@faults.command("delete", context_settings=_SETTINGS)
@click.argument("ident", metavar="ID", required=False)
@click.option("--all", "everything", is_flag=True, help="Delete every rule.")
@of_a_server
@click.option("--json", "as_json", is_flag=True, help="Print what was deleted as JSON.")
def delete_rule(
    ident: str | None, everything: bool, server: str, sandbox: str, admin_key: str | None, as_json: bool
) -> None:
    """Delete the rule with ID, or every rule."""
    from urllib.parse import quote

    if (ident is None) != everything:
        raise click.UsageError("Name one rule, or give --all.")
    path = "/faults" if ident is None else f"/faults/{quote(ident, safe='')}"
    answer_of(server, sandbox, admin_key, lambda running: running.control("DELETE", path))
    tell({"deleted": ident or "all"}, f"Deleted {ident or 'every rule'}.", as_json=as_json)


def line(rule: Rule) -> str:
    """One rule for people."""
    parts = [rule["id"], "on " if rule["enabled"] else "off", f"acted on {rule['hits']} of {rule['seen']}"]
    parts += [rule["name"] or rule["preset"]] if rule["name"] or rule["preset"] else []
    parts += [f"{name} {json_text(rule[name])}" for name in ("match", "when", "then") if rule[name]]
    return printable("  ".join(parts))


def _read(rule: str) -> Rule:
    """A preset's name or JSON as the body of a request. Raises UsageError for what is neither."""
    if rule.isidentifier():
        return {"preset": rule}
    try:
        body = json.loads(rule)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise click.UsageError(f"RULE is the name of a preset or a JSON object, and {rule[:60]!r} is neither.")
    return body
