"""WebSearchConnector asks a service page by page and gives one list."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
from hypothesis import given, strategies as st
from tests.support.virtual_time import on_virtual_time

from portico._plugins.http import HttpRequest, HttpResponse
from portico._plugins.registration import Secret
from portico._ports.http_client import HttpClient
from portico._search.filters import And, Equal, FilterSupport
from portico._search.results import (
    SearchCapabilities,
    SearchResults,
    TextSearchOptions,
    TextSearchResult,
    search_method,
)
from portico._search.web import AskedPage, FoundPage, WebSearchConnector
from portico.errors import (
    AuthenticationFailed,
    PluginNotInstalled,
    PorticoError,
    QuotaExceeded,
    ResponseInvalid,
    ServiceError,
    ServiceUnavailable,
)
from portico_testkit.fakes.http_client import RecordedHttpClient
from portico_testkit.fakes.services import FixedServices
from portico_testkit.strategies import json_values


@dataclass(frozen=True)
class Settings:
    api_key: Secret = field(default_factory=lambda: Secret("s3cret-key"))


class Numbers(WebSearchConnector[int]):
    """A service that has the numbers from 0 on; what it says of them is the test's."""

    name = "numbers"
    capabilities = SearchCapabilities(FilterSupport.fields_of("parity", offered=("parity",)), total_count=True)

    def request(self, page: AskedPage) -> HttpRequest:
        params = {
            "q": page.query,
            "from": page.start,
            "n": page.size,
            "page": page.number,
            "key": self.settings.api_key,
        }
        return HttpRequest("https://numbers.example/find", params)

    def read(self, answer: Any) -> FoundPage[int]:
        return FoundPage(
            [int(number) for number in answer["items"]],
            total_count=answer.get("total"),
            metadata={"said": answer.get("said")},
            more=answer.get("more"),
            fault=ServiceUnavailable(answer["fault"]) if "fault" in answer else None,
        )

    def to_text(self, record: int) -> str:
        return str(record)

    def to_result(self, record: int) -> TextSearchResult:
        return TextSearchResult(str(record))


Answer = Callable[[HttpRequest], Any]


def numbers(answer: Answer, kind: type[Numbers] = Numbers, **attributes: Any) -> tuple[Numbers, RecordedHttpClient]:
    client = RecordedHttpClient(answer)
    made = type("Made", (kind,), attributes)
    return made(Settings(), FixedServices({HttpClient: client})), client


def having(total: int, *, own_size: int | None = None) -> Answer:
    """Answer as a service of so many results does, by results, by pages or by pages of its own size."""

    def answer(request: HttpRequest) -> Any:
        start, size = int(str(request.params["from"])), int(str(request.params["n"]))
        if own_size is not None:
            start, size = int(str(request.params["page"])) * own_size, own_size
        return {"items": list(range(start, min(total, start + size)))}

    return answer


async def found(search: Numbers, top: int, skip: int = 0) -> list[int]:
    return await (await search.get_search_results("q", TextSearchOptions(top=top, skip=skip))).list()


PAGINGS = st.sampled_from(["results", "pages", "all pages"])


@pytest.mark.fuzz
@given(
    PAGINGS,
    st.integers(1, 7),
    st.none() | st.integers(1, 30),
    st.integers(0, 40),
    st.integers(1, 25),
    st.integers(0, 25),
)
def test_any_part_of_the_list_is_that_part(
    paging: str, page_size: int, most: int | None, total: int, top: int, skip: int
) -> None:
    own = page_size if paging == "all pages" else None
    search, client = numbers(
        having(total, own_size=own), paging=paging, page_size=page_size, capabilities=SearchCapabilities(most=most)
    )
    expected = list(range(total))[:most][skip : skip + top]
    assert asyncio.run(found(search, top, skip)) == expected

    for request in client.requests:
        assert 1 <= int(str(request.params["n"])) <= page_size
    asked = [(request.params["from"], request.params["page"]) for request in client.requests]
    assert len(asked) == len(set(asked)), f"a page was asked for twice: {asked}"
    end = min(skip + top, most or skip + top)
    pages_over = -(-end // page_size) if paging != "results" else -(-max(end - skip, 0) // page_size)
    if paging == "pages" and skip:
        pages_over -= skip // page_size
    elif paging == "all pages":
        # How long the service's pages are is not known: only a page without results is the end for sure.
        pages_over += 1
    assert len(asked) <= max(pages_over, 0), f"{len(asked)} requests for {top} results after {skip}"


@given(PAGINGS, st.lists(st.integers(0, 5), min_size=1, max_size=8), st.integers(1, 20))
def test_a_page_with_fewer_results_does_not_end_a_list_that_goes_on(paging: str, sizes: list[int], top: int) -> None:
    """Services leave out of a page what they find unfit, and say that there is more."""
    starts = [sum(sizes[:page]) for page in range(len(sizes) + 1)]

    def answer(request: HttpRequest) -> Any:
        page = int(str(request.params["page"]))
        return {"items": list(range(starts[page], starts[page + 1])), "more": page + 1 < len(sizes)}

    search, _ = numbers(answer, paging=paging, page_size=5)
    filled = sizes.index(0) if 0 in sizes else len(sizes)
    if top > 5 or paging != "results":
        assert asyncio.run(found(search, top)) == list(range(starts[filled]))[:top]


async def test_what_a_service_repeats_of_earlier_pages_is_given_once() -> None:
    @dataclass(frozen=True)
    class Page:
        url: str
        rank: int

    class Overlapping(Numbers):
        paging, page_size = "pages", 4

        def read(self, answer: Any) -> FoundPage[Any]:
            return FoundPage(
                [Page(f"https://a.example/{number}", answer["first"]) for number in answer["items"]], more=True
            )

    def answer(request: HttpRequest) -> Any:
        first = 3 * int(str(request.params["page"]))
        return {"items": list(range(first, first + 4)), "first": first}

    search, client = numbers(answer, Overlapping)
    pages: list[Any] = await found(search, 12)
    assert [page.url.rpartition("/")[2] for page in pages] == [str(number) for number in range(12)]
    assert len(client.requests) == 4


async def test_a_service_that_gives_the_same_page_again_is_asked_once_more_and_not_for_ever() -> None:
    for paging in ("results", "pages", "all pages"):
        search, client = numbers(lambda request: {"items": [1, 2, 3], "more": True}, paging=paging, page_size=3)
        assert await found(search, 100) == [1, 2, 3]
        assert len(client.requests) == 2


async def test_the_first_page_is_asked_for_at_once_and_the_others_when_they_are_read() -> None:
    search, client = numbers(having(100), page_size=10)
    results = await search.search("q", TextSearchOptions(top=45))
    assert len(client.requests) == 1, "a search that fails should fail where it is awaited"
    stream = aiter(results)
    for _ in range(10):
        await anext(stream)
    assert len(client.requests) == 1
    await anext(stream)
    assert len(client.requests) == 2
    await results.aclose()
    assert len(client.requests) == 2


async def test_count_and_metadata_are_of_the_first_page() -> None:
    def answer(request: HttpRequest) -> Any:
        return {**having(30)(request), "total": 30 - int(str(request.params["from"])), "said": "ok"}

    search, _ = numbers(answer)
    results = await search.search("q", TextSearchOptions(top=20, include_total_count=True))
    assert len(await results.list()) == 20
    assert results.total_count == 30
    assert results.metadata["said"] == "ok"


async def test_the_whole_answer_of_the_service_is_in_the_metadata() -> None:
    search, _ = numbers(lambda request: {"items": [1, 2], "said": "hi", "thumbnails": ["a.png", "b.png"]})
    results = await search.get_text_search_results("q")
    assert results.metadata["said"] == "hi"
    assert results.metadata["raw"]["thumbnails"] == ["a.png", "b.png"]


async def test_a_filter_that_nothing_passes_asks_nobody_and_counts_none() -> None:
    search, client = numbers(having(9))
    neither = And((Equal("parity", "odd"), Equal("parity", "even")))
    results = await search.search("q", TextSearchOptions(filter=neither, include_total_count=True))
    assert (await results.list(), results.total_count, client.requests) == ([], 0, [])


async def test_beyond_the_most_that_the_service_gives_nobody_is_asked() -> None:
    search, client = numbers(having(1000), capabilities=SearchCapabilities(most=20))
    assert await found(search, 5, skip=20) == []
    assert await found(search, 5, skip=18) == [18, 19]
    assert len(client.requests) == 1


async def test_a_failure_where_nothing_was_found_is_told_and_beside_results_it_is_not() -> None:
    search, _ = numbers(lambda request: {"items": [], "fault": "No engine answered."})
    with pytest.raises(ServiceUnavailable, match="No engine answered"):
        await search.search("q")
    search, _ = numbers(lambda request: {"items": [1], "fault": "One engine did not answer."})
    assert await found(search, 5) == [1]


@pytest.mark.parametrize(
    "answer",
    [
        {},
        [],
        None,
        "x",
        7,
        {"items": None},
        {"items": ["x"]},
        {"items": [], "total": "7"},
        {"items": [], "total": True},
    ],
)
async def test_json_of_another_form_is_told_with_what_was_missed(answer: Any) -> None:
    search, _ = numbers(lambda request: HttpResponse(200, json.dumps(answer).encode()))
    with pytest.raises(ResponseInvalid, match=r"Text search 'numbers' answered in another form than agreed: \w+"):
        await search.search("q")


async def test_another_form_that_repeats_the_key_does_not_show_it() -> None:
    search, _ = numbers(lambda request: {"items": ["the key\nis s3cret-key"]})
    with pytest.raises(ResponseInvalid) as caught:
        await search.search("q")
    assert "s3cret" not in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"items": [1', b"\xff\xfe\x00", b"[" * 100_000])
async def test_what_is_no_json_is_told(body: bytes) -> None:
    search, _ = numbers(lambda request: HttpResponse(200, body))
    with pytest.raises(ResponseInvalid, match="'numbers' answered in another form than agreed: it is not JSON"):
        await search.search("q")


async def test_an_error_of_portico_in_reading_stays_what_it_is() -> None:
    class Refusing(Numbers):
        def read(self, answer: Any) -> FoundPage[int]:
            raise QuotaExceeded("No more today.")

    search, _ = numbers(having(1), Refusing)
    with pytest.raises(QuotaExceeded, match="today"):
        await search.search("q")


@pytest.mark.fuzz
@given(json_values(), st.sampled_from([200, 400, 403, 500]))
def test_a_connector_may_look_for_failures_as_if_every_answer_had_its_form(answer: Any, status: int) -> None:
    class Looking(Numbers):
        def failure(self, response: HttpResponse, answer: Any) -> Any:
            return QuotaExceeded if answer["error"]["code"].upper() == "QUOTA" else None

    search, _ = numbers(lambda request: HttpResponse(status, json.dumps(answer).encode()), Looking)
    with pytest.raises(PorticoError) as caught:
        asyncio.run(found(search, 5))
    assert not isinstance(caught.value, QuotaExceeded)
    told, _ = numbers(lambda request: HttpResponse(status, b'{"error": {"code": "quota"}}'), Looking)
    with pytest.raises(QuotaExceeded):
        asyncio.run(found(told, 5))


async def test_advice_for_a_status_is_in_the_message() -> None:
    search, _ = numbers(lambda request: HttpResponse(403), advice={403: "Switch JSON on."})
    with pytest.raises(AuthenticationFailed, match=r"Text search 'numbers' refused access \(403\)\. Switch JSON on\."):
        await search.search("q")


async def test_the_keys_of_settings_and_requests_are_hidden_in_what_the_service_says() -> None:
    class Bearer(Numbers):
        def request(self, page: AskedPage) -> HttpRequest:
            header = Secret(f"Bearer {self.settings.api_key.reveal()}")
            return HttpRequest(
                "https://numbers.example", headers={"Authorization": header, "X-Other": Secret("other-key")}
            )

    said = b'{"error": "s3cret-key and other-key are wrong, and Bearer s3cret-key too"}'
    for kind in (Numbers, Bearer):
        search, _ = numbers(lambda request: HttpResponse(401, said), kind)
        with pytest.raises(AuthenticationFailed) as caught:
            await search.search("q")
        assert "s3cret" not in str(caught.value)
    assert "other-key" not in str(caught.value)


async def test_half_a_character_is_replaced_before_it_is_sent() -> None:
    search, client = numbers(having(1))
    await search.search("lone \ud800 and whole \U0001f9e6")
    assert client.requests[0].params["q"] == "lone \ufffd and whole \U0001f9e6"


async def test_no_more_requests_are_under_way_than_the_service_wants() -> None:
    busy, busiest = 0, 0

    async def answer(request: HttpRequest) -> Any:
        nonlocal busy, busiest
        busy += 1
        busiest = max(busiest, busy)
        await asyncio.sleep(0.001)
        busy -= 1
        return {"items": [1]}

    search, _ = numbers(answer, at_once=2)
    await asyncio.gather(*(found(search, 1) for _ in range(10)))
    assert busiest == 2


@on_virtual_time
async def test_a_request_that_fails_or_is_cancelled_makes_way_for_the_next() -> None:
    class Waiting(RecordedHttpClient):
        async def send(self, request: HttpRequest) -> HttpResponse:
            if request.params["q"] == "wait":
                await asyncio.sleep(3600)
            return await super().send(request)

    client = Waiting(lambda request: HttpResponse(500) if request.params["q"] == "fail" else {"items": [1]})
    search = type("Made", (Numbers,), {"at_once": 1})(Settings(), FixedServices({HttpClient: client}))
    waiting = asyncio.create_task(search.search("wait"))
    await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(search.search("q"), 0.05)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with pytest.raises(ServiceUnavailable):
        await search.search("fail")
    assert await (await search.search("q")).list() == ["1"]


async def test_without_services_a_search_makes_the_client_of_portico_web(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [])
    with pytest.raises(PluginNotInstalled, match="'numbers' has no HTTP client: run `pip install portico-web`"):
        await Numbers(Settings()).search("q")


@dataclass
class OwnSettings:
    api_key: Secret
    second: Secret | None = None
    plain: str = "a"


def test_a_connector_takes_the_values_of_its_settings() -> None:
    class Own(Numbers):
        settings_class = f"{__name__}:OwnSettings"

    made = Own(api_key="k", plain="b").settings
    assert made == OwnSettings(Secret("k"), plain="b")
    assert Own(api_key=Secret("k"), second="2").settings.second == Secret("2")
    with pytest.raises(TypeError, match="api_key"):
        Own()
    with pytest.raises(TypeError, match="settings or their values, and not plain"):
        Own(made, plain="c")
    with pytest.raises(TypeError, match="settings or their values, and not plain"):
        Numbers(plain="c")


async def test_a_further_method_pages_as_the_first_does() -> None:
    class WithNews(Numbers):
        news: ClassVar[Sequence[int]] = range(100, 200)

        @search_method
        async def get_news(self, query: str, options: TextSearchOptions) -> SearchResults[str]:
            """Find news."""
            return await self.pages(
                query,
                options,
                lambda page: HttpRequest("https://numbers.example/news", {"from": page.start, "n": page.size}),
                lambda answer: FoundPage([f"news {number}" for number in answer["items"]]),
            )

    search, client = numbers(having(1000), WithNews)
    results = await search.get_news("q", TextSearchOptions(top=12, skip=5))
    assert await results.list() == [f"news {number}" for number in range(5, 17)]
    assert {request.url for request in client.requests} == {"https://numbers.example/news"}


async def test_a_connector_says_what_its_service_says_of_a_failure() -> None:
    class Worded(Numbers):
        def failure(self, response: HttpResponse, answer: Any) -> ServiceError:
            return (QuotaExceeded if answer["code"] == 7 else ServiceError)(f"Code {answer['code']}.")

    for code, status, kind in ((7, 200, QuotaExceeded), (8, 400, ServiceError), (8, 401, AuthenticationFailed)):
        search, _ = numbers(
            lambda request, code=code, status=status: HttpResponse(status, b'{"code": %d}' % code), Worded
        )
        with pytest.raises(ServiceError, match=f"It says: Code {code}.") as caught:
            await search.search("q")
        assert type(caught.value) is kind


@pytest.mark.parametrize(("method", "wanted"), [("request", "HttpRequest"), ("read", "FoundPage")])
async def test_a_method_that_returns_something_else_is_named_with_what_it_must_return(method: str, wanted: str) -> None:
    def wrong(self: Numbers, given: Any) -> dict[str, str]:
        return {}

    search, _ = numbers(lambda request: {"items": []}, type("Wrong", (Numbers,), {method: wrong}))
    with pytest.raises(TypeError, match=f"Made.{method} returned a dict: return {wanted}"):
        await search.search("q")
