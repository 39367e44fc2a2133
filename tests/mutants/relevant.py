"""Which tests are asked about a change, the likeliest to notice it first."""

from pathlib import Path

_NAMED = {
    "analytics": ("analytics",),
    "api_keys": ("own_keys", "key_escalation", "every_conflict"),
    "attempts": ("deliveries", "webhook_life"),
    "billing": ("order_life", "subscription_life", "renewals"),
    "boleto": ("boleto",),
    "brcode": ("brcode",),
    "calendar": ("calendar",),
    "charges": ("order_life", "test_orders", "renewals"),
    "customers": ("test_updates", "every_conflict", "lists/test_lists"),
    "deliveries": ("deliveries", "webhook_life"),
    "documents": ("unit/test_documents", "every_refusal"),
    "draft": ("draft", "test_events"),
    "jobs": ("archive", "renewals", "deliveries"),
    "lifecycle": ("project_life",),
    "log": ("test_log",),
    "past": ("scenario_files",),
    "payments": ("order_life", "test_orders", "brcode"),
    "products": ("test_products", "product_list"),
    "qr": ("qr",),
    "resources": ("test_events", "archive"),
    "samples": ("test_webhooks",),
    "sandbox": ("test_sandbox", "journeys/test_sandboxes"),
    "sandbox_clock": ("clock_controls", "journeys/test_clock"),
    "sandbox_events": ("test_events", "list_queries"),
    "sandbox_orders": ("order_life",),
    "sandbox_qr": ("pictures",),
    "sandbox_subscriptions": ("subscription_life",),
    "sandbox_worlds": ("journeys/test_sandboxes", "surfaces/test_worlds"),
    "scheduler": ("unit/test_sandbox", "clock_controls", "journeys/test_clock", "standstill"),
    "standstill": ("standstill",),
    "stats": ("statistics",),
    "step": ("test_log", "test_draft"),
    "subscriptions": ("subscription_life", "subscription_shown", "lists/test_lists", "renewals"),
    "usage": ("own_keys",),
    "webhooks": ("webhook_life", "test_webhooks", "deliveries", "lists/test_lists"),
}
"""Parts of the paths of test files that are about a module, quick ones first; else the module's own name is one."""
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
    words = _NAMED.get(stem, (stem.removeprefix("sandbox_").removesuffix("s"),))
    files = [file for file in sorted(tests.rglob("test_*.py")) if not any(word in file.name for word in _NEVER)]
    quick = [file for file in files if "properties" not in file.parts]
    named = list(dict.fromkeys(file for word in words for file in quick if word in file.as_posix()))
    # Every operation once: quick, and what breaks outright is noticed there.
    first = tests / "journeys" / "test_every_success.py"
    groups = [[first, *(file for file in named if file != first)]]
    for places in _THEN:
        asked = {file for group in groups for file in group}
        inside = [file for place in places for file in files if tests / place in (file, *file.parents)]
        groups.append([file for file in inside if file not in asked])
    return [[file.relative_to(tests.parent).as_posix() for file in group] for group in groups if group]
