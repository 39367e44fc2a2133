"""Copy what the sandbox needs at run time into a folder, from which the Dockerfile makes the image.

    env/bin/python docs/deploy/rootfs.py FOLDER

That is the interpreter, its standard library, the environment `env`, the shared libraries of all
three, certificates and a user. There is no shell, package manager or pip. Paths within the folder
are those outside it.
"""

import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

UNUSED = shutil.ignore_patterns(
    "site-packages",
    "test",
    "tests",
    "idlelib",
    "ensurepip",
    "tkinter",
    "_tkinter*",
    "turtledemo",
    "lib2to3",
    "pydoc_data",
    "config-3*",
    "*.a",
    "*.c",
    "*.h",
    "*.pyi",
    "*.pyx",
    "*.opt-[12].pyc",
)
PIP = shutil.ignore_patterns(
    "pip",
    "pip-*",
    "pip[0-9]*",
    "setuptools*",
    "pkg_resources",
    "_distutils_hack",
    "distutils-precedence.pth",
    "test",
    "tests",
    "*.c",
    "*.h",
    "*.pyi",
    "*.pyx",
)
ETC = ("ld.so.cache", "nsswitch.conf", "ssl/certs/ca-certificates.crt")
USER = "sandbox:x:10001:10001::/home/sandbox:/sbin/nologin\n"


def main(root: Path) -> None:
    """Fill the folder, which must not exist."""

    def inside(path: Path) -> Path:
        place = root / path.relative_to("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    environment, library = Path(sys.prefix), Path(sysconfig.get_path("stdlib"))
    shutil.copytree(library, inside(library), symlinks=True, ignore=UNUSED)
    shutil.copytree(environment, inside(environment), symlinks=True, ignore=PIP)
    interpreter = environment / "bin" / "python"
    while interpreter.is_symlink():
        interpreter = interpreter.parent / interpreter.readlink()
        if not inside(interpreter).exists():
            shutil.copy2(interpreter, inside(interpreter), follow_symlinks=False)
    for path in libraries([interpreter, *root.rglob("*.so*")]):
        shutil.copy2(path, inside(path))
    subprocess.run(["strip", "--strip-unneeded", *root.rglob("*.so*")], check=True)  # noqa: S603, S607 - of binutils
    for name in ETC:
        shutil.copy2(f"/etc/{name}", inside(Path("/etc", name)))
    inside(Path("/etc/passwd")).write_text(USER, encoding="ascii")
    (root / "tmp").mkdir(exist_ok=True)
    (root / "tmp").chmod(0o1777)


def libraries(programs: Iterable[Path]) -> set[Path]:
    """The shared libraries that programs and libraries need.

    Those that come with packages are left out.
    """
    said = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=True).stdout  # noqa: S603, S607
    return {Path(path) for path in re.findall(r"(/\S+) \(0x", said) if "site-packages" not in path}


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
