"""How long a start takes: `python -m tests.benchmarks.start`, from the command to the first answers."""

import time
from pathlib import Path
from statistics import median

from ..support.processes import Process

ROUNDS = 15
PATHS = ("/_sandbox/health", "/v2/customers?limit=2")
# Byte code is kept, as it is for a user. With another setting than ours, Python begins anew, and is
# not forked off (tests/support/forked.py).
ENV = {"PYTHONDONTWRITEBYTECODE": ""}


def measure() -> tuple[float, float]:
    """Seconds until the answers were there, and those of CPU that the server took for it."""
    began = time.perf_counter()
    with Process(env=ENV) as server, server.api() as api:
        for path in PATHS:
            api.get(path).raise_for_status()
        return time.perf_counter() - began, cpu_seconds(server.pid)


def cpu_seconds(pid: int) -> float:
    """Seconds of CPU that a process has used so far, to the nanosecond; Linux alone tells."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def main() -> None:
    """Start the server again and again, and print the medians."""
    measure()  # writes byte code and fills the file cache
    answered, cpu = zip(*(measure() for _ in range(ROUNDS)), strict=True)
    print(f"first answers after {median(answered):.2f} s, {median(cpu):.2f} s of CPU")


if __name__ == "__main__":
    main()
