"""Laws of many things, each one test that names all the things that break it."""

from collections.abc import Callable, Iterable
from typing import Any


def every(cases: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Have a test look at all of these: each is its argument, or its arguments if it is a tuple."""

    def decorate(law: Callable[..., None]) -> Callable[[], None]:
        def test() -> None:
            broken = []
            for case in cases:
                try:
                    law(*(case if isinstance(case, tuple) else (case,)))
                except AssertionError as error:
                    broken.append(f"{case}: {error}")
            assert not broken, "\n".join(broken)

        test.__name__ = law.__name__
        test.__qualname__ = law.__qualname__
        test.__doc__ = law.__doc__
        return test

    return decorate
