"""Globs: patterns of texts with `*` for any characters and `?` for one, in time that grows with the text alone."""

LONGEST = 1_024
"""Characters of a text that are looked at: a hundred globs over a long header would hold up everybody."""


def glob(pattern: str, text: str) -> bool:
    """Whether a text fits a pattern.

    Not by a regular expression: compiling one costs whoever sends another pattern each time a hundred times as much.
    """
    text = text[:LONGEST]
    first, *others = pattern.split("*")
    if not others:
        return len(text) == len(first) and _is_at(first, text, 0)
    last = others.pop()
    at, end = len(first), len(text) - len(last)
    if at > end or not _is_at(first, text, 0) or not _is_at(last, text, end):
        return False
    for piece in others:  # the first place of each is as good as any later one
        at = _after(piece, text, at, end)
        if at < 0:
            return False
    return True


def _is_at(piece: str, text: str, at: int) -> bool:
    if "?" not in piece:
        return text.startswith(piece, at)
    return all(wanted in ("?", found) for wanted, found in zip(piece, text[at : at + len(piece)], strict=True))


def _after(piece: str, text: str, start: int, end: int) -> int:
    """Where the first place of a piece between two positions ends; -1 without any."""
    if "?" not in piece:
        found = text.find(piece, start, end)
        return found if found < 0 else found + len(piece)
    # Every beginning of the piece that ends at a character is a bit (Baeza-Yates and Gonnet, 1992: shift-and).
    everywhere = sum(1 << place for place, wanted in enumerate(piece) if wanted == "?")
    places: dict[str, int] = {}
    for place, wanted in enumerate(piece):
        if wanted != "?":
            places[wanted] = places.get(wanted, everywhere) | 1 << place
    open_, whole = 0, 1 << len(piece) - 1
    for place in range(start, end):
        open_ = (open_ << 1 | 1) & places.get(text[place], everywhere)
        if open_ & whole:
            return place + 1
    return -1
