"""Values that must differ, such as names and documents: one like a given one that no record has yet."""

from __future__ import annotations

from hashlib import sha256
from itertools import count, islice

from ..domain.documents import cnpj_with_check_digits, cpf_with_check_digits, normalise
from ..store.memory import Store

MOST = 1_000  # values that are tried
_LONGEST_NAME, _LONGEST_URL = 110, 2_000


def document(store: Store, like: str) -> str | None:
    """A valid document of the same kind that no customer has."""
    sent = normalise(like)
    for number in islice(count(), MOST):
        digits = f"{int.from_bytes(sha256(f'{sent}/{number}'.encode()).digest()[:8], 'big'):020d}"
        try:
            made = cnpj_with_check_digits(digits[:8] + "0001") if len(sent) == 14 else cpf_with_check_digits(digits[:9])
        except ValueError:
            continue
        if len(sent) not in (11, 14):  # a passport
            made = "X" + digits[:8]
        if store.customers.holder("document", made) is None:
            return made
    return None


def name(store: Store, like: str, project_id: str | None) -> str | None:
    """A name with a number behind it: of a plan of a project, or of a project itself."""
    table = store.projects if project_id is None else store.plans
    for number in range(2, MOST):
        made = f"{like[:_LONGEST_NAME]} {number}"
        if table.is_free("name", {"name": made, "projectId": project_id}):
            return made
    return None


def address(store: Store, like: str, project_id: str | None) -> str | None:
    """An address with a query behind it that no webhook has for the project."""
    for number in range(2, MOST):
        made = f"{like[:_LONGEST_URL]}{'&' if '?' in like else '?'}receiver={number}"
        if store.webhooks.is_free("url", {"url": made, "projectId": project_id}):
            return made
    return None
