"""Examples belong together: an answer's is that of the request with the same name."""

import pytest

from ..support.contract import document


@pytest.mark.parametrize("entry", ["openapi.yaml", "sandbox.yaml"])
def test_every_answer_example_has_the_name_of_a_request_example(entry: str) -> None:
    contract, alone = document(entry), {}
    for operation in contract.operations.values():
        sent = _names(contract.resolve(operation.raw.get("requestBody") or {}))
        for status in operation.successes:
            answered = _names(contract.resolve(operation.raw["responses"][str(status)]))
            if sent and answered - sent:
                alone[operation.id] = answered - sent
    assert {} == alone


def _names(message: dict[str, dict[str, dict[str, object]]]) -> set[str]:
    media = message.get("content", {}).get("application/json", {})
    examples = media.get("examples", {})
    return set(examples) if isinstance(examples, dict) else set()
