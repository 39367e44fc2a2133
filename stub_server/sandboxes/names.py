"""Names of sandboxes: what may be one, what is the same one, and what one is called that nobody has named."""

import re

from ..kernel.ids import named_uuid
from ..kernel.problem import Conflict, detail

NAMING = "1 to 63 of the characters a-z, 0-9, -, _ and ., the first and the last of them a letter or a digit"
is_name = re.compile(r"[a-z0-9](?:[a-z0-9_.-]{0,61}[a-z0-9])?").fullmatch


def folded(name: str) -> str:
    """A sandbox's name without capitals; other alphabets stay as they are, for some of their capitals fold to ours."""
    return name.lower() if name.isascii() else name


def too_many(most: int, who: str) -> Conflict:
    """409 where there are as many sandboxes as a server or a store keeps."""
    message = (
        f"There are {most} sandboxes, the most that a {who} keeps. DELETE /_sandbox/sandboxes/NAME frees one, and one "
        "that is made with ttl_seconds frees itself."
    )
    return Conflict(message, code="too_many_sandboxes", details=[detail("name", "too_many_sandboxes", message)])


def made_up(prefix: str, number: int) -> str:
    """A name for a sandbox that was given none: the prefix and eight letters."""
    digits = named_uuid(prefix, str(number))[:8]
    return f"{prefix}-{digits.translate(str.maketrans('0123456789', 'ghijklmnop'))}"
