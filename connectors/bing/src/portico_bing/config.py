"""The settings of a service that speaks the Bing v7 interface."""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import urlsplit

from attrs import Attribute, field, frozen, validators

from portico.registration import Secret

__all__ = ["BingSettings"]


def _address(_: object, attribute: Attribute[Any], value: str) -> None:
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"{attribute.name} is of the form https://host/v7.0, not {value!r}")
    if parts.username or parts.password:
        raise ValueError(f"{attribute.name} has a user or password in it: set api_key instead")


def _key(_: object, attribute: Attribute[Any], value: Secret) -> None:
    if not value.reveal() or not (value.reveal().isascii() and value.reveal().isprintable()):
        raise ValueError(f"{attribute.name} is empty, or has characters in it that no key has, perhaps a line break")


@frozen
class BingSettings:
    """What can be set for a source that uses `bing`.

    >>> BingSettings(api_key=Secret("k"), api_key_header="Authorization", api_key_scheme="Bearer").headers
    {'Authorization': Secret(literal)}
    """

    api_key: Secret = field(validator=_key, metadata={"doc": "The key of the service."})
    base_url: str = field(
        default="https://api.bing.microsoft.com/v7.0",
        validator=_address,
        metadata={
            "doc": "Where the service is, up to what comes before `/search`. The default is Microsoft's own address, "
            "which was retired on 2025-08-11: set that of a service which speaks the same interface."
        },
    )
    api_key_header: str = field(
        default="Ocp-Apim-Subscription-Key",
        validator=validators.matches_re(r"[A-Za-z0-9-]+"),
        metadata={"doc": "The header that the key goes into."},
    )
    api_key_scheme: str = field(
        default="",
        validator=validators.matches_re(r"[A-Za-z0-9-]*"),
        metadata={"doc": "The word before the key in that header, such as `Bearer`; empty for none."},
    )
    market: str | None = field(
        default=None,
        validator=validators.optional(validators.matches_re("[A-Za-z]{2}-[A-Za-z-]+")),
        metadata={"doc": "Where results come from (`mkt`), such as `en-GB`; not set: the service guesses."},
    )
    language: str | None = field(
        default=None,
        validator=validators.optional(validators.matches_re("[A-Za-z]{2}(-[A-Za-z-]+)?")),
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
