"""The settings of Google Custom Search."""

from __future__ import annotations

from typing import Literal

from attrs import Attribute, field, frozen, validators

from portico.plugins import Secret, ValueForm

COUNTRY = ValueForm("[A-Za-z]{2}", "two letters, as in 'de'")
LANGUAGE = ValueForm("[A-Za-z]{2,3}(-[A-Za-z]+)?", "a language's short name, as in 'de' or 'zh-TW'")


def _engine(_: object, attribute: Attribute[str], value: str) -> None:
    if not value or "/" in value or any(letter.isspace() for letter in value):
        raise ValueError(f"{attribute.name} is the engine's ID alone, such as 017576662512468239146:omuauf, no address")


@frozen
class GoogleSettings:
    """The settings of a source that uses `google`.

    >>> GoogleSettings(api_key=Secret("k"), search_engine_id="0123:abc").base_url
    'https://customsearch.googleapis.com/customsearch/v1'
    """

    api_key: Secret = field(
        validator=ValueForm.service_key(), metadata={"doc": "The API key, with the Custom Search API enabled."}
    )
    search_engine_id: str = field(
        validator=_engine,
        metadata={"doc": "The ID of your Programmable Search Engine (`cx`), which says what is searched."},
    )
    base_url: str = field(
        default="https://customsearch.googleapis.com/customsearch/v1",
        validator=ValueForm.service_address("https://host/customsearch/v1"),
        metadata={"doc": "Where the service is; `…/v1/siterestrict` is the one for engines of at most ten sites."},
    )
    country: str | None = field(
        default=None,
        validator=validators.optional(COUNTRY),
        metadata={"doc": "Where the reader is (`gl`), such as `de`; it moves results from there up."},
    )
    language: str | None = field(
        default=None,
        validator=validators.optional(LANGUAGE),
        metadata={"doc": "The reader's language (`hl`), such as `de`; the filter `language` is that of the pages."},
    )
    safe_search: Literal["active", "off"] | None = field(
        default=None,
        validator=validators.optional(validators.in_(("active", "off"))),
        metadata={"doc": "Adult content (`safe`): `active` leaves it out; not set: as the engine has it."},
    )
