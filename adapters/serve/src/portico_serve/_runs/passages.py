"""The passages that an answer cites, found again in the results of its run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from portico import Passages
from portico.plans import Answer
from portico.plugins import RunState
from portico_serve._inputs import NotFound
from portico_serve._runs.views import cut_value, safe_link

if TYPE_CHECKING:
    from portico import Citation, Kernel, Source

_LINE = re.compile(r"L(\d{1,9})(?:-L?\d{1,9})?\Z")
_MARKS = re.compile(r"\[\^?\d{1,9}\]|^\s*>\s?", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[.!?…\]])\s+(?!\[\^?\d)|\n\s*\n")
_SHORTEST_QUOTE = 20


def passage_view(kernel: Kernel, state: RunState, number: int) -> dict[str, Any]:
    """Return the passage behind a citation, with the words that the answer relies on.

    Raises ``NotFound`` where the answer has no citation of that number.
    """
    outcome = state.outcome
    cited = (
        next((each for each in outcome.citations if each.number == number), None)
        if isinstance(outcome, Answer)
        else None
    )
    if cited is None or not isinstance(outcome, Answer):
        raise NotFound(f"The answer has no citation {number}.")
    found = _find(kernel, state, cited)
    text = found.text if found is not None else cited.quote
    line, page = place_in(cited.link)
    return {
        "number": number,
        "name": cited.name,
        "link": safe_link(cited.link),
        "text": cut_value(text)[0],
        "quote": _quote(outcome.text, number, cited.quote, text),
        "line": line,
        "page": page,
    }


def place_in(link: str | None) -> tuple[int | None, int | None]:
    """Return the line and the page that a link leads to.

    >>> place_in("file:///docs/a.md#L12"), place_in("file:///docs/a.pdf#page=3")
    ((12, None), (None, 3))
    """
    try:
        fragment = urlsplit(link or "").fragment
    except ValueError:
        return None, None
    line = _LINE.match(fragment)
    page = parse_qs(fragment).get("page", [""])[0]
    return int(line[1]) if line else None, int(page) if page.isascii() and page.isdigit() and len(page) < 10 else None


def _find(kernel: Kernel, state: RunState, cited: Citation) -> Source | None:
    """Return the passage of a search's result that a citation is about."""
    passages = Passages()
    for record in state.records:
        function = record.step.function
        spec = kernel.specs.get(function) if isinstance(function, str) else None
        if record.error is None and "[" not in record.step.id and type(record.result) in (list, dict):
            passages.take(record.result, found=spec is not None and spec.is_search)
    same = [each for each in passages.sources if (each.name, each.link) == (cited.name, cited.link)]
    quoted = [each for each in same if cited.quote.strip() in each.text]
    return next((each for each in quoted if each.text == cited.quote), quoted[0] if quoted else None)


def _quote(answer: str, number: int, quote: str, text: str) -> str:
    """Return the words of a passage that the answer relies on: those cited, or its sentence with the mark, or all."""
    if quote.strip() and quote.strip() != text.strip():
        return quote.strip()
    for sentence in _SENTENCE.split(answer):
        if f"[{number}]" in sentence or f"[^{number}]" in sentence:
            words = " *".join(map(re.escape, _MARKS.sub("", sentence).split())).replace(" *", r"\s+")
            if len(words) >= _SHORTEST_QUOTE and (found := re.search(words, text)) is not None:
                return found[0]
    return text
