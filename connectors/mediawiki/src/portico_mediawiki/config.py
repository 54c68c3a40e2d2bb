"""The settings of a wiki."""

from __future__ import annotations

from importlib.metadata import version

from attrs import Attribute, field, frozen, validators

from portico.plugins import ValueForm

NAMESPACE = ValueForm("[0-9]+", "the number of a namespace, as in '4'")
CLAUSES = {"incategory": ("Equal", "Not"), "intitle": ("Equal", "Not"), "namespace": ("Equal", "AnyOf")}
"""The clauses of the filters."""


def _header(_: object, attribute: Attribute[str], value: str) -> None:
    if not (value.isascii() and value.isprintable()) or set(value) & set("()"):
        raise ValueError(f"{attribute.name} is an address or an e-mail in ASCII letters, without brackets")


@frozen
class MediaWikiSettings:
    """The settings of a source that uses `mediawiki`.

    >>> MediaWikiSettings(contact="mailto:ann@example.org").headers
    {'User-Agent': 'portico-mediawiki/0.1.0 (mailto:ann@example.org)'}
    """

    base_url: str = field(
        default="https://en.wikipedia.org/w/api.php",
        validator=ValueForm.service_address("https://host/w/api.php"),
        metadata={"doc": "Address of the wiki's `api.php`; the page Special:Version of a wiki names it."},
    )
    contact: str = field(
        default="",
        validator=_header,
        metadata={
            "doc": "Your e-mail or address, sent in the User-Agent. Wikimedia's wikis want to know whom to ask, "
            "and slow or refuse who does not say. Not set: the `contact` of `[http.httpx]`."
        },
    )
    maxlag: int | None = field(
        default=None,
        validator=validators.optional(validators.ge(0)),
        metadata={
            "doc": "Seconds that the wiki's databases may lag behind; when it is more, a search is refused. "
            "Set 5 for work in the background."
        },
    )

    @property
    def headers(self) -> dict[str, str]:
        """The header with the contact, as Wikimedia asks for it; without one, the HTTP client's header is sent."""
        agent = f"portico-mediawiki/{version('portico-mediawiki')} ({self.contact})"
        return {"User-Agent": agent} if self.contact else {}
