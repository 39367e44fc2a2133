"""Every error code: its kind, the rule behind it, and the repair of a request that was refused with it."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from . import repairs
from .attempt import Attempt, Situation

Repair = Callable[[Situation], Iterator[Attempt]]
AUTH, CONTRACT, RULE, REFERENCE, FAULT = "auth", "contract", "rule", "reference", "fault"


class Kind(NamedTuple):
    """`repair` is None where nothing is changed but what every attempt has: the ready token, and no simulation.

    `is_listed` says that a nearest request is looked for; `text` is the rule, or why there is no repair.
    """

    kind: str
    text: str
    repair: Repair | None = None
    is_listed: bool = True


_CREDENTIAL = "Every request carries a credential that is valid, may be used from here and has the operation's scopes."
_STATE = "A record changes its state only as the contract's lifecycle allows."

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        # who sends it
        "missing_credentials": Kind(AUTH, _CREDENTIAL),
        "invalid_token": Kind(AUTH, _CREDENTIAL),
        "token_expired": Kind(AUTH, "A token is valid until its exp, by the machine's clock."),
        "api_key_inactive": Kind(AUTH, "An inactive API key is rejected."),
        "insufficient_scope": Kind(AUTH, "The credential must have every scope of the operation."),
        "jwt_required": Kind(AUTH, "API keys are managed with a JWT."),
        "scope_escalation": Kind(AUTH, "A caller gives API keys only scopes that the caller has."),
        "ip_not_allowed": Kind(AUTH, "An API key with allowed_ips works from those addresses only."),
        "project_not_allowed": Kind(AUTH, "An API key with allowed_projects works for those projects only."),
        "host_not_allowed": Kind(AUTH, "On loopback the Host header names this machine."),
        "delivery_not_allowed": Kind(AUTH, "Webhook deliveries to this server are accepted by inboxes only."),
        # what the contract accepts
        "malformed_request": Kind(CONTRACT, "Headers and query are readable and ask for what the operation supports."),
        "malformed_json": Kind(CONTRACT, "A body is JSON.", repairs.as_json),
        "unsupported_media_type": Kind(CONTRACT, "A body is declared as application/json, in UTF-8.", repairs.as_json),
        "validation_error": Kind(CONTRACT, "Query, headers and body fit the operation's schemas.", repairs.mended),
        "metadata_key_invalid": Kind(
            CONTRACT, "A key of a free map has 1 to 64 characters and no NUL.", repairs.keys_that_fit
        ),
        "route_not_found": Kind(CONTRACT, "The contract lists every path.", repairs.another_route),
        "method_not_allowed": Kind(CONTRACT, "The contract names a path's methods."),
        # what it refers to
        "not_found": Kind(REFERENCE, "The path names a record that the caller sees."),
        "reference_not_found": Kind(
            REFERENCE, "The body refers to records that exist and belong together.", repairs.another_record
        ),
        "merchant_not_found": Kind(REFERENCE, "A public key finds its merchant while it is active."),
        "sandbox_not_found": Kind(REFERENCE, "A path below /s/ names a sandbox that exists."),
        # what the rules allow
        "duplicate_document": Kind(RULE, "A document belongs to one customer of a merchant.", repairs.free_value),
        "duplicate_name": Kind(
            RULE, "Projects of a merchant, and plans of a project, differ in name.", repairs.free_value
        ),
        "duplicate_sku": Kind(RULE, "Products of a project differ in SKU.", repairs.free_value),
        "duplicate_url": Kind(RULE, "Webhooks of a merchant differ in address and project.", repairs.free_value),
        "document_type_conflict": Kind(
            RULE, "document_type and type agree with the document.", repairs.agreeing_type
        ),
        "api_key_expired": Kind(RULE, "An expired API key cannot be active.", repairs.later_expiry),
        "invalid_state_transition": Kind(RULE, _STATE, repairs.possible_move),
        "project_not_active": Kind(RULE, "Only an active project takes orders.", repairs.active_project),
        "project_archived": Kind(RULE, "An archived project cannot be changed.", repairs.another_record),
        "project_has_activity": Kind(
            RULE, "A project with paid or open orders or running subscriptions cannot be deleted, only archived."
        ),
        "plan_not_active": Kind(RULE, "An inactive plan takes no orders.", repairs.changed_plan),
        "plan_sold_out": Kind(RULE, "A plan has at most max_subscribers subscribers.", repairs.changed_plan),
        "amount_mismatch": Kind(
            RULE, "Where amounts are strict, the items of an order add up to its total.", repairs.total_of_items
        ),
        "plan_in_use": Kind(
            RULE, "A plan with subscribers keeps its interval. With subscribers or open orders it cannot be deleted.",
            repairs.kept_members,
        ),
        "payment_method_not_allowed": Kind(
            RULE, "An order is paid by one of its plan's payment_methods.", repairs.changed_plan
        ),
        "webhook_limit": Kind(RULE, "A merchant has at most 20 webhooks.", None, False),
        "webhook_deleted": Kind(RULE, "A delivery is sent only if its webhook exists."),
        "log_not_retryable": Kind(RULE, "A cancelled delivery is not sent again."),
        "idempotency_key_reused": Kind(RULE, "An Idempotency-Key belongs to one request.", repairs.another_key),
        "step_not_kept": Kind(RULE, "Only a state that is stored can be read or restored."),
        "idempotency_in_progress": Kind(RULE, "One request at a time is processed with an Idempotency-Key."),
        # what the control surface does to orders
        "order_already_paid": Kind(RULE, "An order can be paid once.", repairs.payable_order),
        "order_not_payable": Kind(
            RULE, "Only an open order can be paid, in full and before it expires.", repairs.payable_order
        ),
        "order_not_refundable": Kind(RULE, "Only a paid order can be refunded.", repairs.refundable_order),
        "refund_exceeds_amount": Kind(RULE, "No more is refunded than was paid.", repairs.smaller_refund),
        "refund_window_closed": Kind(RULE, "A payment can be refunded within 90 days.", repairs.refundable_order),
        "failure_code_not_applicable": Kind(
            RULE, "A payment fails with a code of its payment method.", repairs.failure_of_method
        ),
        # what was simulated, or is over by now
        "rate_limited": Kind(FAULT, "A caller sends a limited number of requests (--rate-limit). Send it again later."),
        "simulated_fault": Kind(FAULT, "The sandbox was asked to fail. Send the same request without the fault."),
        "request_timeout": Kind(FAULT, "A request must arrive in time. Send it again."),
        "too_many_connections": Kind(FAULT, "A server has a limited number of connections. Send it again later."),
        "internal_error": Kind(FAULT, "A defect: its cause is in the server's log.", None, False),
        # without a repair
        "payload_too_large": Kind(CONTRACT, "A body has at most 1 MiB. A larger one is not stored.", None, False),
        "uri_too_long": Kind(CONTRACT, "A target has less than 64 KiB. A longer one is not stored.", None, False),
        "headers_too_large": Kind(CONTRACT, "Headers have at most 64 KiB. Larger ones are not stored.", None, False),
        "not_implemented": Kind(RULE, "The operation, method or transfer coding is not supported.", None, False),
        "http_version_not_supported": Kind(CONTRACT, "Requests are HTTP/1.1 or HTTP/1.0.", None, False),
        "sandbox_unavailable": Kind(RULE, "A broken sandbox serves no requests until it is reset.", None, False),
        "store_unavailable": Kind(RULE, "The store cannot be written: its disk may be full.", None, False),
        "server_stopping": Kind(RULE, "A server that is stopping is not ready. Send it again later.", None, False),
        "admin_key_required": Kind(AUTH, "The control surface requires the admin key.", None, False),
    }
)  # fmt: skip
"""By error code. Of the control surface only requests about orders and subscriptions are repaired."""
