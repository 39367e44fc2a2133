"""Serves in a process of its own, has a sandbox created twice, and prints how long one turn of the
event loop was.

`python -m tests.operators.turns` prints milliseconds of CPU time of the loop's thread: what other
programs of the machine take does not count, nor what the thread for long work takes.
"""

import asyncio
import socket
import sys
import time
from dataclasses import replace

import httpx2
import uvicorn

from stub_server.app import create_app
from stub_server.cli.listening import with_port
from stub_server.cli.serving import HANDOVER, calm_collector, uvicorn_config
from stub_server.server.protocol import ConnectionMonitor, Limits

from ..support.live import FROZEN, NO_TLS

EVERY = 0.001  # seconds between two beats
_AGENT = {"name": "agent", "version": "1"}
_BEGIN = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": _AGENT}
_PING = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _BEGIN}


class Beats:
    """Beats on the event loop: between two of them nobody else is served.

    `longest` is the thread's CPU time, in s.
    """

    def __init__(self) -> None:
        self.longest, self._last = 0.0, time.thread_time()
        self.beat()

    def beat(self) -> None:
        now = time.thread_time()
        self.longest, self._last = max(self.longest, now - self._last), now
        asyncio.get_running_loop().call_later(EVERY, self.beat)


def _create(url: str) -> None:
    """Create a sandbox that takes long to fill, and another one that is asked for until
    it is ready.
    """
    with httpx2.Client(base_url=url, timeout=60, verify=NO_TLS) as client:
        body: dict[str, object] = {"name": "at-once", "scenario": "default"}
        client.post("/_sandbox/sandboxes", json=body).raise_for_status()
        body = {"name": "later", "scenario": "default", "seed": 5}
        answer = client.post("/_sandbox/sandboxes", json=body, headers={"Prefer": "respond-async"})
        while answer.status_code == 202:
            time.sleep(0.1)
            answer = client.get("/_sandbox/sandboxes/later")
        answer.raise_for_status()
        # the tools of coding agents, a package that no start imports
        media = {"Accept": "application/json, text/event-stream"}
        client.post("/_sandbox/mcp", json=_PING, headers=media).raise_for_status()


async def main() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        settings = with_port(replace(FROZEN, scenario="empty"), listening)
        server = uvicorn.Server(
            uvicorn_config(create_app(settings), ConnectionMonitor(Limits()), None)
        )
        serving = asyncio.create_task(server.serve([listening]))
        while not server.started:
            await asyncio.sleep(0.01)
        await asyncio.sleep(1)  # as long as somebody needs to type a command
        calm_collector()
        sys.setswitchinterval(HANDOVER)
        beats = Beats()
        await asyncio.to_thread(_create, settings.url)
        server.should_exit = True
        await serving
    print(beats.longest * 1000)


if __name__ == "__main__":
    asyncio.run(main())
