"""The sandboxes of the server; of this one its snapshots, its steps as a line to travel
on, and its file.
"""

from itertools import groupby
from typing import Any
from urllib.parse import quote

from flask import Response, g, render_template, request

from ..contract.source import JsonObject
from ..server.layers.inside import Question
from ..server.request import CONTROL
from .actions import act, go, show_done
from .addresses import DONE, there, this_sandbox
from .client import Refused
from .forms import filled
from .sessions import CONTROL_KEY
from .shell import give_cookie
from .site import contracts, pages

_LISTED, _STEPS = 50, 20
_HERE = "/console/sandboxes"
_MEDIA = "application/vnd.stub.sandbox+gzip"


@pages.get("/sandboxes")
def list_sandboxes() -> str:
    """Sandboxes, snapshots, steps."""
    glob = request.args.get("name", "").strip()
    asked = {"page": request.args.get("page", ""), "table": request.args.get("table", "")}
    steps = g.client.control("steps", {"limit": _STEPS, **asked})
    snapshots = g.client.control("snapshots", {"limit": 100})
    return render_template(
        "console/sandboxes.html",
        listed=_listed(glob),
        glob=glob,
        steps=[(delivers, [*group]) for delivers, group in groupby(steps["steps"], key=_delivers)],
        pagination=steps["pagination"],
        snapshots=snapshots["snapshots"],
        settings=g.client.control("settings"),
    )


@pages.post("/sandboxes/new")
def make_sandbox() -> Response:
    """Make the sandbox that a page has not found, and go to it."""
    reply = g.client.of("").change(*filled("createSandbox"))
    if reply.is_refused and Refused(reply).code != "duplicate_sandbox":
        raise Refused(reply)
    return go(there(request.form["name"], "/console/requests"))


@pages.post("/sandboxes/delete")
def delete_one() -> Response:
    """Delete a sandbox. The page of another one is shown if it was this one."""
    if request.form.get("sandboxName") != this_sandbox():
        return act("deleteSandbox")
    reply = g.client.of("").change(*filled("deleteSandbox"))
    if reply.is_refused:
        return show_done(reply, _HERE)
    return go(f"{there('default', _HERE)}?{DONE}={quote(reply.request_id)}")


@pages.post("/sandboxes/reset")
def reset_sandbox() -> Response:
    """Go back to how the sandbox began, which can be undone; where the way there is not stored,
    seed it again.
    """
    rewound = g.client.change("POST", f"{CONTROL}/rewind", {"to_step": 0})
    return act("resetSandbox") if rewound.is_refused else show_done(rewound)


@pages.post("/sandboxes/rotate")
def rotate_sandbox() -> Response:
    """Give the sandbox new credentials, which the page of keys shows; also to who came with the key
    that ends.
    """
    reply = g.client.change("POST", f"{CONTROL}/sandboxes/{this_sandbox()}/rotate")
    answer = show_done(reply, _HERE if reply.is_refused else "/console/keys")
    if not reply.is_refused and CONTROL_KEY in g.visitor.keys:
        key = reply.json["sandbox"]["credentials"]["control_key"]
        give_cookie(answer, contracts().sessions.begin(key), f"{request.script_root}/")
    return answer


@pages.post("/sandboxes/import")
def import_file() -> Response:
    """Put the sandbox of a file in the place of this one."""
    sent = request.files.get("file")
    query = "deliver=true" if request.form.get("deliver") else ""
    body = b"" if sent is None else sent.read()
    reply = g.client.send(
        Question("POST", f"{CONTROL}/import", query, {"content-type": _MEDIA}, body)
    )
    return show_done(reply, _HERE)


def _delivers(step: JsonObject) -> bool:
    """Whether a step is that of a delivery: those that follow each other are folded."""
    cause = step["cause"]
    return cause["kind"] == "delivery" or str(cause["operation"]).startswith("webhook.")


def _listed(glob: str) -> Any:
    """The newest sandboxes, None for those who have the key of one alone."""
    try:
        return g.client.control("sandboxes", {"name": glob, "limit": _LISTED})
    except Refused as refused:
        if refused.code != "admin_key_required":
            raise
        return None
