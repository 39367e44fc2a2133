"""The clock: what is due, and moving forward to it."""

from flask import g, render_template, request

from .site import pages

_LISTED = 25


@pages.get("/clock")
def clock() -> str:
    """What is due next."""
    g.clock = g.client.control("clock")
    found = g.client.control("timers", {"limit": _LISTED, "page": request.args.get("page", "")})
    return render_template(
        "console/clock.html",
        **found,
    )
