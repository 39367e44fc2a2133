"""Lines of files from strangers: how much is in one is known before it is read, whatever stands in it."""

import pytest

from stub_server.files import package

_LISTS = b"[" * package.MOST_VALUES


# Of a text that does not close, one search from each of its quotes would go over 10^12 bytes.
@pytest.mark.parametrize("end", [b"", b"\\", b"["])
def test_a_text_that_does_not_close_is_gone_over_once(end: bytes) -> None:
    text = b'"' + b'\\"' * 1_900_000 + end
    assert package.is_readable(_LISTS + text)
    assert not package.is_readable(_LISTS + b"[" + text)


def test_what_stands_in_texts_begins_no_list() -> None:
    line = b'["' + _LISTS + b'\\"[", [], {"[": "\\\\"}]'
    assert package.is_readable(line)
    assert not package.is_readable(line + _LISTS)
