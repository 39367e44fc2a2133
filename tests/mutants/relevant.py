"""Which tests are asked about a change, the likeliest to notice it first."""

from pathlib import Path

_NAMED = {
    "api_keys": ("key", "own_keys"),
    "attempts": ("deliver", "webhook"),
    "billing": ("renewals", "subscription_life", "order_life"),
    "boleto": ("boleto", "order"),
    "brcode": ("brcode", "qr"),
    "calendar": ("calendar", "renewals", "clock"),
    "charges": ("order_life", "renewals", "orders"),
    "clock": ("clock",),
    "deliveries": ("deliver", "webhook"),
    "documents": ("documents",),
    "draft": ("draft", "folding", "defects"),
    "jobs": ("renewals", "archive", "clock", "deliver"),
    "lifecycle": ("lifecycles", "project_life"),
    "log": ("test_log", "folding", "bounds"),
    "past": ("believable", "scenarios"),
    "payments": ("order", "brcode"),
    "qr": ("qr",),
    "resources": ("events", "archive", "key"),
    "samples": ("webhook",),
    "sandbox": ("folding", "sandboxes", "test_sandbox"),
    "sandboxes": ("sandboxes", "worlds"),
    "scheduler": ("clock", "timers", "standstill"),
    "standstill": ("standstill",),
    "stats": ("statistics",),
    "step": ("folding",),
    "usage": ("key", "folding"),
    "world": ("sandboxes", "worlds"),
}
"""Words in the names of test files that are about a module; without an entry the module's own name is one."""
_THEN = (
    ("journeys", "lists"),
    ("unit", "engine"),
    ("properties/test_model.py", "properties/test_scenarios.py", "properties/test_believable.py"),
    ("surfaces",),
)
_NEVER = ("test_readme", "test_schemathesis", "test_front_page_seen", "test_deadlines", "test_hostile")
"""Slow, and about something else."""


def stages(tests: Path, module: str) -> list[list[str]]:
    """Test files in groups; a later group is asked only when no earlier one has noticed."""
    stem = module.rpartition("/")[2].removesuffix(".py")
    words = _NAMED.get(stem, (stem.removesuffix("s"),))
    files = [file for file in sorted(tests.rglob("test_*.py")) if not any(word in file.name for word in _NEVER)]
    named = [file for file in files if any(word in file.name for word in words) and "properties" not in file.parts]
    # Documented operations in their full breadth: quick, and they touch nearly every module.
    broad = [tests / "journeys" / "test_every_success.py", tests / "journeys" / "test_documented.py"]
    groups = [[*named, *(file for file in broad if file not in named)]]
    for places in _THEN:
        asked = {file for group in groups for file in group}
        inside = [file for place in places for file in files if tests / place in (file, *file.parents)]
        groups.append([file for file in inside if file not in asked])
    return [[file.relative_to(tests.parent).as_posix() for file in group] for group in groups if group]
