"""The settings of Tavily's search."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from attrs import Attribute, field, frozen, validators

from portico.registration import Secret

__all__ = ["PATTERNS", "TavilySettings"]

PATTERNS = {
    "country": "[a-z][a-z ]+",
    "time_range": "day|week|month|year",
    "topic": "general|news|finance",
}
"""What Tavily understands, of what settings and filters may both say, as regular expressions."""


def _key(_: object, attribute: Attribute[Any], value: Secret) -> None:
    key = value.reveal()
    if not key.strip():
        raise ValueError(f"{attribute.name} is empty; keys are made at https://app.tavily.com")
    # It goes into a header after "Bearer", where a blank would end it.
    if key.split() != [key]:
        raise ValueError(f"{attribute.name} has blanks or a line break in it, which no key has")


def _address(_: object, attribute: Attribute[Any], value: str) -> None:
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"{attribute.name} is of the form https://host, not {value!r}")


def _without_slash(url: str) -> str:
    return url.rstrip("/")


@frozen
class TavilySettings:
    """What can be set for a source that uses `tavily`.

    >>> TavilySettings(api_key=Secret("tvly-…"), topic="news").base_url
    'https://api.tavily.com'

    Raises ``ValueError`` for an empty key and for values that Tavily does not know.
    """

    api_key: Secret = field(
        validator=_key,
        metadata={"doc": "The key, `tvly-…`. Needed."},
    )
    base_url: str = field(
        default="https://api.tavily.com",
        validator=_address,
        converter=_without_slash,
        metadata={"doc": "Address of the service."},
    )
    topic: str = field(
        default="general",
        validator=validators.matches_re(PATTERNS["topic"]),
        metadata={"doc": "What is searched: `general`, `news` (with dates) or `finance`."},
    )
    country: str | None = field(
        default=None,
        validator=validators.optional(validators.matches_re(PATTERNS["country"])),
        metadata={"doc": "A country whose pages come first, by its English name: `germany`; for `general` only."},
    )
    search_depth: str = field(
        default="basic",
        validator=validators.in_(("basic", "advanced", "fast", "ultra-fast")),
        metadata={"doc": "`basic`, `fast` and `ultra-fast` cost one credit, `advanced` two, with better passages."},
    )
    include_answer: bool = field(
        default=False,
        metadata={"doc": "Have Tavily's model write an answer too, into the results' `metadata`."},
    )
    include_raw_content: bool = field(
        default=False,
        metadata={"doc": "Have the whole text of each page, too; it is in the records, not in the results' texts."},
    )
