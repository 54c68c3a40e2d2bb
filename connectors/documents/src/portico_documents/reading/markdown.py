"""Markdown: headings, code, front matter; comments are left out, all else stays as it is written.

This finds where blocks start, as CommonMark has it, and renders nothing: a passage is the file's own lines, so what
is quoted is there to be found, and links keep their addresses.
"""

from __future__ import annotations

import re

from portico_documents.chunking import Section
from portico_documents.reading.outline import LineSections, Outline

_ATX = re.compile(r"(#{1,6})(?:[ \t]+(.*))?$", re.DOTALL)
_FENCE = re.compile(r"(`{3,})[^`]*$|(~{3,})", re.DOTALL)
_LIST_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])")
_COMMENT = re.compile(r"<!--.*?-->")
_ANCHOR = re.compile(r"\s*\{[#.:][^{}]*\}\s*$")
_TITLE = re.compile(r"""title\s*[:=]\s*["']?(.*?)["']?\s*$""", re.IGNORECASE)
_LONGEST_SETEXT = 3
_NO_PARAGRAPH = frozenset("><|=")


def read(text: str) -> list[Section]:
    r"""Return the sections of a Markdown file, under its headings and the title of its front matter.

    >>> [(section.text, section.headings, section.code) for section in read("# A\nHello\n```\nx = 1\n```")]
    [('Hello\n', ('A',), False), ('```\nx = 1\n```', ('A',), True)]
    """
    lines = text.split("\n")
    start, title = _front_matter(lines)
    writer = LineSections(lines, Outline(title), start)
    _scan(lines, start, writer)
    # A file that is nothing but front matter is not empty for that.
    return writer.finish() or [Section(text, 1, (title,) if title else (), code=True)]


def _scan(lines: list[str], start: int, writer: LineSections) -> None:
    fence = ""
    comment = -1
    indented = in_list = False
    after_blank = True
    paragraph = -1
    for index in range(start, len(lines)):
        line = lines[index]
        bare = line.lstrip()
        if fence:
            if bare.startswith(fence) and not bare.strip(fence[0] + " \t"):
                fence = ""
                writer.turn(index + 1, code=False)
            continue
        if comment >= 0:
            if "-->" in bare:
                if not bare.partition("-->")[2].strip():
                    writer.leave_out(comment, index + 1)
                comment = -1
            continue
        if not bare:
            after_blank = True
            paragraph = -1
            continue
        first = bare[0]
        indent = len(line) - len(bare)
        deep = indent >= 4 or (indent > 0 and "\t" in line[:indent])
        if after_blank:
            if not indent:
                in_list = False
            if deep and not in_list:
                if not indented:
                    indented = True
                    writer.turn(index, code=True)
                after_blank = False
                continue
            paragraph = -1 if first in _NO_PARAGRAPH else index
        if indented:
            if deep:
                continue
            indented = False
            paragraph = index
            writer.turn(index, code=False)
        after_blank = False
        if first in "`~" and (match := _FENCE.match(bare)):
            fence = match[1] or match[2]
            writer.turn(index, code=True)
            paragraph = -1
        elif first == "#" and not deep and (match := _ATX.match(bare)):
            writer.heading(index, index + 1, len(match[1]), _heading(match[2] or ""))
            after_blank = True
            in_list = False
        elif first in "=-" and 0 <= paragraph < index and not deep and not bare.rstrip().strip(first):
            if index - paragraph <= _LONGEST_SETEXT:
                writer.heading(
                    paragraph, index + 1, 1 if first == "=" else 2, _heading(" ".join(lines[paragraph:index]))
                )
                after_blank = True
            paragraph = -1
        elif _LIST_ITEM.match(bare):
            in_list = True
            paragraph = -1
        elif first == "<" and bare.startswith("<!--"):
            if "-->" not in bare:
                comment = index
            elif not _COMMENT.sub("", bare).strip():
                writer.leave_out(index, index + 1)


def _heading(text: str) -> str:
    """Take the marks off a heading: closing ``#``, links, emphasis, code, an anchor in braces."""
    text = text[:500].strip()
    text = re.sub(r"(?:^|[ \t])#+$", "", text)
    text = _ANCHOR.sub("", text)
    return _LINK.sub(r"\1", text).replace("`", "").replace("**", "").strip("*_ \t")


def _front_matter(lines: list[str]) -> tuple[int, str]:
    """Return the index of the first line after the front matter, and the title that it gives."""
    mark = lines[0].rstrip()
    if mark not in {"---", "+++"}:
        return 0, ""
    title = ""
    for index in range(1, len(lines)):
        line = lines[index].rstrip()
        if line == mark or (line == "..." and mark == "---"):
            return index + 1, title
        if not title and (match := _TITLE.match(line[:500])):
            title = match[1]
    return 0, ""
