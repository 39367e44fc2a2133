"""The pages of the guide: which files they are, at which addresses, and what a search finds in
them.

Nothing is read before the first page is asked for; then every page is rendered, once.
"""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from html import escape
from pathlib import Path
from posixpath import dirname, join, normpath
from threading import Lock
from typing import NamedTuple
from weakref import finalize

from ...contract.source import read
from ...core.text import without_accents
from .markdown import Section, parsed, relinked, rendered, sections, without_pictures

_INDEX = "docs/README.md"
_LONGEST_NAME = 64  # characters of an address that is none, which may be a word of a heading
_BESIDE = {
    "README.md": "about",
    "SECURITY.md": "security",
    "CHANGELOG.md": "changelog",
    "fixtures/scenarios/README.md": "scenarios",
}
"""Files elsewhere that pages refer to, with their addresses."""
_ASKING = re.compile(
    "a|about|an|and|are|be|can|could|do|does|exists?|for|from|get|has|have|how|i|if|in|into|is|it|list|many|me|my"
    "|of|often|on|one|or|our|should|so|that|the|their|there|this|to|was|we|were|what|when|where|which|who|why|will|with"
    "|would|you|your"
    "|as|ao|com|como|da|das|de|do|dos|e|em|eu|faco|faço|foi|meu|minha|na|no|o|os|ou|para|por|quais|qual|quando|que|se|ser|um|uma",
    re.IGNORECASE,
).fullmatch
"""Words of questions, which a search leaves out."""
_ENDING = re.compile(r"(?<!\W)(\Ws)?\W*$")  # what a word of a question ends with: `'s`, marks
_TARGET = re.compile(r"\]\(([^)#]+)[^)]*\)")  # of a link, without its fragment
_PICTURES = "docs/pictures/"
_MOST = 20  # results
_SHORT = 2  # letters of a word that is not taken for the beginning of one
# Marks around the words that were found: no text has them.
_FROM, _TO = "\1", "\2"


class Page(NamedTuple):
    """One page. `address` is what follows `/guide/`, empty for the index."""

    address: str
    title: str
    html: str
    sections: list[Section]


class Entry(NamedTuple):
    """A page beside the guide, `/docs/NAME`, that a search finds and names lead to; `summary` is
    another name of it.
    """

    name: str
    kind: str
    text: str
    summary: str = ""

    def has(self, words: list[str]) -> bool:
        """Whether it has every word, in lower case."""
        text = f"{self.name} {self.kind} {self.text}".lower()
        return all(word in text for word in words)


class Result(NamedTuple):
    """A section that a search has found; `path` is that of the server. The words that were found
    stand between marks, which `marked` and `unmarked` turn into HTML and text."""

    path: str
    page: str
    heading: str
    excerpt: str


class Guide:
    def __init__(self, root: Path, entries: Sequence[Entry]) -> None:
        """`root` contains `docs/`. The names of `entries` lead to their pages."""
        self.entries, self._root, self._lock = entries, root, Lock()
        self.names = {entry.name for entry in entries}

    @property
    def pictures(self) -> Path:
        return self._root / _PICTURES

    @cached_property
    def pages(self) -> dict[str, Page]:
        return {page.address: page for page in map(self._page, self._addresses)}

    @cached_property
    def contents(self) -> list[tuple[str, list[Page]]]:
        """The pages as the index lists them: those to which a heading is the first to
        link as a whole.
        """
        found, met = [], {""}
        for part in self._source(_INDEX).split("\n## ")[1:]:
            listed = []
            for target in _TARGET.findall(part):
                address = self._addresses.get(normpath(join("docs", target)), "")
                if address not in met:
                    met.add(address)
                    listed.append(self.pages[address])
            if listed:
                found.append((part.partition("\n")[0], listed))
        return found

    def text(self, address: str, up: str) -> str:
        """A page as Markdown; its links lead to pages in Markdown, and begin with `up`."""
        name = next(name for name, each in self._addresses.items() if each == address)
        source = without_pictures(self._source(name))
        return relinked(source, partial(self._link, name, up, ending=".md"))

    def section(self, word: str) -> str | None:
        """The path of a section whose heading has a word, None where there is none."""
        word = word.replace("\0", " ").strip()[:_LONGEST_NAME].lower()
        for each in self.search(word) if word else ():
            if word in each.heading.lower():
                return each.path
        return None

    @cached_property
    def _addresses(self) -> dict[str, str]:
        folder = self._root / "docs"
        files = sorted(
            path for path in folder.rglob("*") if path.suffix in (".md", ".yml", ".yaml")
        )
        names = (path.relative_to(folder).as_posix() for path in files)
        return {
            f"docs/{name}": "" if name == "README.md" else name.removesuffix(".md")
            for name in names
        } | _BESIDE

    def _source(self, name: str) -> str:
        text = (self._root / name).read_text(encoding="utf-8")
        if name.endswith(".md"):
            return text
        return f"# {name.rpartition('/')[2]}\n\n```yaml\n{text}\n```\n"

    def _page(self, name: str) -> Page:
        address = self._addresses[name]
        up = "../" * (address.count("/") + 1 if address else 0)
        tokens = parsed(relinked(self._source(name), partial(self._link, name, up)))
        parts = sections(tokens)
        html = rendered(tokens, lambda ident: self.operation(ident, f"{up}docs/"))
        return Page(address, parts[0].heading, html, parts)

    def _link(self, name: str, up: str, target: str, ending: str = "") -> str | None:
        """The address of what a file links to, None for a file that is no page.

        A page's own has this ending.
        """
        if target.startswith(("https://", "http://", "#")):
            return target
        path, mark, place = target.partition("#")
        found = normpath(join(dirname(name), path))
        if found.startswith(_PICTURES):
            return f"{up}guide/{found.removeprefix('docs/')}"
        address = self._addresses.get(found)
        return (
            None if address is None else f"{up}guide{address and '/'}{address}{ending}{mark}{place}"
        )

    def operation(self, name: str, below: str = "") -> str | None:
        """The address of the page of an operation, error code or event, None for other words."""
        return f"{below}{name}" if name in self.names else None

    # -- search

    def search(
        self, query: str, most: int = _MOST, words_shown: int = 24, *, some: bool = True
    ) -> list[Result]:
        """The sections that have all words of a query, best first, and then those that have `some`.

        Case, accents, endings and words of questions do not count. A word counts as its synonyms
        do, and may be the beginning of one. Of each section so many words are shown, at most 64.
        """
        words = _asked(query)
        terms = [*self._terms(words)]
        every = " AND ".join(terms)
        asked = " OR ".join(terms) if some else every
        path = words[-1] if words and words[-1].startswith("/") else query
        names = query, " ".join(words), f" {path} "
        with self._lock:
            rows = self._index.execute(
                "SELECT path, page, heading, snippet(sections, 3, ?, ?, '…', ?) FROM sections WHERE"
                " sections MATCH ? ORDER BY"
                " rowid IN (SELECT rowid FROM sections WHERE sections MATCH ?) DESC,"
                # what a query names, and the operation of a path, behind its method, come first
                " heading COLLATE NOCASE = ? OR asked COLLATE NOCASE = ?"
                " OR instr(text, ?) BETWEEN 4 AND 8 AND path LIKE '/docs/%' DESC,"
                # pages of tasks count more than the reference
                " bm25(sections, 0, 4, 12, 1) * CASE WHEN path GLOB '/guide/*' AND path NOT GLOB"
                " '/guide/*/*' THEN 1.5 ELSE 1 END LIMIT ?",
                (_FROM, _TO, words_shown, asked, every, *names, most),
            ).fetchall()
        return [Result(*row) for row in rows]

    def _terms(self, words: list[str]) -> Iterator[str]:
        """Words as FTS5 asks for them; one or two that have synonyms with these as alternatives."""
        at = 0
        while at < len(words):
            pair = " ".join(words[at : at + 2])
            count = 2 if _plain(pair) in self._synonyms and at + 1 < len(words) else 1
            asked = pair if count == 2 else words[at]
            others = self._synonyms.get(_plain(asked), [])
            begins = "*" if len(asked) > _SHORT else ""
            yield f"({' OR '.join([_quoted(asked) + begins, *map(_quoted, others)])})"
            at += count

    @cached_property
    def _synonyms(self) -> dict[str, list[str]]:
        """What the guide says for a word: each line of the file is a word or two with what they are
        called there.
        """
        found = read(self._root / "fixtures" / "console" / "synonyms.yaml")
        return {_plain(word): others for word, others in found.items()}

    @cached_property
    def _index(self) -> sqlite3.Connection:
        database = sqlite3.connect(":memory:", check_same_thread=False)
        finalize(self, database.close)
        database.execute(
            "CREATE VIRTUAL TABLE sections USING fts5"
            "(path UNINDEXED, page, heading, text, asked UNINDEXED,"
            " tokenize = 'porter unicode61 remove_diacritics 2')"
        )
        database.executemany("INSERT INTO sections VALUES (?, ?, ?, ?, ?)", self._rows())
        return database

    def _rows(self) -> Iterator[tuple[str, str, str, str, str]]:
        for address in self._addresses.values():
            page = self.pages[address]
            for part in page.sections:
                if not part.text:
                    continue
                path = f"/guide{address and '/'}{address}"
                if part.level > 1:
                    path += f"#{part.anchor}"
                asked = " ".join(_asked(part.heading))
                yield path, page.title, part.heading, part.text, asked
        for entry in self.entries:
            path, text = f"/docs/{entry.name}", entry.text.replace("`", "")
            asked = " ".join(_asked(entry.summary))
            yield path, entry.kind, entry.name, text, asked


def marked(excerpt: str) -> str:
    """An excerpt as HTML."""
    return escape(excerpt).replace(_FROM, "<mark>").replace(_TO, "</mark>")


def unmarked(excerpt: str) -> str:
    """An excerpt as text."""
    return excerpt.replace(_FROM, "").replace(_TO, "")


def _asked(text: str) -> list[str]:
    """The words of a question, or of a heading, each once: FTS5 counts one again and again."""
    every = [*dict.fromkeys(_ENDING.sub("", word) for word in text.split())]
    return [word for word in every if not _ASKING(word)] or every


def _quoted(words: str) -> str:
    return '"{}"'.format(words.replace('"', '""'))


def _plain(text: str) -> str:
    """A text without case and accents."""
    return without_accents(text.lower())
