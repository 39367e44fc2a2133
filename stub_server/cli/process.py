"""What a process of the command needs before anything else: standard files that are open, and how
it ends.
"""

import io
import os
import sys

CLOSED_PIPE = 141  # as a shell has it: 128 and the number of SIGPIPE
INTERRUPTED = 130  # the same for SIGINT


def prepare() -> None:
    """Open the standard files that are closed, and escape what their encoding does not have.

    A closed one would be given to the next file that is opened, such as a store.
    """
    # each gets the lowest number that is free, which is its own
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115 - as long as the process
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - the same
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - the same
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def discard_output() -> None:
    """Discard all further output.

    Its reader is gone, and the interpreter would fail when it flushes at its end.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
