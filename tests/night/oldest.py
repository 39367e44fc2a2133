"""The short run with the oldest versions of libraries that the project allows: `python -m
tests.night.oldest`.

An environment of its own is made first. Schemathesis needs newer libraries, so what imports it is
left out.
"""

import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "oldest"
TRIED = ("starlette", "uvicorn[standard]", "jsonschema-rs", "flask")
BESIDE = ("fastapi==0.115.*", "uvicorn==0.34.*")
"""What an application may have that has the test kit in its environment."""
WITH_SCHEMATHESIS = (
    "tests/reference_run",
    "tests/contract",
    "tests/surfaces/test_docs_schemathesis.py",
)
_RANGE = re.compile(r"([\w.\[\]-]+)>=([\d.]+)").match


def oldest() -> list[str]:
    """The requirements of the project that are tried, each as its oldest version: `flask==3.1`."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        needed = tomllib.load(file)["project"]["dependencies"]
    ranges = [found for text in needed if (found := _RANGE(text)) is not None]
    return [f"{found[1]}=={found[2]}" for found in ranges if found[1] in TRIED]


def run(*command: str) -> None:
    """Run a command; what it prints is shown. Raises CalledProcessError."""
    subprocess.run(command, cwd=ROOT, check=True)


def main() -> int:
    """Exit code 0 where every test passed."""
    venv.create(FOLDER, with_pip=True, clear=True)
    python = str(FOLDER / "bin" / "python")
    pip = (python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    run(*pip, "--editable", ".[dev]", "--constraint", "constraints.txt")
    print("with", *oldest(), *BESIDE, flush=True)
    run(*pip, *oldest(), *BESIDE)
    ignored = [f"--ignore={path}" for path in WITH_SCHEMATHESIS]
    command = [
        python,
        "-m",
        "pytest",
        "-n",
        "auto",
        "--dist",
        "loadfile",
        "--no-loadscope-reorder",
        "--short",
        *ignored,
    ]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
