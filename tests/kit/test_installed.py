"""The wheel and the sdist, as a user gets them: in an environment that has nothing else, away from
the checkout.
"""

import sys
import tarfile
import zipfile
from importlib.metadata import PathDistribution, distribution
from pathlib import Path

import pytest

from ..support.install import needed, plain_env, run
from ..support.processes import ROOT

pytestmark = [pytest.mark.check, pytest.mark.turn]

ENV = plain_env()
THREE_LINES = """
def test_checkout(sandbox):
    order = sandbox.pay(sandbox.order())
    assert sandbox.subscription(order)["orderId"] == order["id"]
"""


def built(source: Path, target: str, folder: Path) -> Path:
    """What hatchling makes of a source tree: `wheel` or `sdist`."""
    run(
        [
            sys.executable,
            "-m",
            "hatchling",
            "build",
            "--target",
            target,
            "--directory",
            str(folder),
        ],
        source,
        ENV,
    )
    (found,) = folder.iterdir()
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(
    scope="module", params=["linked", pytest.param("installed", marks=pytest.mark.night)]
)
def bin_folder(
    wheel: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Path:
    """The commands of an environment with the wheel, pytest and pytest-xdist, and nothing but what
    these need.
    """
    folder = tmp_path_factory.mktemp("installed")
    run([sys.executable, "-m", "venv", "--without-pip", str(folder)], folder, ENV)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(folder / "bin" / "python"),
        "--disable-pip-version-check",
    ]
    # Without byte code of what is never imported.
    pip += ["install", "--quiet", "--no-compile", "--constraint", str(ROOT / "constraints.txt")]
    if request.param == "linked":
        pip.append("--no-deps")
    run([*pip, str(wheel), "pytest", "pytest-xdist"], folder, ENV)
    if request.param == "linked":
        (site,) = folder.glob("lib/python*/site-packages")
        link(site, needed(*requirements(wheel), "pytest", "pytest-xdist"))
    return folder / "bin"


def requirements(wheel: Path) -> list[str]:
    """What a wheel says that it needs."""
    name, version = wheel.name.split("-")[:2]
    found = PathDistribution(zipfile.Path(wheel, f"{name}-{version}.dist-info/")).requires
    assert found
    return found


def link(site: Path, names: set[str]) -> None:
    """Distributions of this environment in another one, in a tenth of the time that their
    installation takes.
    """
    for name in names:
        of_this = distribution(name)
        for first in {file.parts[0] for file in of_this.files or ()} - {"..", "__pycache__"}:
            if not (site / first).exists():
                (site / first).symlink_to(str(of_this.locate_file(first)))


def test_the_sdist_makes_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    sdist = built(ROOT, "sdist", tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (source,) = (tmp_path / "unpacked").iterdir()
    again = built(source, "wheel", tmp_path / "again")
    assert (wheel.name, wheel.read_bytes()) == (again.name, again.read_bytes())


def test_the_contract_comes_with_the_wheel(bin_folder: Path, tmp_path: Path) -> None:
    where = run(
        [str(bin_folder / "python"), "-c", "import stub_server; print(stub_server.__file__)"],
        tmp_path,
        ENV,
    )
    assert Path(where).is_relative_to(bin_folder.parent)
    assert "valid" in run([str(bin_folder / "stub-server"), "check"], tmp_path, ENV)


def test_three_lines_are_a_test(bin_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(THREE_LINES)
    assert "1 passed" in run([str(bin_folder / "pytest"), "-W", "error"], tmp_path, ENV)


@pytest.mark.night
def test_the_kit_works_beside_other_versions_of_what_the_server_needs(
    wheel: Path, bin_folder: Path, tmp_path: Path
) -> None:
    """As docs/pytest.md says: the kit without dependencies, and a command that runs the
    server elsewhere.
    """
    folder = tmp_path / "application"
    run([sys.executable, "-m", "venv", "--without-pip", str(folder)], tmp_path, ENV)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(folder / "bin" / "python"),
        "--disable-pip-version-check",
    ]
    pip += ["install", "--quiet", "--no-compile"]
    run([*pip, "fastapi==0.115.*", "uvicorn==0.34.*", "flask==2.3.*", "pytest"], tmp_path, ENV)
    run([*pip, "--no-deps", str(wheel)], tmp_path, ENV)
    run([*pip, "httpx2"], tmp_path, ENV)
    (tmp_path / "test_it.py").write_text("import fastapi, flask, uvicorn\n" + THREE_LINES)
    (tmp_path / "pytest.ini").write_text(
        f"[pytest]\nsandbox_command = {bin_folder / 'stub-server'}\n"
    )
    assert "1 passed" in run([str(folder / "bin" / "pytest"), "-W", "error"], tmp_path, ENV)
