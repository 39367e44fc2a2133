"""Commands of this package without a second of imports: `Popen` forks them off a process that has
imported everything.

`python -m tests.support.forked FD` is that process, one for each process of tests. It takes a
command with its directory, environment and files, forks, and says the number of the child. Linux
gives the child to the process that
asked: whoever has it waits for it, signals it and reads its exit status as with every other child.
What is no command of this package, wants something special or begins Python another way is started
as everywhere.
"""

import atexit
import ctypes
import gc
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGE = "stub_server"
READ_AT_START = ("PYTHON", "LC_", "LANG", "TZ", "GLIBC_", "LD_", "MALLOC_", "COVERAGE_")
"""Variables with such names mean something to an interpreter that begins, and nothing later."""
_ADOPTS = 36  # PR_SET_CHILD_SUBREAPER: grandchildren whose parent ended become children
_ENV = dict(os.environ)
_turn = Lock()


def _begins_alike(env: Mapping[str, str]) -> bool:
    kept, known = (
        {pair for pair in each.items() if pair[0].startswith(READ_AT_START)} for each in (env, _ENV)
    )
    return kept == known


@cache
def _parent(_of: int) -> socket.socket | None:
    """The connection of a process to the one that forks for it; None where children
    cannot be adopted.
    """
    if not sys.platform.startswith("linux") or ctypes.CDLL(None).prctl(_ADOPTS, 1, 0, 0, 0):
        return None
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with there:
        command = [sys.executable, "-m", "tests.support.forked", str(there.fileno())]
        null = subprocess.DEVNULL
        process = subprocess.Popen(
            command, cwd=ROOT, env=_ENV, pass_fds=[there.fileno()], stdin=null, stdout=null
        )
    atexit.register(process.wait)
    atexit.register(process.kill)
    return here


class Popen(subprocess.Popen[str]):
    """`subprocess.Popen`, forked where that makes no difference to the command.

    It replaces the private step that makes the child, which type stubs do not have: no public one
    takes a child that another process has made. The step has these parameters from Python 3.11 to
    3.13.
    """

    def _execute_child(
        self, args: Any, executable: Any, prepare: Any, close: Any, kept: Any, *more: Any
    ) -> None:
        cwd, env, _, _, shell, *pipes = more[:11]
        cwd = Path(cwd or "").absolute()
        env = os.environ if env is None else env
        plain = not (executable or prepare or kept or shell) and more[12:] == (
            None,
            None,
            None,
            -1,
            False,
            -1,
        )
        ours = list(args[:2]) == [sys.executable, "-m"] and args[2].partition(".")[0] in (
            PACKAGE,
            "tests",
        )
        # another copy is another program
        ours = ours and (cwd == ROOT or not (cwd / PACKAGE).exists())
        with _turn:
            parent = _parent(os.getpid()) if plain and ours and _begins_alike(env) else None
            if parent is not None:
                told = [list(map(os.fspath, args[2:])), str(cwd), dict(env)]
                files = [
                    number if fd == -1 else fd
                    for number, fd in enumerate((pipes[0], pipes[3], pipes[5]))
                ]
                socket.send_fds(parent, [json.dumps(told).encode()], files)
                self.pid = int(parent.recv(20))
        if parent is None:
            vars(subprocess.Popen)["_execute_child"](
                self, args, executable, prepare, close, kept, *more
            )
            return
        self._child_created = True
        vars(subprocess.Popen)["_close_pipe_fds"](self, *pipes)


def run(
    command: Sequence[str], *, timeout: float | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """`subprocess.run` with captured text, forked where that makes no difference."""
    with Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    ) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _forks(channel: socket.socket) -> list[str] | None:
    """Fork for whoever asks, until nobody can any more.

    Answers the command in a child, and None in the parent.
    """
    while True:
        told, files, *_ = socket.recv_fds(channel, 1 << 20, 3)
        if not told:
            return None
        number, written = os.pipe()
        if (between := os.fork()) == 0:
            if (child := os.fork()) == 0:
                break
            os.write(written, str(child).encode())
            os._exit(0)
        for fd in (written, *files):
            os.close(fd)
        os.waitpid(between, 0)  # then the child is that of who asked
        channel.send(os.read(number, 20))
        os.close(number)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for fd in (channel.detach(), number, written):
        os.close(fd)
    for standard, fd in enumerate(files):
        os.dup2(fd, standard)
        os.close(fd)
    # A stream knows of its file whether it is a pipe: those of the process that forks are of other
    # files.
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", errors="backslashreplace", closefd=False)
    command, cwd, env = json.loads(told)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    return list(command)


def main() -> None:
    """Import everything, and be whatever command is asked for."""
    for each in pkgutil.walk_packages([str(ROOT / PACKAGE)], f"{PACKAGE}."):
        if not each.name.endswith("__main__"):
            import_module(each.name)
    gc.freeze()
    # Ctrl-C is for who asked, whose end is the end of this
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if (command := _forks(socket.socket(fileno=int(sys.argv[1])))) is not None:
        sys.argv = command
        runpy.run_module(command[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
