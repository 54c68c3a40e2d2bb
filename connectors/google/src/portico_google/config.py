"""The settings of Google Custom Search."""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import urlsplit

from attrs import Attribute, field, frozen, validators

from portico.registration import Secret

__all__ = ["GoogleSettings"]


def _address(_: object, attribute: Attribute[Any], value: str) -> None:
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"{attribute.name} is of the form https://host/customsearch/v1, not {value!r}")
    if parts.username or parts.password:
        raise ValueError(f"{attribute.name} has a user or password in it: set api_key instead")


def _key(_: object, attribute: Attribute[Any], value: Secret) -> None:
    if not value.reveal() or not (value.reveal().isascii() and value.reveal().isprintable()):
        raise ValueError(f"{attribute.name} is empty, or has characters in it that no key has, perhaps a line break")


def _engine(_: object, attribute: Attribute[Any], value: str) -> None:
    if not value or "/" in value or any(letter.isspace() for letter in value):
        raise ValueError(f"{attribute.name} is the engine's ID alone, such as 017576662512468239146:omuauf, no address")


@frozen
class GoogleSettings:
    """What can be set for a source that uses `google`.

    >>> GoogleSettings(api_key=Secret("k"), search_engine_id="0123:abc").base_url
    'https://customsearch.googleapis.com/customsearch/v1'
    """

    api_key: Secret = field(validator=_key, metadata={"doc": "The API key, with the Custom Search API enabled."})
    search_engine_id: str = field(
        validator=_engine,
        metadata={"doc": "The ID of your Programmable Search Engine (`cx`), which says what is searched."},
    )
    base_url: str = field(
        default="https://customsearch.googleapis.com/customsearch/v1",
        validator=_address,
        metadata={"doc": "Where the service is; `…/v1/siterestrict` is the one for engines of at most ten sites."},
    )
    country: str | None = field(
        default=None,
        validator=validators.optional(validators.matches_re("[A-Za-z]{2}")),
        metadata={"doc": "Where the reader is (`gl`), such as `de`; it moves results from there up."},
    )
    language: str | None = field(
        default=None,
        validator=validators.optional(validators.matches_re("[A-Za-z]{2,3}(-[A-Za-z]+)?")),
        metadata={"doc": "The reader's language (`hl`), such as `de`; the filter `language` is that of the pages."},
    )
    safe_search: Literal["active", "off"] | None = field(
        default=None,
        validator=validators.optional(validators.in_(("active", "off"))),
        metadata={"doc": "Adult content (`safe`): `active` leaves it out; not set: as the engine has it."},
    )
