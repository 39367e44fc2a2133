"""Text for comparing and showing: folding away case and accents."""

import unicodedata
from functools import lru_cache


@lru_cache(maxsize=8192)
def search_key(text: str) -> str:
    """Text for `contains` and for unique names: without case and accents."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join([c for c in decomposed if not unicodedata.combining(c)])
