"""A schemathesis extension: what an import is given to be accepted is a file that the same server has exported."""

import os
from functools import cache

import httpx2
import schemathesis
from hypothesis import strategies as st

from stub_server.files.package import MEDIA


@cache
def file() -> bytes:
    """The sandbox as a file."""
    return httpx2.get(f"{os.environ['SANDBOX_URL']}/_sandbox/export", timeout=30).raise_for_status().content


schemathesis.openapi.media_type(MEDIA, st.builds(file))
