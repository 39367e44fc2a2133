"""Which commit is tested: what a run chooses by its digest, every commit chooses otherwise."""

import subprocess
from functools import cache
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[2]


@cache
def commit() -> str:
    """The commit that is checked out; without git the digest of the package's files."""
    try:
        asked = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        return asked.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        whole = sha256()
        for path in sorted((ROOT / "stub_server").rglob("*.py")):
            whole.update(path.read_bytes())
        return whole.hexdigest()
