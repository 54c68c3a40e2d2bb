"""reStructuredText: section titles and literal blocks; all else stays as it is written.

Titles follow docutils: a line of one punctuation character under, or over and under, one line of text. The level
of each style is the order in which the styles appear. Directives keep their content.
"""

from __future__ import annotations

import re

from portico_documents.chunking import Section
from portico_documents.reading.outline import LineSections, Outline

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*+\s*$")
_CODE_DIRECTIVE = re.compile(
    r"\.\. +(?:code|code-block|sourcecode|parsed-literal|prompt|doctest|testcode|testoutput|math|graphviz)::"
)
_ROLE = re.compile(r":[\w:.+-]{1,60}:`([^`<]*)(?:<[^`]*)?`")
_SHORTEST_BELOW_LONGER_TITLE = 4


def read(text: str) -> list[Section]:
    r"""Return the sections of a reStructuredText file.

    >>> [(section.text, section.headings) for section in read("Title\n=====\n\nHello.\n\nUse\n---\n\nSo.")]
    [('Hello.\n\n', ('Title',)), ('So.', ('Title', 'Use'))]
    """
    lines = text.split("\n")
    writer = LineSections(lines, Outline())
    styles: list[tuple[str, bool]] = []
    literal_above = -1  # inside a literal block: the indentation that ends it
    after_blank = True
    index = 0
    while index < len(lines):
        line = lines[index]
        bare = line.lstrip()
        if not bare:
            after_blank = True
            index += 1
            continue
        indent = len(line) - len(bare)
        if literal_above >= 0:
            if indent > literal_above:
                writer.turn(index, code=True)
                index += 1
                continue
            literal_above = -1
            writer.turn(index, code=False)
        if after_blank and (title := _title(lines, index)) is not None:
            heading, end, style = title
            if style not in styles:
                styles.append(style)
            writer.heading(index, end, styles.index(style) + 1, heading)
            index = end
            continue
        after_blank = False
        if bare.startswith(".. "):
            if _CODE_DIRECTIVE.match(bare):
                writer.turn(index, code=True)
                literal_above = indent
        elif bare.rstrip().endswith("::"):
            literal_above = indent
        index += 1
    return writer.finish()


def _title(lines: list[str], index: int) -> tuple[str, int, tuple[str, bool]] | None:
    """Return the title that starts on a line: its text, the index after it, its style."""
    line = lines[index]
    over = _ADORNMENT.match(line)
    if over is not None:
        if index + 2 >= len(lines) or not lines[index + 1].strip():
            return None
        under = _ADORNMENT.match(lines[index + 2])
        fits = under is not None and under[1] == over[1] and len(lines[index + 2].rstrip()) == len(line.rstrip())
        return (_heading(lines[index + 1]), index + 3, (over[1], True)) if fits and len(line.rstrip()) > 1 else None
    if line[0].isspace() or index + 1 >= len(lines):
        return None
    under = _ADORNMENT.match(lines[index + 1])
    if under is None:
        return None
    length = len(lines[index + 1].rstrip())
    if length < len(line.rstrip()) and length < _SHORTEST_BELOW_LONGER_TITLE:
        return None
    return _heading(line), index + 2, (under[1], False)


def _heading(text: str) -> str:
    """Take roles and marks off a title."""
    return _ROLE.sub(r"\1", text[:500].strip()).replace("`", "").replace("**", "")
