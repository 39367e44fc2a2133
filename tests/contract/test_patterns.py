"""Patterns beside formats of ours accept what the format accepts: generators that know no format
use them.
"""

import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stub_server.contract.formats import is_ip_network
from stub_server.domain.documents import is_document_unchecked

from ..support.contract import document
from . import pack

import sandbox_formats as formats  # isort: skip - found where the pack is

pytestmark = pytest.mark.check

assert pack.PACK.is_dir()

SCHEMAS = document().raw["components"]["schemas"]
NETWORK = re.compile(SCHEMAS["IpNetwork"]["pattern"].removesuffix("$") + r"\Z")
# Without what `not` excludes: as one pattern, which may look ahead where one of the contract does
# not.
DOCUMENT = re.compile(
    f"(?!{SCHEMAS['Document']['not']['pattern'].removesuffix('$')}\\Z)"
    f"{SCHEMAS['Document']['pattern'].removesuffix('$')}\\Z"
)
GROUPS = st.sampled_from(["", "0", "1", "ab", "FFFF", "1.2.3.4", "1.2.3.256", "12345"])
ADDRESSES = st.one_of(
    st.ip_addresses().map(str),
    st.lists(GROUPS, max_size=9).map(":".join),
    st.text("0aF:.", max_size=9),
)
SUFFIXES = st.sampled_from(
    ["", "/0", "/00", "/7", "/32", "/33", "/128", "/129", "/255.255.0.0", "/", "/a", "/1/2"]
)


@pytest.mark.parametrize(
    ("pattern", "accepts"),
    [(NETWORK, is_ip_network), (DOCUMENT, is_document_unchecked)],
    ids=["network", "document"],
)
@given(data=st.data())
@settings(max_examples=150)
def test_what_a_pattern_makes_the_format_accepts(
    pattern: re.Pattern[str], accepts: Callable[[str], bool], data: st.DataObject
) -> None:
    text = data.draw(st.from_regex(pattern, fullmatch=True))
    assert accepts(text)


@given(st.builds(str.__add__, ADDRESSES, SUFFIXES))
@settings(max_examples=500)
def test_addresses_and_networks_are_those_of_the_pattern(text: str) -> None:
    assert (NETWORK.match(text) is not None) == is_ip_network(text)


@given(formats.documents(), formats.networks())
def test_what_our_generators_make_fits_the_patterns(made: str, network: str) -> None:
    assert DOCUMENT.match(made) is not None
    assert NETWORK.match(network) is not None


@given(st.text("0129aZ.-/ ", max_size=24))
@settings(max_examples=500)
def test_documents_are_those_of_the_pattern(text: str) -> None:
    """As long as their check digits are not asked for."""
    assert (DOCUMENT.match(text) is not None) == is_document_unchecked(text)
