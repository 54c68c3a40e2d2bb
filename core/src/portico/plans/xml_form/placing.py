"""Where the attributes of a call stand in the text: looked for only when somebody asks."""

from __future__ import annotations

import re
from collections.abc import Mapping

from portico.plans.xml_form.tags import read_tag
from portico.plans.xml_form.written import WrittenCall, format_error

__all__ = ["attribute_offset"]

_TAG = re.compile(r"<\s*+/?+\s*+[^\s<>/=\"']++")
_ATTRIBUTE = re.compile(r"\s++([^\s=<>/\"']++)\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+')")


def attribute_offset(text: str, start: int, call: WrittenCall, argument: str, *, strict: bool) -> int | None:
    """Return where an argument of the call that begins at ``start`` is written, in whatever case; None if it is not."""
    offsets = _strictly(text, start) if strict else _leniently(text, start, call)
    found = offsets.get(argument)
    if found is None:
        lowered = argument.lower()
        found = next((offset for name, offset in offsets.items() if name.lower() == lowered), None)
    return found


def _strictly(text: str, start: int) -> Mapping[str, int]:
    tag = _TAG.match(text, start)
    position = start if tag is None else tag.end()
    found: dict[str, int] = {}
    while match := _ATTRIBUTE.match(text, position):
        found.setdefault(match[1], match.start(1))
        position = match.end()
    return found


def _leniently(text: str, start: int, call: WrittenCall) -> Mapping[str, int]:
    tag = _TAG.match(text, start)
    found: dict[str, int] = {}
    if tag is not None:
        # What was read once is read again in the same way, without an error.
        read_tag(
            text, tag.end(), call.function, [], lambda offset, what: format_error(text, offset, what), offsets=found
        )
    return found
