"""The settings of the reader and of the search for full pages."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from attrs import Attribute, field, frozen, validators

from portico.plugins import Secret
from portico_web.pages.addresses import Allowed

_ONE_WORD = validators.optional(validators.matches_re(r"[!-'*-~]+"))
_PORT = validators.and_(validators.ge(1), validators.le(65535))
_SECONDS = validators.and_(validators.gt(0.0), validators.le(3600.0))


def _check_allowed(_: object, attribute: Attribute[Any], value: tuple[str, ...]) -> None:
    Allowed.parse(value)


def _proxy(_: object, attribute: Attribute[Any], value: Secret | None) -> None:
    if value is None:
        return
    parts = urlsplit(value.reveal())
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"{attribute.name} is of the form http://host:port")


@frozen
class WebPagesSettings:
    """What can be set under ``[pages.web-pages]``.

    >>> WebPagesSettings().ports
    (80, 443, 8080, 8443)
    """

    contact: str | None = field(
        default=None,
        validator=_ONE_WORD,
        metadata={"doc": "Who answers for the requests: a mail address or a page, sent in the User-Agent."},
    )
    robots: bool = field(
        default=True, metadata={"doc": "Whether robots.txt is honoured; it is read for `PorticoPageReader`."}
    )
    allow: tuple[str, ...] = field(
        default=(),
        validator=_check_allowed,
        metadata={
            "doc": "Hosts and networks that may be read although they are not public, at any port: "
            '"intranet.example", "*.intranet.example", "10.1.0.0/16", "127.0.0.1".'
        },
    )
    ports: tuple[int, ...] = field(
        default=(80, 443, 8080, 8443),
        validator=[validators.min_len(1), validators.deep_iterable(_PORT)],
        metadata={"doc": "The ports that are asked at public addresses."},
    )
    seconds: float = field(
        default=20.0,
        validator=_SECONDS,
        metadata={
            "doc": "Seconds for a whole read: robots.txt, redirects, the page, and its text, which takes at most half."
        },
    )
    max_bytes: int = field(
        default=10_000_000, validator=validators.ge(1), metadata={"doc": "Bytes of a page, as sent and once unpacked."}
    )
    max_characters: int = field(
        default=1_000_000,
        validator=validators.ge(1),
        metadata={"doc": "Characters of a page's text; a longer text is cut and says so."},
    )
    concurrency: int = field(
        default=8, validator=validators.ge(1), metadata={"doc": "Requests at one time, to all hosts together."}
    )
    per_host: int = field(default=2, validator=validators.ge(1), metadata={"doc": "Requests at one time to one host."})
    proxy: Secret | None = field(
        default=None,
        validator=_proxy,
        metadata={
            "doc": "A proxy, http or https, for all requests. It looks names up by itself, so only what a link "
            "spells out is checked. Proxies of the environment are not used unless set here: "
            '{ env = "HTTPS_PROXY" }.'
        },
    )


@frozen
class FullPagesSettings:
    """What can be set for a source with ``use = "full-pages"``.

    >>> FullPagesSettings(source="web").max_pages
    5
    """

    source: str = field(
        validator=validators.min_len(1),
        metadata={"doc": "The configured source, [search.NAME], whose results are read.", "service": "TextSearch"},
    )
    max_pages: int = field(
        default=5,
        validator=validators.ge(1),
        metadata={"doc": "Pages read for one search; other results keep their snippet."},
    )
    seconds: float = field(
        default=10.0,
        validator=_SECONDS,
        metadata={"doc": "Seconds in which the pages of one search are read; what comes later keeps its snippet."},
    )
    max_characters: int = field(
        default=20_000,
        validator=validators.ge(1),
        metadata={"doc": "Characters of one page; a longer text is cut between words."},
    )
    concurrency: int = field(
        default=5, validator=validators.ge(1), metadata={"doc": "Pages of one search read at one time."}
    )
