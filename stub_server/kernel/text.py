"""Folds case and accents of text, for searching and comparing."""

import unicodedata
from functools import lru_cache


@lru_cache(maxsize=8192)
def search_key(text: str) -> str:
    """Text without case and accents, for `contains` filters and unique names."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join([c for c in decomposed if not unicodedata.combining(c)])
