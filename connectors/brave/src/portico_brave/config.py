"""The settings of Brave's search."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from attrs import Attribute, field, frozen, validators

from portico.registration import Secret

__all__ = ["PATTERNS", "BraveSettings"]

PATTERNS = {
    "country": "[A-Za-z]{2}|ALL",
    "freshness": r"p[dwmy]|\d{4}-\d\d-\d\dto\d{4}-\d\d-\d\d",
    "language": "[a-z]{2,3}(-[a-z]{2,4})?",
    "safesearch": "off|moderate|strict",
}
"""What Brave understands, of what settings and filters may both say, as regular expressions."""


def _key(_: object, attribute: Attribute[Any], value: Secret) -> None:
    # Brave answers a key that is empty with a complaint of a parameter, which does not say that it is the key.
    if not value.reveal().strip():
        raise ValueError(f"{attribute.name} is empty; keys are made at https://api-dashboard.search.brave.com")


def _address(_: object, attribute: Attribute[Any], value: str) -> None:
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"{attribute.name} is of the form https://host/res/v1, not {value!r}")


def _without_slash(url: str) -> str:
    return url.rstrip("/")


@frozen
class BraveSettings:
    """What can be set for a source that uses `brave`.

    >>> BraveSettings(api_key=Secret("BSA…"), country="DE").base_url
    'https://api.search.brave.com/res/v1'

    Raises ``ValueError`` for an empty key and for values that Brave does not know.
    """

    api_key: Secret = field(
        validator=_key,
        metadata={"doc": "The key (subscription token) of a plan for search. Needed."},
    )
    base_url: str = field(
        default="https://api.search.brave.com/res/v1",
        validator=_address,
        converter=_without_slash,
        metadata={"doc": "Address of the service, up to its version."},
    )
    country: str | None = field(
        default=None,
        validator=validators.optional(validators.matches_re(PATTERNS["country"])),
        metadata={"doc": "Where results come from, two letters: `DE`; `ALL` for the world. Not set: Brave's `US`."},
    )
    language: str | None = field(
        default=None,
        validator=validators.optional(validators.matches_re(PATTERNS["language"])),
        metadata={"doc": "The language of results: `de`. Not set: Brave's `en`."},
    )
    safesearch: str | None = field(
        default=None,
        validator=validators.optional(validators.matches_re(PATTERNS["safesearch"])),
        metadata={"doc": "What is kept back of pages for adults: `off`, `moderate`, `strict`. Not set: `moderate`."},
    )
    extra_snippets: bool = field(
        default=False,
        metadata={"doc": "Ask for up to five more excerpts of each page; not every plan has them."},
    )
