"""The verb `faults`: lists, adds and deletes the rules by which requests and deliveries fail on demand."""

from urllib.parse import quote

import click

from .options import SETTINGS, asks_sandbox, json_argument, yaml_text
from .running_server import Target


@click.group(context_settings=SETTINGS)
def faults() -> None:
    """List, add and delete fault rules of a sandbox.

    Exit code 1 if the sandbox refuses, 2 if no sandbox answers.
    """


@faults.command("list", context_settings=SETTINGS)
@asks_sandbox
def list_rules(target: Target) -> None:
    """List the rules, newest first."""
    found = target.every("faults")
    target.show(found, yaml_text(found["faults"]) if found["faults"] else "There is no fault rule.")


@faults.command("add", context_settings=SETTINGS, short_help="Add a fault rule.")
@click.argument("rule")
@asks_sandbox
def add_rule(target: Target, rule: str) -> None:
    """Add a rule from RULE: the name of a preset, a rule as JSON, @FILE for JSON in a file, or - for standard input."""
    target.may_be_new = True
    wrong = "RULE is neither the name of a preset nor a JSON object"
    body = {"preset": rule} if rule.isidentifier() else json_argument(rule, wrong)
    made = target.control("POST", "/faults", json=body)
    target.show(made, yaml_text(made["fault"]))


@faults.command("delete", context_settings=SETTINGS, short_help="Delete one rule, or all.")
@click.argument("ident", metavar="ID", required=False)
@click.option("--all", "everything", is_flag=True, help="Delete every rule.")
@asks_sandbox
def delete_rule(target: Target, ident: str | None, everything: bool) -> None:
    """Delete the rule with ID, or every rule."""
    if (ident is None) != everything:
        raise click.UsageError("Name one rule, or give --all.")
    target.control("DELETE", "/faults" if ident is None else f"/faults/{quote(ident, safe='')}")
    target.show({"deleted": ident or "all"}, f"Deleted {ident or 'every rule'}.")
