"""The text of a PDF, through pypdf; runs in its own process."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from io import BytesIO
from time import monotonic

from pypdf import PdfReader, apply_configuration
from pypdf.errors import LimitReachedError

from portico_web.pages._errors import Unreadable

# pypdf parses about a million operators in ten seconds; a dense page of text has some ten thousand.
_MOST_WORK_A_STREAM = 300_000
_MOST_BYTES_A_STREAM = 20_000_000
_MOST_TITLE = 300


@dataclass(frozen=True, slots=True)
class PdfBounds:
    """How much of a document is read."""

    pages: int
    characters: int
    seconds: float


def pdf_text(data: bytes, bounds: PdfBounds) -> tuple[str, str | None, str | None]:
    """Return text, title, and what was left out; a page that cannot be read is passed over if another can.

    Raises ``Unreadable`` for a document that is encrypted (an empty password is tried), damaged or of pictures only.
    """
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it tells of each fault of a file
    with apply_configuration(
        stream_parsing_work_maximum_count=_MOST_WORK_A_STREAM,
        zlib_maximum_output_length=_MOST_BYTES_A_STREAM,
        lzw_maximum_output_length=_MOST_BYTES_A_STREAM,
        run_length_maximum_output_length=_MOST_BYTES_A_STREAM,
        array_based_stream_maximum_output_length=_MOST_BYTES_A_STREAM,
    ):
        try:
            return _read(data, bounds)
        except (Unreadable, MemoryError):
            raise
        except LimitReachedError as error:
            raise Unreadable(f"is too large once unpacked ({error})") from error
        except Exception as error:
            raise Unreadable(f"is damaged ({type(error).__name__})") from error


def _read(data: bytes, bounds: PdfBounds) -> tuple[str, str | None, str | None]:
    end = monotonic() + bounds.seconds
    reader = PdfReader(BytesIO(data), strict=False)
    if reader.is_encrypted and not _opens_without_password(reader):
        raise Unreadable("is encrypted")
    total = len(reader.pages)
    texts: list[str] = []
    characters = 0
    failure: Exception | None = None
    failed = 0
    cut: str | None = None
    for number in range(total):
        if number >= bounds.pages:
            cut = f"the first {number:,} of {total:,} pages (max_pdf_pages)"
        elif monotonic() > end:
            cut = f"the first {number:,} of {total:,} pages, since the time was up (extract_seconds)"
        elif characters > bounds.characters:
            cut = f"the first {number:,} of {total:,} pages (max_characters)"
        if cut is not None:
            break
        try:
            text = reader.pages[number].extract_text().strip()
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - pypdf raises whatever a broken page makes it raise
            failure = error
            failed += 1
            continue
        if text:
            texts.append(text)
            characters += len(text)
    if not texts and failure is not None:
        raise failure
    if not texts:
        raise Unreadable("has no text, perhaps pictures of it")
    if failed:
        damaged = (
            f"{failed:,} of them could not be read"
            if cut
            else f"all but {failed:,} of {total:,} pages, which could not be read"
        )
        cut = f"{cut}; {damaged}" if cut else damaged
    return "\n\n".join(texts), _title(reader), cut


def _opens_without_password(reader: PdfReader) -> bool:
    """Try the empty password, with which a file is only kept from being changed."""
    try:
        return bool(reader.decrypt(""))
    except Exception:  # noqa: BLE001 - DependencyError without AES, or whatever damaged data makes of it
        return False


def _title(reader: PdfReader) -> str | None:
    try:
        title = reader.metadata.title if reader.metadata is not None else None
    except Exception:  # noqa: BLE001 - a damaged title costs only the title
        return None
    return " ".join(str(title or "")[:_MOST_TITLE].split()) or None
