"""PDF: the text of each page, through pypdf."""

from __future__ import annotations

import logging
import re
from io import BytesIO
from time import monotonic

from pypdf import PdfReader, apply_configuration
from pypdf.errors import DependencyError, LimitReachedError

from portico_documents.chunking import Section
from portico_documents.reading.decoding import Unreadable

_MOST_CHARACTERS = 50_000_000
# pypdf parses about a million operators in ten seconds; a dense page of text has some ten thousand.
_MOST_WORK_A_STREAM = 300_000
_MOST_BYTES_A_STREAM = 20_000_000
_MOST_SECONDS = 120.0
# Of a document, so many passages are indexed; a page more shows that there are more.
_MOST_PAGES = 10_001
_NO_TITLE = re.compile(r"(?i)untitled|microsoft word|powerpoint|\.(?:docx?|pptx?|xlsx?|indd|qxd|tex|dvi|pdf|rtf|odt)\b")
_SURROGATES_AND_CONTROLS = re.compile(r"[\ud800-\udfff\x00-\x08\x0e-\x1f\x7f]")


def read(data: bytes) -> list[Section]:
    """Return a section for each page that has text, under the document's title if it gives a real one.

    A page that cannot be read is left out, as long as another can. Raises ``Unreadable``: ``encrypted`` (an empty
    password is tried), ``damaged``, ``no text`` (pages of pictures), ``too large`` (once unpacked), ``too slow``
    after two minutes, which is checked between pages.
    """
    logger = logging.getLogger("pypdf")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL)  # it logs a line for each fault of a file
    with apply_configuration(
        stream_parsing_work_maximum_count=_MOST_WORK_A_STREAM,
        zlib_maximum_output_length=_MOST_BYTES_A_STREAM,
        lzw_maximum_output_length=_MOST_BYTES_A_STREAM,
        run_length_maximum_output_length=_MOST_BYTES_A_STREAM,
        array_based_stream_maximum_output_length=_MOST_BYTES_A_STREAM,
    ):
        try:
            return _sections(data)
        except Unreadable:
            raise
        except DependencyError as error:
            raise Unreadable("encrypted", "with AES") from error
        except LimitReachedError as error:
            raise Unreadable("too large", str(error)) from error
        except Exception as error:
            raise Unreadable("damaged", f"{type(error).__name__}: {error}") from error


def _sections(data: bytes) -> list[Section]:
    reader = PdfReader(BytesIO(data), strict=False)
    if reader.is_encrypted and not reader.decrypt(""):
        raise Unreadable("encrypted")
    pages = len(reader.pages)
    title = " ".join(_SURROGATES_AND_CONTROLS.sub("", str((reader.metadata and reader.metadata.title) or "")).split())
    headings = (title[:200],) if len(title) > 2 and not _NO_TITLE.search(title) else ()
    sections: list[Section] = []
    failure: Exception | None = None
    characters = 0
    end = monotonic() + _MOST_SECONDS
    for number in range(1, pages + 1):
        if monotonic() > end:
            raise Unreadable("too slow", f"page {number} of {pages} after {_MOST_SECONDS:.0f} seconds")
        try:
            text = _SURROGATES_AND_CONTROLS.sub("", reader.pages[number - 1].extract_text())
        except Exception as error:  # noqa: BLE001 - pypdf raises whatever a broken page makes it raise
            failure = error
            continue
        if text and not text.isspace():
            text = text.replace("\r\n", "\n").replace("\r", "\n")
            sections.append(Section(text, number, headings, page=number))
            if len(sections) == _MOST_PAGES:
                break
        characters += len(text)
        if characters > _MOST_CHARACTERS:
            raise Unreadable("too large", f"more than {_MOST_CHARACTERS} characters")
    if not sections:
        raise failure or Unreadable("no text")
    return sections
