"""The command: flags and their environment variables, what it refuses to start with, and the call
that it prints.
"""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path

import click
import httpx2
import pytest
from click.testing import CliRunner
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from stub_server.cli.command import main
from stub_server.server.protocol import Limits

from ..support.contract import document
from ..support.live import NO_TLS, Live, serving

COMMAND = [sys.executable, "-m", "stub_server"]


@pytest.mark.check
def test_a_printed_call_works_when_pasted() -> None:
    """Port 0 picks a free port; the banner shows the real one, and no line is broken however narrow
    the terminal is.
    """
    env = {**os.environ, "STUB_PORT": "0", "STUB_NOW": "2026-11-20T14:32:05Z", "COLUMNS": "40"}
    process = subprocess.Popen([*COMMAND], stdout=subprocess.PIPE, text=True, env=env)
    assert process.stdout is not None
    try:
        lines: list[str] = []
        while not lines or not lines[-1].startswith("curl "):
            line = process.stdout.readline()
            assert line, lines
            lines.append(line)
        told = "".join(lines)
        assert f"{len(document().operations)} operations" in told
        assert "seed 42" in told
        assert "frozen at 2026-11-20T14:32:05.000Z" in told
        _, _, url, _, header = shlex.split(lines[-1])
        name, _, value = header.partition(": ")
        answer = httpx2.get(url, headers={name: value}, timeout=30, verify=NO_TLS)
        assert answer.status_code == 200, answer.text
        assert len(answer.json()["customers"]) == 2
        assert "server" not in answer.headers
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        process.stdout.close()


def banner_of(*command: str, path: str) -> str:
    """What a start on a free port prints, where programs are looked for in `path`."""
    env = {**os.environ, "PATH": path}
    with subprocess.Popen(
        [*command, "--port", "0", "--log", "quiet", "--scenario", "empty"],
        stdout=subprocess.PIPE,
        text=True,
        env=env,
    ) as it:
        assert it.stdout is not None
        told = "".join(iter(it.stdout.readline, "\n"))
        it.kill()
    return told


@pytest.mark.check
@pytest.mark.parametrize("called", ["module", "path", "name"])
def test_the_banner_names_the_command_as_this_shell_finds_it_and_the_server(called: str) -> None:
    """On another port than the usual one its verbs must be told which server is meant."""
    there = Path(sys.executable).parent
    command = COMMAND if called == "module" else [str(there / "stub-server")]
    told = banner_of(*command, path=str(there) if called == "name" else os.defpath)
    shown = "stub-server" if called == "name" else f"{shlex.quote(sys.executable)} -m stub_server"
    url = re.search(r"address +(\S+)", told)
    assert url is not None, told
    assert f"  token       {shown} token, or " in told
    assert (
        f"  shell       {shown} VERB --server {url[1]}, or first: export STUB_SERVER={url[1]}\n"
        in told
    )


def test_every_flag_has_its_environment_twin() -> None:
    serve = main.commands["serve"]
    context = click.Context(serve, info_name="serve", **serve.context_settings)
    for option in serve.params:
        assert isinstance(option, click.Option)
        twin = "STUB_" + option.opts[0].removeprefix("--").replace("-", "_").upper()
        names = option.envvar or f"{context.auto_envvar_prefix}_{(option.name or '').upper()}"
        assert twin == names, option.opts[0]


def test_a_port_in_use_is_refused_with_a_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = CliRunner().invoke(main, ["--port", str(taken.getsockname()[1])])
    assert (2, True) == (said.exit_code, "--port 0" in said.output)


@pytest.mark.parametrize("name", ["default", "shop-one"])
def test_env_exports_what_a_shell_needs(live: Live, name: str) -> None:
    """Address, token and ids are those with which a call succeeds; each is one word
    of the shell.
    """
    said = CliRunner().invoke(main, ["env", "--server", live.url, "--sandbox", name])
    assert 0 == said.exit_code, said.output
    call = 'curl -s -o /dev/null -w "%{http_code}" -H "Authorization: Bearer $STUB_TOKEN"'
    script = f"{said.output}\n{call} $STUB_URL/v2/plans/$STUB_PLAN_ID"
    ran = subprocess.run(
        ["sh", "-euc", script], capture_output=True, text=True, timeout=30, check=True
    )
    assert "200" == ran.stdout
    shown = json.loads(
        CliRunner().invoke(main, ["env", "--server", live.url, "--sandbox", name, "--json"]).output
    )
    assert live.url + ("" if name == "default" else f"/s/{name}") == shown["STUB_URL"]
    assert (live.url, name) == (shown["STUB_SERVER"], shown["STUB_SANDBOX"])
    assert {"STUB_PROJECT_ID", "STUB_PLAN_ID", "STUB_CUSTOMER_ID", "STUB_ORDER_ID"} < shown.keys()
    if name != "default":
        live.app.sandboxes.forget(name)


def test_env_runs_nothing_that_another_server_says(tmp_path: Path) -> None:
    """A shell evaluates what is printed: names that are none are left out, and values
    are quoted.
    """
    sample = {"orderId": "$(touch value)", "x;touch name;xId": "1", "$(touch name)": "2"}
    body = {"sandbox": "default", "jwt": "`touch value`", "sample": sample}
    own = {"x-request-id": "req_1"}
    other = Starlette(
        routes=[
            Route(
                "/s/default/_sandbox/credentials", lambda request: JSONResponse(body, headers=own)
            )
        ]
    )
    with serving(other, Limits()) as port:
        said = CliRunner().invoke(main, ["env", "--server", f"http://127.0.0.1:{port}"])
    assert 0 == said.exit_code, said.output
    script = f'{said.output}\nprintf %s "$STUB_ORDER_ID $STUB_TOKEN"'
    ran = subprocess.run(
        ["sh", "-euc", script], cwd=tmp_path, capture_output=True, text=True, timeout=30, check=True
    )
    assert ("$(touch value) `touch value`", []) == (ran.stdout, list(tmp_path.iterdir()))


@pytest.mark.parametrize(("status", "ident"), [(200, ""), (200, "req_1"), (422, "req_1")])
@pytest.mark.parametrize("verb", ["env", "explain last", "orders list", "reset", "sandboxes list"])
def test_a_server_that_answers_in_another_way_is_named(verb: str, status: int, ident: str) -> None:
    """It is no sandbox, or one of another version."""
    body = {"orders": [{}], "sandboxes": [{}], "requests": [{}], "details": [1, 2]}
    answer = JSONResponse(body, status, {"X-Request-Id": ident})
    every = ["GET", "POST", "PUT", "PATCH", "DELETE"]
    other = Starlette(routes=[Route("/{path:path}", lambda request: answer, methods=every)])
    with serving(other, Limits()) as port:
        said = CliRunner().invoke(main, [*verb.split(), "--server", f"http://127.0.0.1:{port}"])
    assert (2, True) == (said.exit_code, "is not a compatible sandbox" in said.output), said.output
