"""The PageReader on httpx, trafilatura and pypdf."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from portico.errors import PluginNotInstalled, PorticoError, ResponseInvalid, ServiceTimeout, ServiceUnavailable
from portico.plugins import Services
from portico.ports import Page, PageReader, TextSearch
from portico_web.pages._wire import kind_of
from portico_web.pages.addresses import Allowed
from portico_web.pages.config import FullPagesSettings, WebPagesSettings
from portico_web.pages.extraction import Extractors, Job
from portico_web.pages.full_pages import FullPages
from portico_web.pages.links import LinkRules, shown
from portico_web.pages.robots import MOST_BYTES

if TYPE_CHECKING:
    import httpcore
    import httpx

    from portico_web.pages.connecting import Resolve
    from portico_web.pages.fetching import Fetcher


_SILENCE = 10.0


class WebPagesPageReader:
    """Read the main text of pages at public addresses.

    >>> import asyncio
    >>> async def refused(link):
    ...     reader = WebPagesPageReader()
    ...     try:
    ...         await reader.read(link)
    ...     except PorticoError as error:
    ...         return str(error)
    ...     finally:
    ...         await reader.aclose()
    >>> print(asyncio.run(refused("http://169.254.169.254/latest/meta-data/")).partition(";")[0])
    The link 'http://169.254.169.254/latest/meta-data/' is not read: the address 169.254.169.254 is not public \
(link-local, where clouds keep their metadata)

    A name is looked up once; every address that it has is checked, and one of these is connected to, under the
    name's certificate and Host. So it is for each redirect. HTML, PDF, plain text, Markdown, JSON and the like are
    read, in processes of their own that end when they take too long. Use one reader in one event loop, and close it.

    ``resolve`` and ``network`` replace how names are looked up and connections made, ``context`` how certificates
    are verified; ``transport`` replaces all three, and with them every check of an address.
    Raises ``AccessRefused``, ``LimitExceeded``, ``RateLimited``, ``ServiceUnavailable``, ``ServiceTimeout``,
    ``ResponseInvalid`` for a page without text, ``StoreError`` for a cache folder that cannot be used;
    ``PluginNotInstalled`` without the extra `pages`.
    """

    def __init__(
        self,
        settings: WebPagesSettings | None = None,
        services: Services | None = None,
        *,
        resolve: Resolve | None = None,
        network: httpcore.AsyncNetworkBackend | None = None,
        context: ssl.SSLContext | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        if find_spec("trafilatura") is None:
            raise PluginNotInstalled("Reading web pages needs more packages. Run `pip install 'portico-web[pages]'`.")
        self._settings = settings or WebPagesSettings()
        self._given = (resolve, network, context, transport)
        self._rules = LinkRules(
            Allowed.of(self._settings.allow), self._settings.ports, looks_up=self._settings.proxy is None
        )
        self._fetcher: Fetcher | None = None
        self._transport: httpx.AsyncBaseTransport | None = None
        self._extractors: Extractors | None = None
        self._closed = False
        self.name = "web-pages"

    async def read(self, link: str) -> Page:
        """Return the main text of the page at ``link``."""
        if not isinstance(link, str):
            raise TypeError(f"a link is a str, not {type(link).__name__}")
        if self._closed:
            raise RuntimeError("the page reader 'web-pages' is closed")
        seconds = self._settings.seconds
        try:
            async with asyncio.timeout(seconds):
                return await self._read(link)
        except TimeoutError as error:
            raise ServiceTimeout(
                f"The page {shown(link)} was not read within {seconds:g} seconds (seconds)."
            ) from error
        except PorticoError:
            raise
        except Exception as error:
            # What a stranger's server sends goes through several libraries; none of their errors is the caller's.
            raise ResponseInvalid(f"The page {shown(link)} cannot be read: {type(error).__name__}: {error}.") from error

    async def aclose(self) -> None:
        """Close connections, end processes; a second call does nothing."""
        self._closed = True
        transport, self._transport, self._fetcher = self._transport, None, None
        extractors, self._extractors = self._extractors, None
        if transport is not None:
            await transport.aclose()
        if extractors is not None:
            await extractors.aclose()

    async def _read(self, link: str) -> Page:
        self._rules.checked(link)
        fetched = await self._opened().fetch(link)
        kind = kind_of(fetched.media_type, fetched.data[:2048]) or "text"
        job = Job(
            kind,
            fetched.data,
            fetched.content_type,
            characters=self._settings.max_characters,
            pages=self._settings.max_pdf_pages,
            seconds=self._settings.extract_seconds,
        )
        if self._closed:
            raise ServiceUnavailable(f"The page {shown(link)} was not read: the reader was closed meanwhile.")
        if self._extractors is None:
            self._extractors = Extractors(self._settings.processes)
        found = await self._extractors.extract(job, shown(fetched.link))
        media_type = {"html": "text/html", "pdf": "application/pdf", "text": "text/plain"}[kind]
        own = fetched.media_type if kind_of(fetched.media_type) == kind and fetched.media_type else media_type
        return Page(found.text, fetched.link, found.title, own, found.cut)

    def _opened(self) -> Fetcher:
        if self._fetcher is None:
            from portico_web.pages.fetching import Bounds, Fetcher, Turns

            settings = self._settings
            plain = self._checked_transport()
            self._transport = self._keeping(plain)
            self._fetcher = Fetcher(
                self._transport,
                plain,
                rules=self._rules,
                bounds=Bounds(settings.max_bytes, settings.max_unpacked_bytes, settings.max_redirects),
                turns=Turns(settings.concurrency, settings.per_host),
                agent=settings.agent,
                user_agent=_user_agent(settings),
                silence=max(_SILENCE, settings.seconds / 2),
                robots=settings.robots,
            )
        return self._fetcher

    def _checked_transport(self) -> httpx.AsyncBaseTransport:
        from portico_web.pages.connecting import BorrowedTransport, CheckedNetwork, CheckedTransport, SystemNames

        resolve, network, context, transport = self._given
        if transport is not None:
            return BorrowedTransport(transport)
        if resolve is None:
            resolve = SystemNames()
        proxy = self._settings.proxy
        return CheckedTransport(
            CheckedNetwork(self._rules, resolve, network),
            connections=self._settings.concurrency,
            # Chunks and their sizes may come to as much again as the page.
            most=2 * max(self._settings.max_bytes, MOST_BYTES),
            proxy=proxy.reveal() if proxy is not None else None,
            context=context,
        )

    def _keeping(self, transport: httpx.AsyncBaseTransport) -> httpx.AsyncBaseTransport:
        """Put hishel's cache before a transport, unless there is to be none."""
        settings = self._settings
        if not settings.cache:
            return transport
        from hishel import CacheOptions
        from hishel.httpx import AsyncCacheTransport

        from portico_web.pages.cache import PageStorage

        storage = PageStorage(_cache_file(settings), most=settings.cache_bytes, most_of_one=settings.max_bytes)
        # What is kept serves every user of the application: "private" answers are not kept.
        return AsyncCacheTransport(transport, storage, rfc=CacheOptions(shared=True))


def _cache_file(settings: WebPagesSettings) -> Path | None:
    """Return where pages are kept: what was read because it was allowed, or over a proxy, does not outlive that."""
    if settings.cache_folder is None:
        return None
    rules = [*sorted(settings.allow), *(["proxy"] if settings.proxy is not None else [])]
    named = hashlib.sha256("\n".join(rules).encode()).hexdigest()[:16]
    return Path(settings.cache_folder).expanduser() / f"pages-{named}.db"


def _user_agent(settings: WebPagesSettings) -> str:
    try:
        number = version("portico-web")
    except PackageNotFoundError:
        number = "0"
    contact = f" (+{settings.contact})" if settings.contact else ""
    return f"{settings.agent}/{number}{contact}"


def full_pages(settings: FullPagesSettings, services: Services) -> FullPages:
    """Wrap the source that the settings name in `FullPages`, over the configured page reader."""
    return FullPages(
        services.get(TextSearch, settings.source),
        services.get(PageReader),
        max_pages=settings.max_pages,
        seconds=settings.seconds,
        max_characters=settings.max_characters,
        concurrency=settings.concurrency,
    )
