"""What every PageReader must do."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import pytest

from portico.errors import AccessRefused, LimitExceeded, ServiceError
from portico.ports import Page, PageReader
from portico_testkit.event_loop import leaves_the_event_loop_free
from portico_testkit.tasks import give_up, in_time, still_answers

__all__ = ["KnownPage", "PageReaderKit"]

_ADDRESSES = (
    *("10.0.0.1", "100.64.0.1", "169.254.169.254", "172.16.0.1", "192.168.0.1", "0.0.0.0", "224.0.0.1"),
    *("0x0a000001", "167772161", "012.0.0.1", "10.1", "[::]", "[fe80::1]", "[::ffff:10.0.0.1]", "[2002:a00:1::]"),
    *("metadata.google.internal", "printer.local"),
)
_OTHER_LINKS = (
    *("", "   ", "no link", "//example.org/", "http://", "https:///path", "http://[::1", "http://example.org:99999/"),
    *("file:///etc/passwd", "ftp://example.org/", "data:text/plain,hello", "javascript:alert(1)", "unix:///run/socket"),
    *("\x00http://example.org/", "http://exa mple.org/", "http://example.org\\@10.0.0.1/", "http://" + "a" * 100_000),
)
_SECONDS = 30
"""Seconds for a link that is refused: resolvers take several for a name that leads nowhere."""
# To see that it is not shown.
_PASSWORD = "s3cret-w0rd"


@dataclass(frozen=True, slots=True)
class KnownPage:
    """A page that the reader under test can read, and words that its main text has."""

    link: str
    words: str
    title: str | None = None
    found_at: str | None = None
    """The link in the end, for a page that is redirected."""


class PageReaderKit:
    """Subclass it and give fixtures named ``page_reader`` and ``known_pages``::

        class TestAcmeReader(PageReaderKit):
            @pytest.fixture
            def known_pages(self, server) -> list[KnownPage]:
                return [KnownPage(server.url("/door"), "A red door.", title="Door"), …]

            @pytest.fixture
            async def page_reader(self, server) -> AsyncIterator[AcmeReader]:
                reader = AcmeReader(AcmeSettings(allow=["127.0.0.1"]), None)
                yield reader
                await reader.aclose()

            @pytest.fixture
            def unreadable(self, server) -> list[str]:
                return [server.url("/empty"), server.url("/missing"), server.url("/picture")]

    ``known_pages`` are two at least, with different texts, one of them with a ``found_at`` where redirects are
    followed. ``unreadable`` are links to pages that cannot be read, among them one that is not there and one
    that is empty. The reader may be allowed the loopback addresses of its own server, and no others that are not
    public: ``refused`` are hosts that it must not reach.
    """

    refused: ClassVar[tuple[str, ...]] = _ADDRESSES

    @pytest.mark.asyncio
    async def test_it_has_a_name(self, page_reader: PageReader) -> None:
        assert isinstance(page_reader.name, str), f"name is {page_reader.name!r}, not a str"
        assert page_reader.name.strip(), "name is empty"

    @pytest.mark.asyncio
    async def test_it_reads_what_is_there(self, page_reader: PageReader, known_pages: Sequence[KnownPage]) -> None:
        assert len(known_pages) >= 2, "the kit needs two known pages"
        for known in known_pages:
            page = await page_reader.read(known.link)
            assert isinstance(page, Page), f"{known.link} gave {page!r}"
            assert known.words in page.text, f"{known.link} gave {page.text[:200]!r}, without {known.words!r}"
            assert page.text == page.text.strip(), f"{known.link} gave a text with white space around it"
            assert known.title is None or page.title == known.title, f"{known.link} has the title {page.title!r}"
            assert page.title is None or page.title.strip(), "a title is empty: it should be None"
            assert page.link == (known.found_at or known.link), f"{known.link} was found at {page.link}"
            assert re.fullmatch(r"[a-z0-9.+-]+/[a-z0-9.+-]+", page.media_type), f"no media type: {page.media_type!r}"
            assert page.cut is None or page.cut.strip(), "cut is empty: it should be None"

    @pytest.mark.asyncio
    async def test_concurrent_reads_do_not_mix(self, page_reader: PageReader, known_pages: Sequence[KnownPage]) -> None:
        asked = [*known_pages, *known_pages, *reversed(known_pages)]
        pages = await asyncio.gather(*(page_reader.read(known.link) for known in asked))
        for known, page in zip(asked, pages, strict=True):
            assert known.words in page.text, f"{known.link} gave another page's text: {page.text[:200]!r}"

    @pytest.mark.asyncio
    async def test_what_cannot_be_read_is_a_service_error(
        self, page_reader: PageReader, unreadable: Sequence[str], known_pages: Sequence[KnownPage]
    ) -> None:
        for link in unreadable:
            with pytest.raises((ServiceError, LimitExceeded)) as raised:
                await page_reader.read(link)
            assert link in str(raised.value), f"the message does not name {link}: {raised.value}"
        assert known_pages[0].words in (await page_reader.read(known_pages[0].link)).text

    @pytest.mark.asyncio
    async def test_addresses_that_are_not_public_are_refused(self, page_reader: PageReader) -> None:
        for host in self.refused:
            is_name = host[-1].isalpha()
            for link in (f"http://{host}/", f"https://{host}:443/latest/meta-data?x=1#y"):
                with pytest.raises(ServiceError if is_name else AccessRefused) as raised:
                    await in_time(page_reader.read(link), f"{link} was not refused", seconds=_SECONDS)
                assert host in str(raised.value), f"the message does not name {link}: {raised.value}"

    @pytest.mark.asyncio
    async def test_other_links_are_refused(self, page_reader: PageReader) -> None:
        for link in _OTHER_LINKS:
            foreign = link.partition(":")[0] in ("file", "ftp", "data", "javascript", "gopher", "unix")
            with pytest.raises(AccessRefused if foreign else (ServiceError, LimitExceeded)) as raised:
                await in_time(page_reader.read(link), f"{link[:99]!r} was not refused", seconds=_SECONDS)
            assert str(raised.value).strip(), f"{link!r} is refused without a word"
            assert len(str(raised.value)) < 2_000, f"a message of {len(str(raised.value)):,} characters"

    @pytest.mark.asyncio
    async def test_a_user_and_password_are_refused_and_not_shown(
        self, page_reader: PageReader, known_pages: Sequence[KnownPage]
    ) -> None:
        scheme, _, rest = known_pages[0].link.partition("://")
        for user in (f"user:{_PASSWORD}@", f"{_PASSWORD}@", f":{_PASSWORD}@"):
            with pytest.raises(AccessRefused) as raised:
                await page_reader.read(f"{scheme}://{user}{rest}")
            assert _PASSWORD not in str(raised.value), "the message shows the password"

    @pytest.mark.asyncio
    async def test_a_cancelled_read_leaves_it_usable(
        self, page_reader: PageReader, known_pages: Sequence[KnownPage]
    ) -> None:
        known = known_pages[0]
        for seconds in (0.0, 0.001, 0.01, 0.05):
            await give_up(partial(page_reader.read, known.link), turns=1, seconds=seconds)
        assert known.words in (await still_answers(page_reader.read(known.link))).text

    @pytest.mark.asyncio
    async def test_a_read_leaves_the_event_loop_free(
        self, page_reader: PageReader, known_pages: Sequence[KnownPage]
    ) -> None:
        await leaves_the_event_loop_free(lambda number: page_reader.read(known_pages[number % len(known_pages)].link))
