"""The settings of a service that speaks the Bing v7 interface."""

from __future__ import annotations

from typing import Literal

from attrs import field, frozen, validators

from portico.plugins import Secret, ValueForm

MARKET = ValueForm("(?i:[a-z]{2}-[a-z-]+)", "a language and a country, as in 'en-GB'")
LANGUAGE = ValueForm("(?i:[a-z]{2}(-[a-z-]+)?)", "a language's short name, as in 'de' or 'pt-br'")


@frozen
class BingSettings:
    """The settings of a source that uses `bing`.

    >>> BingSettings(api_key=Secret("k"), api_key_header="Authorization", api_key_scheme="Bearer").headers
    {'Authorization': Secret(literal)}
    """

    api_key: Secret = field(validator=ValueForm.service_key(), metadata={"doc": "The key of the service."})
    base_url: str = field(
        default="https://api.bing.microsoft.com/v7.0",
        validator=ValueForm.service_address("https://host/v7.0"),
        metadata={
            "doc": "Where the service is, up to what comes before `/search`. The default is Microsoft's own address, "
            "which was retired on 2025-08-11: set that of a service which speaks the same interface."
        },
    )
    api_key_header: str = field(
        default="Ocp-Apim-Subscription-Key",
        validator=ValueForm("[A-Za-z0-9-]+", "a header's name, as in 'Authorization'"),
        metadata={"doc": "The header that the key goes into."},
    )
    api_key_scheme: str = field(
        default="",
        validator=ValueForm("[A-Za-z0-9-]*", "one word, as in 'Bearer', or nothing"),
        metadata={"doc": "The word before the key in that header, such as `Bearer`; empty for none."},
    )
    market: str | None = field(
        default=None,
        validator=validators.optional(MARKET),
        metadata={"doc": "Where results come from (`mkt`), such as `en-GB`; not set: the service guesses."},
    )
    language: str | None = field(
        default=None,
        validator=validators.optional(LANGUAGE),
        metadata={"doc": "The language of the service's own words (`setLang`), such as `en`; not set: the market's."},
    )
    safe_search: Literal["Off", "Moderate", "Strict"] | None = field(
        default=None,
        validator=validators.optional(validators.in_(("Off", "Moderate", "Strict"))),
        metadata={
            "doc": "Adult content (`safeSearch`): `Off`, `Moderate` or `Strict`; not set: the service's `Moderate`."
        },
    )

    @property
    def headers(self) -> dict[str, Secret]:
        """The header that the key goes into, as the service wants it."""
        scheme, key = self.api_key_scheme, self.api_key
        return {self.api_key_header: Secret(f"{scheme} {key.reveal()}", origin=key.origin) if scheme else key}
