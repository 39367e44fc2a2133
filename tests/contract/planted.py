"""The server with a defect of behaviour that keeps every schema: `python -m tests.contract.planted NAME serve …`."""

import sys
from collections.abc import Callable
from typing import Any

from stub_server.calls import reply
from stub_server.cli import main
from stub_server.engine import billing
from stub_server.operations import customers, plans, projects


def forgetting(module: Any, name: str) -> None:
    """The operation answers as if it had done its work, and writes nothing."""
    right = getattr(module, name)

    def forgotten(call: Any, *values: Any, **arguments: Any) -> Any:
        answer = right(call, *values, **arguments)
        call.forget_draft()
        return answer

    setattr(module, name, forgotten)


def delete_nothing() -> None:
    plans.delete_plan = lambda call, ident: (plans.get_plan(call, ident), reply.message("Plan deleted."))[1]


def lose_creates() -> None:
    forgetting(projects, "create_project")


def lose_updates() -> None:
    forgetting(customers, "update_customer")


def ignore_filter() -> None:
    right = plans.list_plans
    plans.list_plans = lambda call, query: right(call, {k: v for k, v in query.items() if k != "status"})


def pay_twice() -> None:
    right: Any = billing.pay

    def pay(draft: Any, row: Any, *how: Any, **options: Any) -> Any:
        if row.public["status"] == "paid":
            row.public["status"] = "pending"
        return right(draft, row, *how, **options)

    billing.pay = pay


def suspend_archived() -> None:
    module: Any = projects
    right = module.move

    def lenient(lifecycle: Any, before: str, to: str) -> Any:
        return right(lifecycle, "active" if (before, to) == ("archived", "suspended") else before, to)

    module.move = lenient


DEFECTS: dict[str, Callable[[], None]] = {
    defect.__name__: defect
    for defect in (delete_nothing, lose_creates, lose_updates, ignore_filter, pay_twice, suspend_archived)
}

if __name__ == "__main__":
    DEFECTS[sys.argv[1]]()
    main(sys.argv[2:])
