"""`stub-server certify`: has a receiver judged by a running server and tells what came of it."""

from typing import Any

from .options import printable
from .server import Refused, RunningServer

Certificate = dict[str, Any]
_SHOWN = {"passed": "passed", "failed": "FAILED", "not_applicable": "n/a", "unknown": "unknown"}


async def certificate(server: RunningServer, url: str, signing_key: str | None, event_type: str | None) -> Certificate:
    """The report. Without a key the webhook with this address is certified, by its own. Raises Away, Refused."""
    asked = {} if event_type is None else {"event_type": event_type}
    if signing_key is not None:
        asked |= {"url": url, "signing_key": signing_key}
        path = "/certify"
    else:
        path = f"/webhooks/{await _webhook_at(server, url)}/certify"
    found: Certificate = (await server.control("POST", path, json=asked))["certificate"]
    return found


async def _webhook_at(server: RunningServer, url: str) -> str:
    token = (await server.control("GET", "/credentials"))["jwt"]
    webhooks = (await server.api(token, "/v2/webhooks", params={"limit": 100}))["webhooks"]
    for webhook in webhooks:
        if webhook["url"] == url:
            return str(webhook["id"])
    raise Refused(
        f"no webhook of the sandbox has this address. Register it (POST {server.base}/v2/webhooks), or give the "
        "receiver's key as --signing-key.",
        None,
    )


def text(report: Certificate) -> str:
    """The report for people."""
    summary = report["summary"]
    lines = [
        f"{report['url']} was sent {report['event_type']} and watched in the sandbox {report['sandbox']}: "
        f"{summary['passed']} passed, {summary['failed']} failed, {summary['unknown']} unknown, "
        f"{summary['not_applicable']} not applicable ({report['duration_ms'] / 1000:.1f} s).",
        "",
    ]
    for rule in report["rules"]:
        lines.append(f"{_SHOWN[rule['result']]:<7} {rule['id']:<15} {rule['name']}")
        if rule["result"] in ("not_applicable", "unknown"):
            lines.append(f"{'':<23} because   {rule['received']}")
        elif rule["result"] == "failed":
            lines += [f"{'':<23} {name:<9} {rule[name]}" for name in ("sent", "received", "advice")]
    if summary["unknown"]:
        rules = "1 rule is" if summary["unknown"] == 1 else f"{summary['unknown']} rules are"
        lines += [
            "",
            f"{rules} unknown: the receiver made no call to the sandbox, so repeated work could not be seen. "
            "Have it act on the sandbox's API while it is certified.",
        ]
    return "\n".join(map(printable, lines))
