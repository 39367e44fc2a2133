"""One attempt to deliver: sign, post, and describe the outcome."""

from collections import Counter
from email.utils import parsedate_to_datetime
from pathlib import Path
from time import perf_counter_ns

from ..core.clock import SECOND, wall_ms
from ..core.signing import HeaderPairs
from ..domain.deliveries import AttemptOutcome, Delivery, Failed, error_of, kept_headers


class Sender:
    """How deliveries leave this server. `local` allows this machine and private networks.

    `cacert` is a file of certificate authorities that are trusted besides the usual ones.
    `results` counts the attempts by error, `delivered` for those without. One that is `mute` sends
    nothing: its attempts end as if nobody listened.
    """

    def __init__(self, *, local: bool, cacert: Path | None = None, mute: bool = False) -> None:
        self.local, self.cacert, self.is_mute = local, cacert, mute
        self.results: Counter[str] = Counter()

    async def attempt(
        self, delivery: Delivery, timeout: float, at: int | None = None
    ) -> AttemptOutcome:
        """Post once and wait for the answer. Redirects are not followed; failures of the other side
        are outcomes.

        The timestamp is `at`, or the machine's, whatever the sandbox clock shows: receivers reject
        one that is minutes off.
        """
        if self.is_mute:
            return AttemptOutcome.lost()
        now = at or wall_ms()
        signature, headers = delivery.signed(now)
        begun = perf_counter_ns()
        status: int | None = None
        received: dict[str, str] = {}
        body = None
        try:
            status, received, body = await self._exchange(delivery, headers, timeout)
            error = error_of(status)
        except Failed as failed:
            error = str(failed)
        self.results[error or "delivered"] += 1
        return AttemptOutcome(
            status=status,
            body=body,
            response_headers=received,
            duration_ms=(perf_counter_ns() - begun) // 1_000_000,
            error=error,
            request_headers=kept_headers(headers),
            signature=signature,
            retry_after=retry_after(received.get("retry-after"), now),
        )

    async def ask(self, url: str, timeout: float) -> str:
        """GET once: the first bytes of what is answered with 200. Raises Failed."""
        if self.is_mute:
            raise Failed("nothing is sent")
        question = Delivery(url, "", b"", (), (), method="GET")
        status, _, text = await self._exchange(question, [], timeout)
        if status != 200:
            raise Failed(f"status {status}")
        return text

    async def _exchange(
        self, delivery: Delivery, headers: HeaderPairs, timeout: float
    ) -> tuple[int, dict[str, str], str]:
        """Raises Failed."""
        from .network import beside, exchange  # not needed by a server that sends nothing

        sent = exchange(delivery, headers, timeout, local=self.local, cacert=self.cacert)
        return await beside(sent)


def retry_after(text: str | None, now: int) -> int | None:
    """What a receiver asks for, seconds or an HTTP date, in ms from `now`; None for neither."""
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return int(text[:9]) * SECOND
    try:
        return max(0, round(parsedate_to_datetime(text).timestamp() * SECOND) - now)
    except (ValueError, OverflowError):
        return None
