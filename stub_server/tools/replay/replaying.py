"""Sends the requests of a recording to a server of this process, in their order and
at their times.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from ...app import create_app
from ...contract.secrets import KEY_HEADERS, REDACTED
from ...core.clock import wall_from
from ...core.record import Body
from ...data.scenario import known_scenarios
from ...engine.kept import Trace
from ...engine.sandbox import DEFAULT, SILENT, Sandbox
from ...server.layers.inside import Question, ask
from ...settings import Settings
from ...storage.admitting import built
from ...storage.exports import adopted, traces_of
from ...storage.fitting import Fitting, check_line
from ...storage.package import RECORDING, BadFile, damaged, unpack
from ...storage.reading import Reader
from .differences import difference
from .inputs import Callers, Diverged, RecordedSteps, RequestIds, Timepiece
from .recorded import is_sent, last_step, reasons

_ADMIN, _CONTROL = KEY_HEADERS
_KEY = "of this replay"
_PEER = ("127.0.0.1", 50_000)
_NO_STATE = ("header", "recording", "request", "later")  # kinds of lines
_MOST_DIFFS = 5  # that are shown whole


def settings_of(about: Body, requests: int, overlays: Sequence[Path]) -> Settings:
    """The settings of the recording's server, as far as they shape answers to so many requests.
    Raises BadFile.

    Which files are read says the caller alone: a recording comes from somebody else. It has all
    records, and no reset, so a scenario file that its server had is not needed.
    """
    behaviour = dict(about["behaviour"])
    if behaviour.pop("has_overlays") and not overlays:
        raise BadFile(
            "unfit",
            "The recording is of a contract with overlays: give the same ones with --overlay.",
        )
    try:
        urlsplit(behaviour["base_url"])
    except ValueError as error:
        raise damaged(f"recording.behaviour.base_url: {error}") from None
    if behaviour["scenario"] not in known_scenarios():
        behaviour["scenario"] = "empty"
    behaviour["allow_hosts"] = tuple(behaviour.get("allow_hosts", ()))
    if behaviour.pop("has_admin_key"):
        behaviour["admin_key"] = _KEY
    behaviour.pop("rate_limit")
    return Settings(**behaviour, overlays=tuple(overlays), journal=max(requests, 1))


async def replay(data: bytes, overlays: Sequence[Path] = ()) -> Body:
    """Read a recording and send its requests again; the report on the answers.

    Raises BadFile, ContractError.
    """
    session = Session(data, overlays)
    with wall_from(session.timepiece):
        return await session.run()


class Session:
    """One replay: the recording, and the server to which its requests are sent again."""

    def __init__(self, data: bytes, overlays: Sequence[Path]) -> None:
        self.timepiece = Timepiece()
        found = defaultdict[str, list[Body]](list)
        for kind, body in unpack(data, check_line, (RECORDING,)):
            if kind in _NO_STATE:
                found[kind].append(body)
        if not found["recording"]:
            raise damaged("it lacks the settings of its server")
        about, requests = found["recording"][0], found["request"]
        self._held_before, self._contract = about["held"], found["header"][0]["contract"]
        if requests:
            self.timepiece.now = requests[0]["received"]
        self._settings = settings_of(about, len(requests), overlays)
        with wall_from(self.timepiece):
            self._app = create_app(self._settings)
        factory = self._app.server.sandboxes.factory
        self._fitting = Fitting(factory.rules, self._contract["digest"])
        # Every API key gets the private half of `own_pair`.
        self._reader = Reader(
            factory.carried(about.get("generation", "")),
            adopted(anew=True, keeps_shown=True),
            self._fitting,
        )
        for kind, body in unpack(data, None, (RECORDING,)):  # which keeps no line of the state
            if kind not in _NO_STATE:
                self._reader.read(kind, body)
        self._steps = RecordedSteps(found["later"], self.timepiece, self._sandbox, self._fitting)
        self.name = self._reader.sandbox.name
        self._requests = list(traces_of(requests, (), self.name, keeps_bodies=True))
        self._skipped = reasons(self._requests)
        self._callers = Callers(self._app.server.tokens)
        self._ended: list[Trace] = []
        self._serve(about["behaviour"]["rate_limit"])

    def _serve(self, rate: Sequence[int] | None) -> None:
        """Have the server send nothing, delay nothing, and answer with this rate limit."""
        settings = self._app.server.settings
        if rate is not None:
            requests, seconds = rate
            settings = replace(settings, rate_limit=(requests, seconds))
        server = replace(self._app.server.silent(), settings=settings, waits=False)
        self._app.serve(server)
        server.listeners.append(self._ended.append)

    def _sandbox(self) -> Sandbox:
        return self._app.server.sandboxes.entry(self.name).sandbox

    async def run(self) -> Body:
        """Send the requests as long as they fit the state of the sandbox; the report on the
        answers.

        Requests that were skipped were not sent, or are not compared. Those that are `unsent` came
        after the state had become another one than the recorded one.
        """
        sandbox = built(self._reader)  # in the state at the beginning of the recording
        sandbox.status.held_before = self._held_before
        if self._held_before != SILENT:
            sandbox.status.held_before = min(self._held_before, sandbox.events.raised)
        self._app.server.sandboxes.put_in_place(sandbox)
        same, unsent, diffs = 0, 0, list[Body]()
        skipped, differing = Counter[str](), defaultdict[str, list[str]](list)
        for number, request in enumerate(self._requests, 1):
            reason = self._skipped.get(request.id) or self._steps.reason(request)
            try:
                diff = await self._replayed(request, reason)
            except Diverged as error:
                reason, diff = None, f"--- recorded\n+++ replayed\n{error}"
                unsent = len(self._requests) - number
            if reason is not None:
                skipped[reason] += 1
            elif diff:
                name = request.operation or f"{request.method} {request.path}"
                differing[name].append(request.id)
                diffs.append(
                    {"id": request.id, "method": request.method, "path": request.path, "diff": diff}
                )
            else:
                same += 1
            if unsent:
                break
        return {
            "ok": not diffs,
            "requests": len(self._requests),
            "same": same,
            "aside": skipped.total(),
            "unsent": unsent,
            "aside_by_reason": dict(skipped),
            "differing": dict(differing),
            "contract": self._contract if self._fitting.is_other else None,
            "diffs": diffs[:_MOST_DIFFS],
        }

    async def _replayed(self, request: Trace, reason: str | None) -> str:
        """The difference that a request's answer makes, unless it is skipped for a reason.

        Raises Diverged.
        """
        if not is_sent(request, reason):
            self._steps.take(last_step(request))
            self._sandbox().journal.append(request)  # a later rewind may name it
            return ""
        self._steps.take(request.before)
        sent = await self._send(request)
        if reason is not None:
            return ""
        diff = difference(request, sent)
        if not diff:
            sent.before = request.before  # for a rewind to it: attempts may have been taken earlier
        return diff

    async def _send(self, request: Trace) -> Trace:
        sandbox = self._sandbox()
        sandbox.ids.requests = RequestIds(request.id)
        self.timepiece.show(sandbox, request.at, request.received)
        body = request.body or b""
        asked = Question(
            request.method,
            request.path,
            request.query.decode("latin-1"),
            self._headers(request, body),
            body,
        )
        self._ended.clear()
        reply = await ask(self._app, f"/s/{self.name}" if request.is_prefixed else "", asked, _PEER)
        self._callers.learn(reply.body)
        return self._ended[-1]

    def _headers(self, request: Trace, body: bytes) -> dict[str, str]:
        headers: dict[str, str] = dict(request.headers)
        if "authorization" in headers:
            headers["authorization"] = self._callers.credential(self._sandbox(), request)
        if "content-length" in headers:
            headers["content-length"] = str(len(body))
        if headers.get(_CONTROL) == REDACTED:
            headers[_CONTROL] = self._app.server.sandboxes.control_key(self.name)
        if headers.get(_ADMIN) == REDACTED:
            headers[_ADMIN] = _KEY
        # its credential named it, or this header
        if not request.is_prefixed and self.name != DEFAULT:
            headers.setdefault("x-sandbox", self.name)
        return headers
