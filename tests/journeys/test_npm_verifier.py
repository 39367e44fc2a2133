"""What arrives is accepted by the other reference implementation of Standard Webhooks,
the npm package.
"""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from ..support.live import Live
from ..support.make import created
from ..support.receiver import Receiver
from .hooks import CREATED, WEBHOOKS, arrived, clients, event

pytestmark = pytest.mark.check

NPM = "standardwebhooks@1.1.1"
VERIFY = """
const { Webhook } = require("standardwebhooks");
let text = "";
process.stdin.on("data", part => text += part).on("end", () => {
  const told = JSON.parse(text);
  const payload = new Webhook(told.key).verify(told.body, told.headers);
  console.log(payload.type);
  try { new Webhook(told.key).verify(told.body + " ", told.headers); } catch (error) { console.log(error.message); }
});
"""


@pytest.fixture(scope="session")
def npm_package() -> Path:
    """The folder that holds the npm package of Standard Webhooks; it is fetched once."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip(
            "node and npm are not on this machine: the npm package of Standard Webhooks cannot"
            " verify"
        )
    folder = Path(__file__).parents[2] / "build" / "npm"
    if not (folder / "node_modules" / "standardwebhooks").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        command = [
            "npm",
            "install",
            "--no-save",
            "--no-audit",
            "--no-fund",
            "--prefix",
            str(folder),
            NPM,
        ]
        fetched = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if fetched.returncode:
            pytest.skip(f"npm could not fetch {NPM}: {fetched.stderr[-300:]}")
    return folder


def test_the_npm_verifier_accepts_what_arrives(
    serve: Callable[..., Live], receiver: Receiver, npm_package: Path
) -> None:
    with clients(serve(scenario="empty")) as (api, _):
        made = created(api.post(WEBHOOKS, json={"url": receiver.url, "events": CREATED}))["webhook"]
        event(api)
        (request,) = arrived(receiver, 1)
    told = {"key": made["signing_key"], "body": request.body.decode(), "headers": request.headers}
    ran = subprocess.run(
        ["node", "-e", VERIFY],
        input=orjson.dumps(told),
        capture_output=True,
        timeout=60,
        cwd=npm_package,
    )
    assert b"customer.created\nNo matching signature found\n" == ran.stdout, ran.stderr
