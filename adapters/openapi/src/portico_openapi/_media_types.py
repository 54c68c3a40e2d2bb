"""Media types: which are JSON, which are text."""

from __future__ import annotations

import re

_NAME = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_MEDIA_TYPE = re.compile(rf"{_NAME}/{_NAME}(?:\s*;\s*{_NAME}=(?:{_NAME}|\"[ !#-\[\]-~]*\"))*\s*;?")
_LONGEST = 200
_TEXT_ENDINGS = ("+xml", "/xml", "+yaml", "/yaml", "/x-yaml", "/x-ndjson", "/jsonl", "/graphql", "/javascript", "/sql")


def is_media_type(text: str) -> bool:
    """Return whether a text is a media type, perhaps with parameters (RFC 9110, section 8.3.1)."""
    return len(text) <= _LONGEST and _MEDIA_TYPE.fullmatch(text) is not None


def name_of(media_type: str) -> str:
    """Return a media type without its parameters, in lower case."""
    return media_type.partition(";")[0].strip().casefold()


def is_json(media_type: str) -> bool:
    """Return whether a media type is JSON; one that leaves everything open counts.

    >>> is_json("application/problem+json; charset=utf-8"), is_json("*/*"), is_json("text/plain")
    (True, True, False)
    """
    name = name_of(media_type)
    return name.endswith(("/json", "+json")) or name in ("*/*", "application/*")


def is_text(media_type: str) -> bool:
    """Return whether a media type is text to read, other than JSON."""
    name = name_of(media_type)
    return name.startswith("text/") or name.endswith(_TEXT_ENDINGS)
