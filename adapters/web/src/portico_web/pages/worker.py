"""Find the text of a fetched page. This runs in its own process.

lxml and PDFium run for as long as a page makes them, and a thread cannot be stopped. The process ends itself when a
job takes too long, even inside C code, and when its parent is gone.

A job comes on standard input and its answer goes to standard output, each as a line of JSON with the bytes in base64.
"""

from __future__ import annotations

import codecs
import faulthandler
import json
import os
import re
import signal
from base64 import b64decode, b64encode
from collections.abc import Mapping
from html import unescape
from time import monotonic
from typing import IO, Any, Literal, TypeAlias

Kind: TypeAlias = Literal["html", "pdf", "text"]

_MEMORY = 2 * 1024**3
_SURROGATES_AND_CONTROLS = re.compile(r"[\ud800-\udfff\x00-\x08\x0b\x0e-\x1f\x7f]")
_MOST_TITLE = 300


class Unreadable(Exception):
    """The page has no text; the argument is the end of a sentence that begins with the page."""


def main() -> None:
    """Answer jobs until standard input ends."""
    jobs = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    # What a library prints must not stand among the answers.
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when to stop, not the terminal
    _limit_memory()
    with open(nowhere, "w", closefd=False) as log:
        while (job := receive(jobs)) is not None:
            faulthandler.dump_traceback_later(job[0]["seconds"], exit=True, file=log)
            answer = find_text(*job)
            faulthandler.cancel_dump_traceback_later()
            try:
                send(answers, *answer)
            except OSError:
                return


def find_text(job: Mapping[str, Any], data: bytes) -> tuple[dict[str, Any], bytes]:
    """Do one job: return ``{"title", "cut"}`` and the text, or ``{"fault"}``, the end of a sentence on the page."""
    try:
        text, title, cut = _text(job, data)
    except MemoryError:
        return {"fault": f"takes more than {_MEMORY:,} bytes of memory to be read"}, b""
    except Exception as error:  # noqa: BLE001 - lxml, trafilatura and pypdfium2 raise whatever a page makes them raise
        return {"fault": str(error) if isinstance(error, Unreadable) else f"is damaged ({type(error).__name__})"}, b""
    text = _SURROGATES_AND_CONTROLS.sub("", text).strip()
    if not text:
        return {"fault": "has no text"}, b""
    most = job["characters"]
    if len(text) > most:
        text, cut = text[:most], cut or f"the first {most:,} of {len(text):,} characters (max_characters)"
    title = " ".join(_SURROGATES_AND_CONTROLS.sub("", title)[:_MOST_TITLE].split())
    return {"title": title or None, "cut": cut}, text.encode()


def send(stream: IO[bytes], head: Mapping[str, Any], data: bytes) -> None:
    """Write a message."""
    stream.write(json.dumps({**head, "data": b64encode(data).decode("ascii")}).encode() + b"\n")
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[dict[str, Any], bytes] | None:
    """Read a message, or None where the stream ends."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        return None
    head = json.loads(line)
    return head, b64decode(head.pop("data"))


def _limit_memory() -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):
        return  # not on this system; the time is limited all the same


def _text(job: Mapping[str, Any], data: bytes) -> tuple[str, str, str | None]:
    if job["kind"] == "pdf":
        return read_pdf(data, job["characters"], job["seconds"] * 0.7)
    text = decode(data, job["content_type"], job["kind"])
    if text is None:
        raise Unreadable("is no text, whatever its type says")
    if job["kind"] == "html":
        return (*read_html(text), None)
    return text, "", None


_MEDIA_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+")
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_TEXT_TYPES = frozenset(
    f"application/{name}"
    for name in ("json", "xml", "yaml", "x-yaml", "toml", "javascript", "x-ndjson", "x-tex", "sql", "x-sh")
)
_UNKNOWN_TYPES = frozenset({"", "application/octet-stream", "binary/octet-stream", "application/x-download"})
_HTML_START = re.compile(
    rb"\s*(?:<!--.{0,500}?-->\s*)?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)


def media_type_of(header: str | None) -> str:
    """Return the media type of a Content-Type header, lower case and without parameters; empty for none.

    >>> media_type_of("Text/HTML; charset=utf-8")
    'text/html'
    """
    text = (header or "").partition(";")[0].strip().lower()
    return text if _MEDIA_TYPE.fullmatch(text) else ""


def kind_of(media_type: str, start: bytes = b"") -> Kind | None:
    """Return how a page is read, from its media type and the bytes it starts with; None for what is not read.

    Bytes make no other type readable, so what is not read need not be fetched.
    """
    readable = media_type.startswith("text/") or media_type in _HTML_TYPES | _TEXT_TYPES | _UNKNOWN_TYPES
    if media_type == "application/pdf" or (readable and start[:1024].lstrip().startswith(b"%PDF-")):
        return "pdf"
    if not readable and not media_type.endswith(("+json", "+xml", "+yaml")):
        return None
    if media_type in _HTML_TYPES or (media_type in _UNKNOWN_TYPES and _HTML_START.match(start[:2048])):
        return "html"
    return "text"


_CHARSET = re.compile(r"""charset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)
_META = re.compile(
    rb"""(?:<meta\s[^>]{0,500}?charset|<\?xml\s[^>]{0,200}?encoding)\s{0,9}=\s{0,9}["']?([\w.:-]{1,40})""",
    re.IGNORECASE,
)
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# Controls that text has no use for: all but backspace, tab, newline, vertical tab, form feed, return, escape.
_CONTROLS = bytes({*range(8), *range(14, 27), *range(28, 32), 127})
_MOST_CONTROLS = 0.05


def decode(data: bytes, header: str | None, kind: Kind) -> str | None:
    r"""Return the text of a page, or None for binary data: NUL, or more than one control character in twenty.

    A byte order mark decides. Otherwise UTF-8 is tried, then the charset of the header, then that of the page. What
    fits none is read as windows-1252, with ``\ufffd`` for what it lacks. UTF-16 needs a mark.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _normalize(data[len(mark) :].decode(encoding, "replace"))
    in_header = _CHARSET.search((header or "")[:500])
    in_page = _META.search(data, 0, 1024) if kind == "html" else None
    declared = [in_header[1]] if in_header else []
    declared += [in_page[1].decode("ascii", "replace")] if in_page else []
    codecs_of_page = [name for name in map(_codec, declared) if name]
    if b"\0" in data or len(data) - len(data.translate(None, _CONTROLS)) > len(data) * _MOST_CONTROLS:
        return None
    # Text in another encoding is valid UTF-8 by chance only when it is very short.
    for name in ("utf-8", *codecs_of_page):
        try:
            return _normalize(data.decode(name))
        except UnicodeError:
            continue
    return _normalize(data.decode("utf-8" if codecs_of_page[:1] == ["utf-8"] else "cp1252", "replace"))


def _codec(declared: str) -> str | None:
    """Return Python's name for an encoding of pages; None for others, some of which take quadratic time."""
    try:
        name = codecs.lookup(declared).name
    except (LookupError, ValueError):
        return None
    if name in {"iso8859-1", "ascii"}:
        return "cp1252"  # what such pages are in truth (WHATWG)
    if name == "gb2312":
        return "gb18030"
    return name if re.match(r"utf-8|iso8859-|cp\d|koi8|gb|big5|shift_|euc_|mac-|tis-620", name) else None


def _normalize(text: str) -> str | None:
    return None if "\0" in text else text.replace("\r\n", "\n").replace("\r", "\n")


_LONG_HTML = 300_000
# Each pattern takes linear time: it matches to the end of the page where its own end is missing.
_UNSEEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|template|svg|title)\b[^>]*+(?:>|\Z).*?(?:</\1\s*+>|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_BREAK = re.compile(r"</?(?:p|div|br|li|tr|h[1-6]|table|ul|ol|section|article|pre|blockquote|dt|dd)\b[^>]*+>?", re.I)
_CELL = re.compile(r"<t[dh]\b[^>]*+>?", re.I)
_TAG = re.compile(r"<[!/?a-zA-Z][^>]*+>?")
_TITLE = re.compile(r"<title\b[^>]*+>([^<]{1,2000})", re.IGNORECASE)


def read_html(html: str) -> tuple[str, str]:
    """Return the main text of a page and its title.

    trafilatura finds the text. Where it finds none (a page of a few words, tags nested too deep) or fails, the text
    is all that a reader would see. Long pages go through its quicker half.
    """
    from trafilatura import bare_extraction, load_html

    titled = _TITLE.search(html[:200_000])
    title = unescape(titled[1]) if titled else ""
    try:
        tree = load_html(html)
        found = bare_extraction(tree, include_comments=False, fast=len(html) > _LONG_HTML)
        if not title.strip() and tree is not None:
            headings = tree.xpath("//meta[@property='og:title']/@content | //h1/text()")
            title = str(headings[0]) if headings else ""
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - whatever a page makes of it costs the quality of the text, not the text
        found = None
    return str(getattr(found, "text", None) or "").strip() or strip_tags(html), title


def strip_tags(html: str) -> str:
    r"""Return a page without its tags, with a line for each block.

    >>> strip_tags("<head><title>T</title></head><p>One &lt;two&gt;<script>x</script></p><p>Three")
    'One <two>\nThree'
    """
    text = _CELL.sub(" ", _BREAK.sub("\n", _UNSEEN.sub(" ", html)))
    text = unescape(_TAG.sub("", text))
    return re.sub(r"\s*\n\s*", "\n", re.sub(r"[^\S\n]+", " ", text)).strip()


_HYPHENATED = re.compile(r"[\x02\ufffe](?:\r?\n)?(?=\w)")


def read_pdf(data: bytes, characters: int, seconds: float) -> tuple[str, str, str | None]:
    """Return text, title, and which pages were left out. A page that cannot be read costs no other page.

    Raises ``Unreadable`` for a document that is encrypted (an empty password is tried), damaged or without text.
    """
    from pypdfium2 import PdfDocument, PdfiumError
    from pypdfium2.raw import FPDF_ERR_PASSWORD

    end = monotonic() + seconds
    try:
        document = PdfDocument(data)
    except PdfiumError as error:
        raise Unreadable("is encrypted" if error.err_code == FPDF_ERR_PASSWORD else "is damaged") from error
    texts: list[str] = []
    total, number, failed = len(document), 0, 0
    while number < total and monotonic() < end and sum(map(len, texts)) <= characters:
        try:
            found = document[number].get_textpage().get_text_bounded()
            texts.append(_HYPHENATED.sub("", found).replace("\r\n", "\n").strip())
        except PdfiumError:
            failed += 1
        number += 1
    if not any(texts):
        raise Unreadable("is damaged" if failed else "has no text, perhaps pictures of it")
    title = document.get_metadata_value("Title") or ""
    cut = f"{len(texts):,} of {total:,} pages" if len(texts) < total else None
    return "\n\n".join(filter(None, texts)), title, cut
