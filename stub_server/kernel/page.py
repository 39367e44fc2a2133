"""Pagination: one page of a list, and the Pagination object that describes it."""

from dataclasses import dataclass

from .record import Body


@dataclass(frozen=True, slots=True)
class Page:
    """Page `page` of `limit` rows out of `total`."""

    page: int
    limit: int
    total: int

    @property
    def pages(self) -> int:
        """How many pages there are."""
        return -(-self.total // self.limit)

    def body(self) -> Body:
        """The contract's Pagination object."""
        return {
            "page": self.page,
            "limit": self.limit,
            "total": self.total,
            "total_pages": self.pages,
            "has_next": self.page < self.pages,
            "has_prev": self.page > 1 and self.pages > 0,
        }

    def json(self) -> bytes:
        """The Pagination object as JSON text."""
        page, pages = self.page, self.pages
        return b'{"page":%d,"limit":%d,"total":%d,"total_pages":%d,"has_next":%b,"has_prev":%b}' % (
            page,
            self.limit,
            self.total,
            pages,
            b"true" if page < pages else b"false",
            b"true" if page > 1 and pages > 0 else b"false",
        )
