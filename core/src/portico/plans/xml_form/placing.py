"""Where the attributes of a call stand in the text: looked for only when somebody asks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

from portico.plans.xml_form.tags import read_tag
from portico.plans.xml_form.written import WrittenCall, format_error

__all__ = ["attribute_offset"]

_TAG = re.compile(r"<\s*+/?+\s*+[^\s<>/=\"']++")
_ATTRIBUTE = re.compile(r"\s++([^\s=<>/\"']++)\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+')")


def attribute_offset(text: str, start: int, call: WrittenCall, argument: str, *, strict: bool) -> int | None:
    """Return where an argument of the call that begins at ``start`` is written, in whatever case; None if it is not."""
    tag = _TAG.match(text, start)
    if tag is None:
        return None
    offsets = _strictly(text, tag.end()) if strict else _leniently(text, tag.end(), call)
    found = offsets.get(argument)
    if found is None:
        lowered = argument.lower()
        found = next((offset for name, offset in offsets.items() if name.lower() == lowered), None)
    return found


def _strictly(text: str, position: int) -> Mapping[str, int]:
    found: dict[str, int] = {}
    while match := _ATTRIBUTE.match(text, position):
        found.setdefault(match[1], match.start(1))
        position = match.end()
    return found


def _leniently(text: str, position: int, call: WrittenCall) -> Mapping[str, int]:
    found: dict[str, int] = {}
    # What was read once is read again in the same way, without an error.
    read_tag(text, position, call.function, [], partial(format_error, text), offsets=found)
    return found
