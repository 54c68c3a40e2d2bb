"""Show search results and what sources say about a search."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from portico.search import TextSearchResult
from portico_cli.show.layout import Hanging, place_head
from portico_cli.show.output import plain, safe_text

_LENGTH = 280
_WORD = re.compile(r"\w+")
# Each service has its own words for the same two things.
_MEANT = frozenset({"suggestion", "corrections", "correctedQuery"})
_ASKED_INSTEAD = frozenset({"rewrittenquery", "altered", "alteredQuery"})
_DEEPEST = 8
_DEEPEST_JSON = 40
_MOST = 5


def result_lines(query: str, results: Sequence[TextSearchResult], *, first: int = 1) -> Iterator[RenderableType]:
    """Yield the results, numbered from ``first``, with the words of the query marked."""
    if not results:
        yield Text("Nothing was found.")
        return
    width = len(str(first + len(results) - 1)) + 2
    for number, result in enumerate(results, first):
        if number > first:
            yield Text()
        head = place_head(result.name, result.link, "bold")
        yield Hanging(head, str(number).ljust(width), " " * width, "bold green")
        yield Hanging(snippet(query, result.value), " " * width, " " * width)


def snippet(query: str, passage: str) -> Text:
    r"""Return a part of a passage around the first word of the query, with the words of the query marked.

    >>> snippet("retry", "First this.\nThen retry it.").plain
    'First this. Then retry it.'
    """
    text = " ".join(plain(passage).split())
    words = [word.casefold() for word in _WORD.findall(query)]
    # Short words are mostly grammar; they count only where there are no others.
    words = [word for word in words if len(word) > 3] or words
    marks = [found.span() for found in _WORD.finditer(text) if any(_is_form(found[0].casefold(), w) for w in words)]
    start, end = 0, len(text)
    if len(text) > _LENGTH:
        # Some words before the first mark, from the start of a word.
        near = max(0, min(marks[0][0] - 40, len(text) - _LENGTH)) if marks else 0
        start = text.find(" ", near) + 1 if near else 0
        space = text.rfind(" ", start, start + _LENGTH)
        end = end if end - start <= _LENGTH else space if space > start else start + _LENGTH
    made = Text(text[start:end])
    for first, last in marks:
        if start <= first and last <= end:
            made.stylize("bold yellow", first - start, last - start)
    made = Text("… ").append_text(made) if start else made
    return made.append(" …") if end < len(text) else made


def _is_form(word: str, wanted: str) -> bool:
    """Tell whether two words begin alike but for the ending."""
    stem = wanted[: max(4, len(wanted) - 2)]
    return word == wanted or (len(wanted) > 3 and word[: len(stem)] == stem)


def metadata_to_json(value: Any, depth: int = 0) -> Any:
    """Return metadata as JSON values; a connector may put any Python value there.

    >>> metadata_to_json({("a", 1): float("nan"), "b": (1, {2})})
    {"('a', 1)": 'nan', 'b': [1, [2]]}
    """
    if value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if depth < _DEEPEST_JSON:
        if isinstance(value, Mapping):
            return {str(name): metadata_to_json(inner, depth + 1) for name, inner in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [metadata_to_json(inner, depth + 1) for inner in value]
    return str(value)


def remark_lines(query: str, metadata: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Yield an empty line and the remarks, or nothing."""
    lines = remarks(query, metadata)
    if lines:
        yield Text()
    for line in lines:
        yield Hanging(safe_text(line, "dim"), "", "  ")


def remarks(query: str, metadata: Mapping[str, Any]) -> list[str]:
    """Return what the sources say of the search, as sentences; ``metadata`` has that of each source by its name.

    >>> remarks("lighthose", {"web": {"suggestion": "lighthouse", "totalhits": 0}})
    ['Did you mean “lighthouse”?']
    """
    found: dict[str, None] = {}

    def look(value: Any, depth: int) -> None:
        for name, inner in value.items() if isinstance(value, Mapping) and depth < _DEEPEST else ():
            if name in _MEANT or name in _ASKED_INSTEAD:
                words = "Did you mean “{}”?" if name in _MEANT else "These are results for “{}”."
                texts = inner if isinstance(inner, list) else [inner]
                lines = [" ".join(plain(text).split()) for text in texts if isinstance(text, str)]
                found.update(dict.fromkeys(words.format(text) for text in lines if text and text != query))
            elif name == "snippets" and isinstance(inner, list):
                # Only a page on the web is expected to be read.
                pages = [
                    each for each in inner if isinstance(each, Mapping) and f"{each.get('link')}".startswith("http")
                ]
                reasons = [" ".join(plain(f"{page.get('reason')}").split()) for page in pages]
                words = "Only a snippet is shown of a page that was not read: "
                found.update(dict.fromkeys(words + reason for reason in reasons))
            else:
                look(inner, depth + 1)

    look(metadata, 0)
    lines = sorted(found, key=lambda line: (line.startswith("Only"), line.startswith("Did")))
    return lines if len(lines) <= _MOST else [*lines[:_MOST], f"… and {len(lines) - _MOST} more; --json has all."]
