"""Which tests are asked about a change, the likeliest to notice it first."""

from pathlib import Path

_NAMED = {
    "analytics": ("analytics", "every_refusal"),
    "api_keys": ("own_keys", "key_life", "key_escalation", "every_conflict", "lists/test_lists"),
    "attempts": ("unit/test_deliveries", "webhook_life", "deliveries", "at_least_once", "delivery_faults"),
    "billing": ("order_life", "subscription_life", "renewals", "seats", "archive", "standstill", "subscription_shown"),
    "boleto": ("boleto",),
    "brcode": ("brcode", "pix_codes"),
    "calendar": ("calendar",),
    "charges": ("order_life", "test_orders", "renewals", "journeys/test_clock", "test_settings"),
    "customers": ("test_updates", "every_conflict", "every_refusal", "test_orders", "lists/test_lists"),
    "deliveries": ("unit/test_deliveries", "webhook_life", "deliveries", "test_sending", "lists/test_lists"),
    "difference": ("rewind", "snapshots", "as_of", "folding"),
    "documents": ("unit/test_documents", "every_refusal"),
    "draft": ("test_draft", "test_events", "test_defects"),
    "jobs": ("archive", "renewals", "deliveries", "standstill", "key_life", "advancing"),
    "journal": ("unit/test_journal", "journeys/test_requests", "recording"),
    "lifecycle": ("project_life", "order_life"),
    "log": ("test_log", "test_bounds", "test_steps", "surfaces/test_store"),
    "orders": (
        "test_orders",
        "order_life",
        "lists/test_lists",
        "renewals",
        "every_conflict",
        "every_refusal",
        "test_events",
    ),
    "past": ("as_of", "rewind", "travel"),
    "payments": ("order_life", "test_orders", "brcode"),
    "places": ("places", "contacts", "test_orders"),
    "plans": ("test_plans", "seats", "lists/test_lists", "every_refusal"),
    "products": ("test_products", "product_list", "lists/test_lists", "every_refusal"),
    "projects": ("project_life", "statistics", "every_conflict", "test_updates", "lists/test_lists", "every_refusal"),
    "qr": ("qr", "pictures"),
    "receivers": ("webhook_life", "journeys/test_deliveries", "delivery_faults"),
    "replies": ("unit/test_replies", "idempotency", "test_bounds"),
    "resources": ("test_events", "archive", "test_updates", "webhook_life", "every_refusal"),
    "restoring": ("rewind", "snapshots", "folding"),
    "rewinding": ("rewind", "snapshots", "at_once"),
    "samples": ("test_webhooks", "event_trigger"),
    "sandbox": (
        "test_sandbox",
        "clock_controls",
        "public_bind",
        "merchants",
        "test_bounds",
        "test_defects",
        "rewind",
        "folding",
        "test_command",
    ),
    "sandbox_certificates": ("journeys/test_certify",),
    "sandbox_clock": ("clock_controls", "journeys/test_clock"),
    "sandbox_events": ("test_events", "event_trigger", "event_feed", "list_queries"),
    "sandbox_faults": ("journeys/test_faults", "delivery_faults"),
    "sandbox_files": ("journeys/test_files", "carried_snapshots", "bad_files"),
    "sandbox_history": ("test_steps", "rewind"),
    "sandbox_inbox": ("test_inbox",),
    "sandbox_journal": ("journeys/test_requests", "requests_command", "recording"),
    "sandbox_orders": ("order_life", "pix_codes"),
    "sandbox_qr": ("pictures",),
    "sandbox_snapshots": ("snapshots",),
    "sandbox_stream": ("test_stream",),
    "sandbox_subscriptions": ("subscription_life", "renewals"),
    "sandbox_webhooks": ("held_deliveries", "webhook_life", "deliveries", "test_sending"),
    "sandbox_worlds": ("journeys/test_sandboxes", "surfaces/test_worlds"),
    "scheduler": ("unit/test_sandbox", "clock_controls", "journeys/test_clock", "standstill", "advancing"),
    "standstill": ("standstill",),
    "stats": ("statistics",),
    "step": ("test_log", "test_draft", "test_steps", "folding"),
    "subscriptions": ("subscription_life", "subscription_shown", "lists/test_lists", "renewals", "standstill"),
    "usage": ("own_keys",),
    "webhooks": ("webhook_life", "test_webhooks", "deliveries", "lists/test_lists", "every_refusal"),
}
"""Parts of the paths of test files that are about a module, quick ones first; else the module's own name is one."""
_THEN = (
    ("journeys", "lists"),
    ("unit", "engine"),
    ("properties/test_model.py", "properties/test_scenarios.py", "properties/test_believable.py"),
    ("surfaces",),
)
_NEVER = ("test_docs", "test_schemathesis", "test_front_page_seen", "test_deadlines", "test_hostile")
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
