"""Where in the text of an XML plan its steps and their arguments stand, as line and column."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["XmlPlaces"]

_ATTRIBUTE = re.compile(r"""\s+([^\s=/>]+)\s*=\s*("[^"]*"|'[^']*')""")
_NAME = re.compile(r"<[^\s/>]+")
_ARGUMENTS = "arguments."


class XmlPlaces:
    r"""The places of the steps of a plan in a text that is well-formed; lines and columns count from 1.

    >>> text = '<plan>\n <function.Tone.Shout\n   text="hey"/>\n</plan>'
    >>> places = XmlPlaces(text, ["s1"])
    >>> places.of_finding("s1", "function"), places.of_finding("s1", "arguments.text")
    ((2, 2), (3, 4))

    ``steps`` are the ids of the plan's steps, in their order. What is not there has the place of what it would be in.
    """

    def __init__(self, text: str, steps: Sequence[str]) -> None:
        from portico.plans.xml_form.strict import parse_strictly

        self._text = text
        written = parse_strictly(text)
        offsets = [written.characters(call.offset) for call in written.calls]
        self._begins = dict(zip(steps, offsets, strict=False))

    def of_finding(self, step: str | None, place: str) -> tuple[int, int]:
        """Return the place of what a check found in a plan: in which step, and where inside of it."""
        begin = self._begins.get(step.partition("/")[0]) if step else None
        if begin is None:
            return (1, 1)
        if place.startswith(_ARGUMENTS):
            begin = self._attribute(begin, place.removeprefix(_ARGUMENTS).casefold())
        line = self._text.count("\n", 0, begin) + 1
        return line, begin - (self._text.rfind("\n", 0, begin) + 1) + 1

    def _attribute(self, begin: int, place: str) -> int:
        tag = _NAME.match(self._text, begin)
        best, length = begin, 0
        found = None if tag is None else _ATTRIBUTE.match(self._text, tag.end())
        while found is not None:
            name = found[1].casefold()
            # The longest name that the place begins with: a name may hold a dot.
            if len(name) > length and place.startswith(name) and place[len(name) : len(name) + 1] in ("", ".", "["):
                best, length = found.start(1), len(name)
            found = _ATTRIBUTE.match(self._text, found.end())
        return best
