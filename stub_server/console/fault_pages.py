"""Fault rules: which there are and what they did, ready ones by a click, and a form made of the contract's schemas."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson
from flask import Response, g, render_template, request

from ..core.clock import iso, parse_iso
from ..server.request import CONTROL
from .actions import act, change, show_done
from .client import Refused
from .filters import plain, read_json, words, written_json
from .forms import Field
from .shell import load_head
from .site import contracts, pages

_HERE = "/console/faults"
_LISTED = 100  # rules, the most that a sandbox has
_EXAMPLE = {
    "name": "checkout is flaky",
    "match": {"operationId": "createPixOrder", "body": {"$.customer.email": "*@example.com"}},
    "when": {"probability": 0.2},
    "then": {"status": 503, "headers": {"Retry-After": "2"}},
}
_PARTS = {"match": "Which requests or deliveries", "when": "How often", "then": "What happens"}


class Rule(NamedTuple):
    """A rule in words; `left` says how long it goes on, `is_over` that it does not."""

    raw: dict[str, Any]
    match: list[str]
    when: list[str]
    then: list[str]
    left: list[str]
    is_over: bool


@pages.get("/faults")
def list_faults() -> str:
    """The rules."""
    return _page({})


@pages.post("/faults/preset")
def make_preset() -> Response:
    """Add a ready rule."""
    return act("POST", f"{CONTROL}/faults", {"preset": request.form.get("preset", "")}, to=_HERE)


@pages.post("/faults/make")
def make_fault() -> Response | tuple[str, int]:
    """Add a rule; a refusal shows the form again."""
    return _make(_asked(), request.form)


@pages.post("/faults/make-json")
def make_fault_of_json() -> Response | tuple[str, int]:
    """Add a rule that is written as JSON; a refusal shows the form again."""
    try:
        body = written_json(request.form.get("body", ""))
    except ValueError as error:
        return _page(request.form, f"This is not valid JSON: {error}."), 422
    return _make(body, request.form)


@pages.post("/faults/switch")
def switch_fault() -> Response:
    """Switch a rule on or off."""
    return act("PATCH", _path(), {"enabled": request.form.get("enabled") == "true"}, to=_HERE)


@pages.post("/faults/remove")
def remove_fault() -> Response:
    """Remove a rule, or all."""
    return act("DELETE", f"{CONTROL}/faults" if request.form.get("every") else _path(), to=_HERE)


def _path() -> str:
    return f"{CONTROL}/faults/{quote(request.form.get('fault', '-'), safe='')}"


def _make(body: Any, sent: Mapping[str, str]) -> Response | tuple[str, int]:
    reply = change("POST", f"{CONTROL}/faults", body)
    if reply.is_refused:
        return _page(sent, Refused(reply).message), Refused(reply).status
    return show_done(reply, _HERE)


def _page(sent: Mapping[str, str], problem: str | None = None) -> str:
    """`sent` are the values of a form that was refused."""
    load_head()
    found = g.client.get(f"{CONTROL}/faults", {"limit": _LISTED})["faults"]
    preset = contracts().control.raw["components"]["schemas"]["FaultPreset"]
    return render_template(
        "console/faults.html",
        rules=[_rule(each) for each in found],
        presets=preset["x-presets"],
        names=preset["enum"],
        parts_of={title: list(_inputs(name)) for name, title in _PARTS.items()},
        sent=sent,
        problem=problem,
        example=orjson.dumps(_EXAMPLE, option=orjson.OPT_INDENT_2).decode(),
    )


# -- the form


def _schemas(part: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The members of a part of a rule that a form can have."""
    control = contracts().control
    schema = control.raw["components"]["schemas"][f"Fault{part.title()}"]
    for name, member in schema["properties"].items():
        resolved = control.resolve(member)
        if resolved.get("type") in ("string", "integer", "number", "boolean"):
            yield name, resolved


def _inputs(part: str) -> Iterator[Field]:
    for name, schema in _schemas(part):
        kind = {"boolean": "check", "string": "text"}.get(schema["type"], "number")
        options = [str(option) for option in schema.get("enum", ())]
        yield Field(f"{part}.{name}", words(name), kind, options, schema.get("description", ""))
        if name == "code":
            for end in ("min", "max"):
                yield Field(f"then.delay_ms.{end}", f"Wait ms, {end}", "number", [], "Milliseconds of real time.")


def _asked() -> dict[str, Any]:
    """The rule of the form, as far as it is filled in. What is no number goes as text, for the control to refuse."""
    body: dict[str, Any] = {name: request.form[name] for name in ("name", "preset") if request.form.get(name)}
    for part in _PARTS:
        found = {}
        for name, schema in _schemas(part):
            text = request.form.get(f"{part}.{name}", "").strip()
            if text:
                found[name] = text if schema["type"] == "string" else _value(text)
        if found:
            body[part] = found
    ends = {end: request.form.get(f"then.delay_ms.{end}", "").strip() for end in ("min", "max")}
    if any(ends.values()):
        least, most = ends["min"] or ends["max"], ends["max"] or ends["min"]
        delay = _value(least) if least == most else {"min": _value(least), "max": _value(most)}
        body.setdefault("then", {})["delay_ms"] = delay
    return body


def _value(text: str) -> Any:
    found = read_json(text)
    return found if isinstance(found, int | float) else text


# -- rules in words


def _rule(raw: dict[str, Any]) -> Rule:
    when, left, is_over = raw["when"], list[str](), False
    if "times" in when:
        more = when["times"] - raw["hits"]
        left.append(f"{max(0, more)} of {when['times']} times")
        is_over = more <= 0
    if "for_seconds" in when:
        ends = iso(parse_iso(raw["created_at"]) + 1000 * when["for_seconds"])
        away = parse_iso(ends) - parse_iso(g.clock["now"])
        left.append(ends if away > 0 else "its time is over")
        is_over = is_over or away <= 0
    return Rule(raw, list(_match(raw["match"])), list(_when(when)), list(_then(raw["then"])), left, is_over)


def _match(match: dict[str, Any]) -> Iterator[str]:
    for name, content in match.items():
        if isinstance(content, dict):
            yield from (
                f"{member}: {value if isinstance(value, str) else plain(value)}" for member, value in content.items()
            )
        else:
            yield content if name in ("operationId", "method", "path") else f"{name} {content}"


def _when(when: dict[str, Any]) -> Iterator[str]:
    texts = {
        "probability": lambda number: f"{100 * number:g} % of them",
        "every": lambda number: "each one" if number == 1 else f"one in {number}",
        "after": lambda number: f"not the first {number}",
        "times": lambda number: f"{number} times at most",
        "for_seconds": lambda number: f"for {number:,} s",
    }
    yield from (texts[name](content) if name in texts else f"{name} {plain(content)}" for name, content in when.items())


def _then(then: dict[str, Any]) -> Iterator[str]:
    for name, content in then.items():
        if name == "headers":
            yield from (f"{header}: {value}" for header, value in content.items())
        elif name == "delay_ms":
            span = f"{content['min']:,} to {content['max']:,}" if isinstance(content, dict) else f"{content:,}"
            yield f"waits {span} ms"
        elif name == "truncate_body":
            yield f"sends {100 * content:g} % of the body"
        elif content is True:
            yield words(name).lower()
        elif content is not False:
            yield f"{words(name).lower()} {content}"
