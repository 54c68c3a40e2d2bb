"""A small encyclopaedia in SQLite's full-text search: invented articles, ranking, snippets, categories."""

from __future__ import annotations

import difflib
import html
import re
import sqlite3
import threading
from dataclasses import dataclass
from pathlib import Path

ARTICLES = Path(__file__).with_name("small_wiki_articles.txt")
HARBOURS = 45
# MediaWiki's search leaves these out of what must be there.
STOP_WORDS = frozenset({
    "a", "an", "and", "are", "as", "at", "by", "can", "did", "do", "does", "for", "from", "had", "has", "have", "how",
    "i", "in", "is", "it", "its", "many", "much", "of", "on", "or", "that", "the", "there", "this", "to", "was", "were",
    "what", "when", "where", "which", "who", "why", "will", "with",
})  # fmt: skip
OPERATOR = re.compile(r'(-?)(intitle|incategory|site):(?:"([^"]*)"|(\S+))', re.IGNORECASE)
WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Article:
    """A page of the wiki; ``introduction`` is what stands before its first heading."""

    number: int
    title: str
    namespace: int
    categories: tuple[str, ...]
    edited: str
    introduction: str
    body: str

    @property
    def path(self) -> str:
        """What stands behind `/wiki/`."""
        return self.title.replace(" ", "_")


@dataclass(frozen=True)
class Hit:
    """An article that was found, with the place in it, marked up as HTML."""

    article: Article
    snippet: str


def articles() -> list[Article]:
    """Read the written articles and make many alike, so that there are pages to turn."""
    found = []
    for part in ARTICLES.read_text("utf-8").split("== ")[1:]:
        title, _, rest = part.partition("\n")
        head, text = [], []
        for line in rest.splitlines():
            (head if line[:2] in ("@ ", "# ", "! ") else text).append(line)
        facts = {line[0]: line[2:] for line in head}
        introduction, _, body = "\n".join(text).partition("\n--\n")
        categories = tuple(facts["#"].split("; "))
        number = 7_000 - 31 * len(found)  # So that the order of numbers is none that a search would have.
        found.append(
            Article(number, title, int(facts.get("!", 0)), categories, facts["@"], introduction.strip(), body.strip())
        )
    for number in range(1, HARBOURS + 1):
        text = f"Harbour {number} of the pilot book has {number + 2} berths and a depth of {number % 9 + 3} metres."
        edited = f"20{10 + number % 15}-0{number % 9 + 1}-15T08:00:00Z"
        name = f"Harbour {number} (pilot book)"
        found.append(Article(number, name, 0, ("Harbours", "Pilot book"), edited, text, "A pilot is compulsory."))
    return found


class Wiki:
    """The index; a search is safe from any thread.

    ``queries`` have words that must all be there, ``-word``, ``"a phrase"``, ``intitle:`` and ``incategory:``.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_number = {article.number: article for article in articles()}
        self._index = sqlite3.connect(":memory:", check_same_thread=False)
        self._index.execute("CREATE VIRTUAL TABLE page USING fts5(title, text, tokenize = 'porter unicode61')")
        self._words: set[str] = set()
        for article in self._by_number.values():
            text = f"{article.introduction}\n{article.body}"
            self._index.execute(
                "INSERT INTO page(rowid, title, text) VALUES (?, ?, ?)", (article.number, article.title, text)
            )
            self._words |= {word.lower() for word in WORD.findall(f"{article.title} {text}")}

    def search(self, query: str, namespaces: frozenset[int] = frozenset({0})) -> list[Hit]:
        """Return what has all the words of a query, the best first."""
        categories: list[str] = []
        titles: list[str] = []
        for operator in OPERATOR.finditer(query):
            values = {"incategory": categories, "intitle": titles}.get(operator[2].lower())
            if values is not None:
                values.append(operator[3] if operator[3] is not None else operator[4])
        expression = _expression(OPERATOR.sub(" ", query))
        if expression:
            rows = self._rows(
                "SELECT rowid, snippet(page, 1, char(2), char(3), '', 24) FROM page WHERE page MATCH ? "
                "ORDER BY bm25(page, 5.0, 1.0), rowid",
                expression,
            )
        elif categories or titles:
            rows = self._rows("SELECT rowid, substr(text, 1, 150) FROM page ORDER BY title")
        else:
            return []
        hits = [Hit(self._by_number[number], _marked_up(snippet)) for number, snippet in rows]
        return [
            hit
            for hit in hits
            if hit.article.namespace in namespaces
            and all(category in hit.article.categories for category in categories)
            and all(words.lower() in hit.article.title.lower() for words in titles)
        ]

    def _rows(self, statement: str, *values: str) -> list[tuple[int, str]]:
        with self._lock:
            return self._index.execute(statement, values).fetchall()

    def suggestion(self, query: str) -> str | None:
        """Return the query spelt as words that are there, None where it is so already."""
        words = query.split()
        nearest = [
            word
            if word.lower() in self._words
            else next(iter(difflib.get_close_matches(word.lower(), self._words)), word)
            for word in words
        ]
        return None if nearest == words else " ".join(nearest)


def without_markup(snippet: str) -> str:
    """Return a snippet as plain text."""
    return html.unescape(re.sub(r"</?span[^>]*>", "", snippet))


def _expression(query: str) -> str:
    """Return a query as an expression of FTS5, in which every word is quoted."""
    wanted, unwanted = [], []
    for minus, phrase, word in re.findall(r'(?:(?<=\s)|^)(-?)"([^"]*)"|(\S+)', query):
        text = phrase or word
        bare = text.lstrip("-")
        words = WORD.findall(bare)
        kept = (
            [f'"{" ".join(words)}"']
            if phrase and words
            else [f'"{one}"' for one in words if one.lower() not in STOP_WORDS]
        )
        (unwanted if minus or text.startswith("-") else wanted).extend(kept)
    if not wanted:
        return ""
    return " AND ".join(wanted) + "".join(f" NOT {word}" for word in unwanted)


def _marked_up(snippet: str) -> str:
    marks = {"\2": '<span class="searchmatch">', "\3": "</span>"}
    text = html.escape(" ".join(snippet.split()))
    return "".join(marks.get(letter, letter) for letter in text)
