"""Plain text, and every text whose format is not known: the paragraphs as they stand."""

from __future__ import annotations

from portico_documents.passages import Section


def read(text: str) -> list[Section]:
    r"""Return the text as one section; blank lines part its paragraphs.

    >>> read("One.\n\nTwo.")
    [Section(text='One.\n\nTwo.', line=1, headings=(), page=None, code=False, continues=False)]
    """
    return [Section(text, line=1)]
