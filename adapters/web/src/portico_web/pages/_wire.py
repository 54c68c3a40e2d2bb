"""Find out what kind of page some bytes are, and decode them to text."""

from __future__ import annotations

import codecs
import re
from html import unescape
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["html", "pdf", "text"]

_MEDIA_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+")
_CHARSET = re.compile(r"""charset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)
_META = re.compile(rb"""<meta\s[^>]{0,500}?charset\s{0,9}=\s{0,9}["']?\s{0,9}([\w.:-]{1,40})""", re.IGNORECASE)
_XML = re.compile(rb"""<\?xml\s[^>]{0,200}?encoding\s{0,9}=\s{0,9}["']([\w.:-]{1,40})""", re.IGNORECASE)
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_TEXT_TYPES = frozenset(
    f"application/{name}"
    for name in ("json", "xml", "yaml", "x-yaml", "toml", "javascript", "x-ndjson", "x-tex", "sql", "x-sh")
)
_UNTOLD = frozenset({"", "application/octet-stream", "binary/octet-stream", "application/x-download"})
_HTML_START = re.compile(
    rb"\s*(?:<!--.{0,500}?-->\s*)?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it starts with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# The encodings of the WHATWG registry, by their Python names. Others that Python has (idna, punycode, utf-7,
# unicode_escape) are no encodings of pages, and some of them take quadratic time.
_DECLARABLE = re.compile(
    r"utf-(?:8|16|16-le|16-be)|iso8859-\d+|cp\d+|koi8-[rtu]|gb\w+|big5\w*|shift_ji\w+|euc_\w+|iso2022_jp|mac-\w+|tis-620"
)
_SEVERAL_BYTES = re.compile(r"utf|gb|big5|shift|euc|iso2022|cp9[345]\d")
# Controls that text has no use for: all but backspace, tab, newline, vertical tab, form feed, return, escape.
_CONTROLS = bytes({*range(8), *range(14, 27), *range(28, 32), 127})
_MOST_CONTROLS = 0.05


def media_type_of(header: str | None) -> str:
    """Return the media type of a Content-Type header, lower case and without parameters; empty for none.

    >>> media_type_of("Text/HTML; charset=utf-8")
    'text/html'
    """
    text = (header or "").partition(";")[0].strip().lower()
    return text if _MEDIA_TYPE.fullmatch(text) else ""


def kind_of(media_type: str, start: bytes | None = None) -> Kind | None:
    """Return how a page is read, from its media type and the bytes it starts with; None for what is not read.

    Without the bytes, None means that no bytes could make it readable, so that they need not be fetched. A PDF
    that is called something else that is read, and a page without its own type, are known by their bytes.
    """
    main = media_type.partition("/")[0]
    readable = main == "text" or media_type in _HTML_TYPES | _TEXT_TYPES | _UNTOLD | {"application/pdf"}
    if not readable and not media_type.endswith(("+json", "+xml", "+yaml")):
        return None
    if start is not None and start[:1024].lstrip().startswith(b"%PDF-"):
        return "pdf"
    if media_type in _HTML_TYPES:
        return "html"
    if media_type == "application/pdf":
        return "pdf"
    if media_type in _UNTOLD and start is not None and _HTML_START.match(start[:2048]):
        return "html"
    return "text"


def decoded(data: bytes, header: str | None, kind: Kind) -> str | None:
    r"""Return the text of a page, or None when it is none: NUL, or more than one control character in twenty.

    A byte order mark decides, then the header's charset, then what the page itself declares; UTF-8 throughout,
    with more than ASCII in it, overrules an encoding of single bytes, since it does not come about by chance. What
    fits none of them is read as windows-1252, with ``\ufffd`` for what even that has not: a page with a wrong
    letter is better than no page.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _clean(data[len(mark) :].decode(encoding, "replace"))
    declared = [name for name in (_of_header(header), _of_page(data) if kind == "html" else None) if name]
    if declared and declared[0].startswith("utf-16"):
        text = _strictly(data, declared[0])
        return _clean(text) if text is not None else None
    if b"\0" in data or len(data) - len(data.translate(None, _CONTROLS)) > len(data) * _MOST_CONTROLS:
        return None
    as_utf8 = _strictly(data, "utf-8")
    if as_utf8 is not None and (not data.isascii()) and not (declared and _SEVERAL_BYTES.match(declared[0])):
        return _clean(as_utf8)
    for name in [*declared, "utf-8"]:
        text = _strictly(data, name)
        if text is not None:
            return _clean(text)
    return _clean(data.decode("utf-8" if declared[:1] == ["utf-8"] else "cp1252", "replace"))


def _clean(text: str) -> str | None:
    if "\0" in text:
        return None
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _strictly(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except (UnicodeError, LookupError):
        return None


def _of_header(header: str | None) -> str | None:
    match = _CHARSET.search((header or "")[:500])
    return _python_name(match[1]) if match else None


def _of_page(data: bytes) -> str | None:
    match = _META.search(data, 0, 1024) or _XML.match(data, 0, 1024)
    name = _python_name(match[1].decode("ascii", "replace")) if match else None
    # A declaration that could be read is not in UTF-16, whatever it says (WHATWG HTML, "prescan").
    return "utf-8" if name is not None and name.startswith("utf-16") else name


def _python_name(declared: str) -> str | None:
    try:
        name = codecs.lookup(declared).name
    except (LookupError, ValueError):
        return None
    # The registry reads both as windows-1252: that is what such pages are.
    if name in {"iso8859-1", "ascii"}:
        name = "cp1252"
    if name == "gb2312":
        name = "gb18030"
    return name if _DECLARABLE.fullmatch(name) else None


_MOST_SEARCHED = 200_000
# What is left out, in one pass; an unclosed one takes the rest of the page, as in a browser. Each of the patterns
# below matches to the end of the page where its own end is missing, so that all take linear time.
_UNSEEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|template|svg|title)\b[^>]*+(?:>|\Z).*?(?:</\1\s*+>|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_BREAK = re.compile(r"</?(?:p|div|br|li|tr|h[1-6]|table|ul|ol|section|article|pre|blockquote|dt|dd)\b[^>]*+>?", re.I)
_CELL = re.compile(r"<t[dh]\b[^>]*+>?", re.I)
_TAG = re.compile(r"<[!/?a-zA-Z][^>]*+>?")
_SPACES = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"\s*\n\s*")
_TITLE = re.compile(r"<title\b[^>]*+>([^<]{1,2000})", re.IGNORECASE)


def text_without_tags(html: str) -> str:
    r"""Return what is left of a page without its tags, a line for each block.

    >>> text_without_tags("<head><title>T</title></head><p>One &lt;two&gt;<script>x</script></p><p>Three")
    'One <two>\nThree'
    """
    text = _CELL.sub(" ", _BREAK.sub("\n", _UNSEEN.sub(" ", html)))
    text = unescape(_TAG.sub("", text))
    return _LINES.sub("\n", _SPACES.sub(" ", text)).strip()


def title_in(html: str) -> str:
    """Return what stands between the tags of the title, empty for none near the beginning."""
    match = _TITLE.search(html[:_MOST_SEARCHED])
    return " ".join(unescape(match[1]).split()) if match else ""
