"""From a request to a question and passages, and from quotes to text and citations."""

from __future__ import annotations

import re
from collections.abc import Sequence

from portico import ChatRequest, Citation, Source
from portico_basics.extractive._choice import Passage
from portico_basics.extractive._selection import Quote

MOST_OF_ONE = 20_000
"""Characters read of one source."""

MOST_OF_ALL = 500_000
"""Characters read of all sources together; those that come later are not searched."""

_FILE_LINE = re.compile(r"(file:[^#]*#L)(\d{1,9})(?:-L?\d+)?")


def question_of(request: ChatRequest) -> str:
    """Return the text of the last message that a user wrote."""
    return next((message.text for message in reversed(request.messages) if message.role == "user"), "")


def passages_of(request: ChatRequest) -> list[Passage]:
    """Return the sources of all messages in order, as far as they are read."""
    passages = []
    left = MOST_OF_ALL
    for message in request.messages:
        for part in message.content:
            if isinstance(part, Source) and left > 0:
                text = part.text[: min(MOST_OF_ONE, left)]
                left -= len(text)
                passages.append(Passage(part.number, text, part.name, part.link))
    return passages


def citation_of(quote: Quote, passages: Sequence[Passage]) -> Citation:
    """Return the citation of a quote; a link to a line of a file moves on to the line where the quote begins."""
    passage = passages[quote.passage]
    link = passage.link
    if link is not None and (match := _FILE_LINE.fullmatch(link)):
        link = f"{match.group(1)}{int(match.group(2)) + passage.text.count(chr(10), 0, quote.start)}"
    return Citation(passage.number, passage.name, link, passage.text[quote.start : quote.end])


def paragraph(quote: Quote, citation: Citation) -> str:
    """Return the quote as a paragraph of the answer: in quotation marks, or as lines with the mark below."""
    if not quote.lines:
        return f"“{citation.quote}” [{citation.number}]"
    if quote.bare_code:
        runs = [len(run) for run in re.findall(r"`+", citation.quote)]
        fence = "`" * max(3, 1 + max(runs, default=0))
        return f"{fence}\n{citation.quote}\n{fence}\n[{citation.number}]"
    return f"{citation.quote}\n[{citation.number}]"
