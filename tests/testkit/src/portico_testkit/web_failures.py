"""What services say when they fail, and answers that are odd in one place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from portico.errors import (
    AuthenticationFailed,
    PorticoError,
    RateLimited,
    ResponseInvalid,
    ServiceError,
    ServiceUnavailable,
)
from portico.plugins import HttpResponse
from portico.search import SearchResults, TextSearchOptions, TextSearchResult
from portico_testkit.web_service import Reply

__all__ = ["COMMON_FAILURES", "Failure", "all_of", "gives_results_or_an_error", "odd_in_one_place"]


@dataclass(frozen=True, slots=True)
class Failure:
    """An answer that is none, and what a search must make of it.

    ``kind`` is the very class of the error, ``words`` are in its message. ``name`` is shown by a test that fails.
    """

    name: str
    reply: Reply
    kind: type[PorticoError]
    words: tuple[str, ...] = ()


COMMON_FAILURES: tuple[Failure, ...] = (
    Failure("rate limit", Reply({}, 429, headers={"Retry-After": "3600"}), RateLimited, ("3600", "429")),
    Failure("wrong key", Reply({}, 401), AuthenticationFailed, ("401", "key")),
    Failure("nothing there", Reply(status=404, body=b"<h1>Not found</h1>"), ServiceError, ("404", "address")),
    Failure("its fault", Reply({}, 500), ServiceUnavailable, ("500",)),
    Failure("a proxy's fault", Reply(status=502, body=b"<h1>Bad gateway</h1>"), ServiceUnavailable, ("502",)),
    Failure("moved", Reply(status=302, headers={"Location": "/sign-in"}), ResponseInvalid, ("/sign-in", "302")),
    Failure("a page for people", Reply(body=b"<!doctype html><h1>Welcome</h1>"), ResponseInvalid, ("JSON",)),
    Failure("nothing said", Reply(body=b""), ResponseInvalid, ("JSON",)),
    Failure("a list", Reply([]), ResponseInvalid, ("form",)),
    Failure("a word", Reply("results"), ResponseInvalid, ("form",)),
    Failure("a number", Reply(42), ResponseInvalid, ("form",)),
    Failure("null", Reply(body=b"null"), ResponseInvalid, ("form",)),
)
"""What any service may say, or a proxy before it."""


_ODD: tuple[Any, ...] = (None, True, 7, -1.5, "", "odd", [], ["odd"], [None], {}, {"odd": 7}, "9" * 30)


def odd_in_one_place(answer: Any, odds: tuple[Any, ...] = _ODD) -> Iterator[Any]:
    """Yield an answer without each of its members in turn, and with something odd in its place."""
    yield from odds
    if isinstance(answer, dict):
        for name, value in answer.items():
            yield {other: kept for other, kept in answer.items() if other != name}
            for odd in odd_in_one_place(value, odds):
                yield {**answer, name: odd}
    elif isinstance(answer, list) and answer:
        # One element stands for all of them, beside one as it should be.
        for odd in odd_in_one_place(answer[0], odds):
            yield [odd, *answer[1:2]]


async def gives_results_or_an_error(search: Any, query: str, response: HttpResponse) -> None:
    """Search with a connector that is answered so, and see that there are well-formed results or an error of ours."""
    try:
        results: SearchResults[TextSearchResult] = await search.get_text_search_results(
            query, TextSearchOptions(top=3, include_total_count=True)
        )
        found = await results.list()
    except PorticoError:
        return
    except Exception as error:
        raise AssertionError(f"{response} is {error!r}, no error of Portico") from error
    assert isinstance(results.total_count, int | None), f"total_count is {results.total_count!r}"
    for result in found:
        assert isinstance(result.value, str), f"a value is {result.value!r}"
        assert result.name is None or isinstance(result.name, str), f"a name is {result.name!r}"
        assert result.link is None or result.link.startswith(("http://", "https://")), f"a link is {result.link!r}"


def all_of(error: BaseException) -> str:
    """Return all that can be printed of an error and of those behind it."""
    shown = []
    behind: BaseException | None = error
    while behind is not None:
        shown += [str(behind), repr(behind), repr(vars(behind))]
        behind = behind.__cause__ or behind.__context__
    return "\n".join(shown)
