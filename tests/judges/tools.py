"""The tools of `make judges`, as npm installs them once in `build/judges`."""

import re
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
_INSTALLED = HERE.parents[1] / "build" / "judges"
_AWAY = re.compile(r"ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNREFUSED|ECONNRESET|ENETUNREACH|ENOTCACHED")


class Missing(Exception):
    """What is not on this machine, so that a judge is not asked."""


def installed() -> Path:
    """The folder of the tools' commands. Raises Missing."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        raise Missing("node and npm are not on this machine")
    lock = (HERE / "package-lock.json").read_bytes()
    done = _INSTALLED / "installed.lock"
    if not done.exists() or done.read_bytes() != lock:
        _INSTALLED.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, _INSTALLED / name)
        command = ["npm", "ci", "--no-audit", "--no-fund"]
        ran = subprocess.run(
            command, cwd=_INSTALLED, capture_output=True, text=True, timeout=600, check=False
        )
        if ran.returncode and (found := _AWAY.search(ran.stderr)):
            raise Missing(f"npm cannot reach its registry ({found[0]})")
        if ran.returncode:
            raise SystemExit(ran.stderr)
        done.write_bytes(lock)
    return _INSTALLED / "node_modules" / ".bin"


def java() -> None:
    """Raises Missing where there is none."""
    if shutil.which("java") is None:
        raise Missing("java is not on this machine")
