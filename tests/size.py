"""`python -m tests.size`: how many nodes of the syntax tree there are, room by room."""

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
APART = ("console", "tools/verify")  # what is measured by itself


def main() -> None:
    """Print the rooms, largest first, and what is held to a measure."""
    package, rooms = ROOT / "stub_server", Counter[str]()
    for file in package.rglob("*.py"):
        name = file.relative_to(package)
        rooms[name.parts[0]] += nodes(file)
    apart = sum(nodes(file) for name in APART for file in (package / name).rglob("*.py"))
    tests = sum(map(nodes, (ROOT / "tests").rglob("*.py")))
    for room, count in rooms.most_common():
        print(f"{room:<12} {count:8,}")
    print(
        f"stub_server: {rooms.total():,} nodes, {rooms.total() - apart:,} without"
        f" {', '.join(APART)}; tests: {tests:,} nodes"
    )


def nodes(file: Path) -> int:
    """The nodes of a file."""
    return sum(1 for _ in ast.walk(ast.parse(file.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
