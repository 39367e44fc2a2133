"""What several records share of their hidden parts: written once, read back once."""

import orjson
import pytest

from stub_server.kernel.record import Record
from stub_server.store.table import parted, whole, written

PAYLOAD = '{"type":"order.paid","name":"Conceição"}'.encode()


@pytest.mark.parametrize("others", [{}, {"serial": 3, "attempts": [{"number": 1}]}])
def test_a_hidden_part_leaves_as_one_json_and_comes_back(others: dict[str, object]) -> None:
    parts = written(others | {"request_body": PAYLOAD}, "request_body")
    assert (orjson.dumps(others), PAYLOAD) == parts
    assert PAYLOAD is parts[1]
    text_ = whole("webhook_logs", Record("a", 1, 1, b"{}", *parts))
    assert others | {"request_body": PAYLOAD.decode()} == orjson.loads(text_)
    assert parts == parted("webhook_logs", text_, {})


def test_other_tables_share_nothing() -> None:
    record = Record("a", 1, 1, b"{}", b'{"request_body":"x"}')
    assert record.hidden is whole("orders", record)
    assert (record.hidden, b"") == parted("orders", record.hidden, {})


def test_equal_members_that_are_read_are_one() -> None:
    known: dict[bytes, bytes] = {}
    texts = [orjson.dumps({"serial": number, "request_body": PAYLOAD.decode()}) for number in range(2)]
    first, second = (parted("webhook_logs", text, known)[1] for text in texts)
    assert first is second


@pytest.mark.parametrize("hidden", [b"{}", b'{"request_body":1}'])
def test_a_part_without_its_text_is_refused(hidden: bytes) -> None:
    with pytest.raises((KeyError, AttributeError)):
        parted("webhook_logs", hidden, {})
