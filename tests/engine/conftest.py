"""A server with small bounds."""

from collections.abc import Iterator

import pytest

from .inside import Inside
from .small import small_server


@pytest.fixture(scope="module")
def inside() -> Iterator[Inside]:
    """A server with small bounds, and a caller."""
    with small_server() as app:
        caller = Inside(app)
        yield caller
        caller.close()
