"""HTML: the text that a reader of the page sees, under its headings, with the lines of the source.

Our own scanner, for what the alternatives lack: lxml knows the line of an element but of no text in it, and
html.parser, which does, takes quadratic time on some broken pages in the Pythons we support. Nothing here needs a
tree. Tokens are those of the HTML standard; each character is looked at a bounded number of times.
"""

from __future__ import annotations

import re
from html import unescape

from portico_documents.chunking import Section
from portico_documents.reading.markup import Outline

# An unclosed comment or tag takes the rest of the file, as in a browser; possessive quantifiers keep that linear.
_MARKUP = re.compile(
    r"""<!--(?:-?>|.*?(?:--!?>|\Z))
      | <[!?][^>]*+(?:>|\Z)
      | <(?P<close>/?)(?P<name>[A-Za-z][^\s/>]*+)
        (?P<attributes>(?:=\s*+"[^"]*+"|=\s*+'[^']*+'|[^>=]++|=)*+)(?:>|\Z)""",
    re.VERBOSE | re.DOTALL,
)
_ROLE = re.compile(r"""\brole\s*+=\s*+["']?\s*+([a-z]+)""", re.IGNORECASE)
_INVISIBLE = re.compile(r"""\baria-hidden\s*+=\s*+["']?true|(?:^|\s)hidden(?=[\s/]|$)""", re.IGNORECASE)
_MAIN = re.compile(r"<main(?=[\s>])", re.IGNORECASE)
_MAIN_END = re.compile(r"</main(?=[\s>])", re.IGNORECASE)
_BODY = re.compile(r"<(?:body|svg)(?=[\s>])", re.IGNORECASE)
_TITLE = re.compile(r"<title(?=[\s>])[^>]*+>([^<]{1,1000})", re.IGNORECASE)
_CHARSET = re.compile(rb"""<meta\s[^>]{0,500}?charset\s{0,9}=\s{0,9}["']?\s{0,9}([\w.:-]{1,40})""", re.IGNORECASE)
_XML_ENCODING = re.compile(rb"""<\?xml\s[^>]{0,200}?encoding\s{0,9}=\s{0,9}["']([\w.:-]{1,40})""", re.IGNORECASE)


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_RAW = _names("script style textarea title xmp iframe noembed noframes noscript")
_DROPPED = _names("nav footer template svg object canvas audio video select button datalist")
_HIDEABLE = _names("div span a section ul ol aside button p pre table form header")
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
# What a block leaves behind it: the end of a line, or a blank line.
_LINES = dict.fromkeys(_names("li tr br dt dd option caption summary legend"), "\n")
_PARAGRAPHS = dict.fromkeys(
    _names("""
    address article aside blockquote body center details dialog dir div dl fieldset figcaption figure footer form
    frameset header hgroup hr html main menu ol optgroup p pre section table tbody tfoot thead ul
    """),
    "\n\n",
)
_BLOCKS = _LINES | _PARAGRAPHS
_PERMALINKS = "¶#§🔗\uf0c1 "
_TITLE_WITHIN = 100_000


def declared_encoding(data: bytes) -> str | None:
    """Return the encoding that a page declares in its first 1024 bytes, as the standard says, or None."""
    match = _CHARSET.search(data, 0, 1024) or _XML_ENCODING.match(data, 0, 1024)
    return match[1].decode("ascii") if match else None


def read(text: str) -> list[Section]:
    r"""Return the sections of a page, each block a section that continues the one before.

    Scripts, styles, navigation, footers, forms' controls and what is hidden are left out; where the page has a
    ``<main>`` with text, so is all outside it.

    >>> [(section.text, section.line) for section in read("<h1>A</h1><p>One &amp; two</p><nav>no</nav>")]
    [('One & two\n\n', 1)]
    """
    titled = _TITLE.search(_BODY.split(text[:_TITLE_WITHIN], 1)[0])
    title = unescape(titled[1]) if titled else ""
    start, end = _MAIN.search(text), _MAIN_END.search(text)
    main: list[Section] = []
    if start is not None:
        inside = text[start.start() : end.start() if end and end.start() > start.start() else len(text)]
        main = _Page(inside, title, 1 + text.count("\n", 0, start.start())).sections
    return main or _Page(text, title, 1).sections


class _Page:
    """One pass over a page, or a part of it that begins on a line."""

    def __init__(self, text: str, title: str, line: int) -> None:
        self.sections: list[Section] = []
        self._outline = Outline(title)
        self._pieces: list[str] = []  # of the open block; its newlines are those of the source
        self._line = line  # where the open block starts
        self._now = line
        self._headings = self._outline.headings
        self._continues = False
        self._heading = 0
        self._row = False
        self._code = False
        self._bullet = False
        self._skipping = ""
        self._depth = 0
        self._scan(text)

    def _scan(self, text: str) -> None:
        position = 0
        search = _MARKUP.search
        while match := search(text, position):
            start, end = match.span()
            if start > position:
                self._text(text[position:start])
            position = end
            if (name := match["name"]) is None:
                self._advance(text, start, end)
                continue
            name = name.lower()
            if name in _RAW and not match["close"]:
                position = self._raw(name, text, end, closed=match["attributes"].endswith("/"))
            else:
                self._tag(name, bool(match["close"]), match["attributes"])
            self._advance(text, start, position)
        self._text(text[position:])
        self._end_heading()
        self._flush("")

    def _advance(self, text: str, start: int, end: int) -> None:
        newlines = text.count("\n", start, end)
        if newlines:
            self._now += newlines
            if self._pieces:
                self._pieces.append("\n" * newlines)

    def _text(self, text: str) -> None:
        if not self._skipping:
            if not self._pieces:
                self._line = self._now
            self._pieces.append(text)
        elif self._pieces:
            self._pieces.append("\n" * text.count("\n"))
        self._now += text.count("\n")

    def _raw(self, name: str, text: str, start: int, *, closed: bool) -> int:
        """Pass over an element whose inside is not markup; return where it ends."""
        close = re.compile(rf"</{name}(?=[\s/>])[^>]*+>?", re.IGNORECASE).search(text, start)
        return close.end() if close else start if closed else len(text)

    def _tag(self, name: str, close: bool, attributes: str) -> None:
        if self._skipping:
            if name == self._skipping:
                self._depth += -1 if close else 1
                if not self._depth:
                    self._skipping = ""
            return
        if not close and self._drops(name, attributes):
            self._flush_block(name)
            self._skipping = name
            self._depth = 1
            return
        if name in _HEADINGS:
            self._end_heading()
            self._flush("\n\n")
            if not close:
                self._heading = _HEADINGS[name]
        elif name == "pre":
            self._flush_block(name)
            self._code = not close
        elif name in {"td", "th"}:
            if not close:
                self._row = True
                if self._pieces:
                    self._pieces.append(" | ")
        else:
            self._flush_block(name)
            if name in {"li", "ul", "ol"}:
                self._bullet = name == "li" and not close

    def _drops(self, name: str, attributes: str) -> bool:
        if name in _DROPPED:
            return True
        if not attributes or name not in _HIDEABLE:
            return False
        role = _ROLE.search(attributes)
        return (role is not None and role[1].lower() in {"navigation", "search", "contentinfo"}) or (
            _INVISIBLE.search(attributes) is not None
        )

    def _flush_block(self, name: str) -> None:
        end = _BLOCKS.get(name)
        if end is None:
            return
        if self._heading:
            if name == "br":
                self._pieces.append(" ")
                return
            if "".join(self._pieces).strip():
                self._end_heading()
        self._flush(end)

    def _end_heading(self) -> None:
        if not self._heading:
            return
        raw = "".join(self._pieces)
        text = " ".join(unescape(raw.lstrip()[:1000]).split()).rstrip(_PERMALINKS)
        level, self._heading = self._heading, 0
        self._pieces.clear()
        if text:
            self._headings = self._outline.enter(level, text)
            self._continues = False

    def _flush(self, end: str) -> None:
        """Make the open block a section; ``end`` is what parts it from the next."""
        if self._heading:
            return
        raw = "".join(self._pieces)
        row, self._row = self._row, False
        self._pieces.clear()
        if not raw or raw.isspace():
            return
        leading = raw[: len(raw) - len(raw.lstrip())].count("\n")
        if self._code:
            # A reference to a newline (&#10;) must not count as a line of the source.
            lines = [unescape(line).replace("\n", " ").rstrip() for line in raw.split("\n")][leading:]
        else:
            lines = [" ".join(unescape(line).split()) for line in raw.split("\n")][leading:]
        while lines and not lines[-1]:
            lines.pop()
        while lines and not lines[0]:
            leading += 1
            del lines[0]
        if row:
            lines = [" ".join(line for line in lines if line).strip("| ")]
        if not any(lines):
            return
        if self._bullet and not self._code:
            lines[0] = f"- {lines[0]}"
            self._bullet = False
        text = "\n".join(lines) + end
        self.sections.append(
            Section(text, self._line + leading, self._headings, code=self._code, continues=self._continues)
        )
        self._continues = True
