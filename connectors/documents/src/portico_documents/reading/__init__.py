"""Reading files into sections, each format by its own module, imported when such a file is met."""

from __future__ import annotations

from pathlib import PurePath

from portico_documents.chunking import Section
from portico_documents.reading.decoding import Unreadable, decode

__all__ = ["Unreadable", "read_sections"]

_MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".mkd", ".mkdn", ".mdx", ".qmd", ".rmd"})
_RESTRUCTUREDTEXT = frozenset({".rst", ".rest"})
_HTML = frozenset({".html", ".htm", ".xhtml", ".xht"})
_PYTHON = frozenset({".py", ".pyi", ".pyw"})
_PDF_MARK = b"%PDF-"
_MOST = 400_000


def read_sections(path: PurePath, data: bytes, ends: list[tuple[int, str]] | None = None) -> list[Section]:
    r"""Return the text of a file, section by section; raise ``Unreadable`` when it has none.

    The extension decides the format, and an unknown one is plain text. A PDF is a PDF under any name, and a
    ``.pdf`` that is text is read as text. Takes time in proportion to the size of ``data``, which the caller bounds.
    Pure, and safe in threads and processes. Of a file with very many lines or tags only the first are read: ``ends``
    gets the last line, and how many of what there may be.

    >>> read_sections(PurePath("a.md"), b"# Hello\n\nWorld.\n")
    [Section(text='World.\n', line=3, headings=('Hello',), page=None, code=False, continues=False)]
    """
    suffix = _suffix(path)
    if data.startswith(_PDF_MARK) or (suffix == ".pdf" and _PDF_MARK in data[:1024]):
        from portico_documents.reading import pdf

        return pdf.read(data)
    if suffix in _HTML:
        from portico_documents.reading import html

        text = decode(data, html.declared_encoding(data))
        sections = html.read(_first(text, "<", "tags", ends))
    else:
        sections = _read_text(suffix, data, ends)
    if not sections:
        raise Unreadable("empty")
    return sections


def _suffix(path: PurePath) -> str:
    """Return the extension that says the format: ``a.rst.txt``, as Sphinx publishes its sources, is a ``.rst``."""
    *_, before, last = ["", "", *(suffix.lower() for suffix in path.suffixes)]
    return before if last == ".txt" and before in _MARKDOWN | _RESTRUCTUREDTEXT else last


def _first(text: str, mark: str, marks: str, ends: list[tuple[int, str]] | None) -> str:
    """Return a text up to so many marks: what a reader keeps for each is larger than the mark."""
    if text.count(mark) <= _MOST:
        return text
    end = -1
    for _ in range(_MOST):
        end = text.find(mark, end + 1)
    if ends is not None:
        ends.append((text.count("\n", 0, end) + 1, f"{_MOST:,} {marks}"))
    return text[:end]


def _read_text(suffix: str, data: bytes, ends: list[tuple[int, str]] | None) -> list[Section]:
    try:
        text = decode(data)
    except Unreadable as error:
        if suffix != ".pdf" or error.reason == "empty":
            raise
        raise Unreadable("damaged", "no PDF header") from error
    if suffix in _MARKDOWN or suffix in _RESTRUCTUREDTEXT:
        from portico_documents.reading import markup

        read = markup.read_markdown if suffix in _MARKDOWN else markup.read_restructuredtext
        text = _first(text, "\n", "lines", ends)
        return read(text) or [Section(text, line=1)]
    from portico_documents.reading import source_code

    if suffix in _PYTHON:
        return source_code.read_python(_first(text, "\n", "lines", ends))
    if suffix in source_code.SUFFIXES:
        text = _first(text, "\n", "lines", ends)
        return source_code.read(text, suffix)
    return [Section(text, line=1)]
