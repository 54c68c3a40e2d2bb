"""A text search as functions of a kernel, for plans, prompts and models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from portico.errors import ArgumentsInvalid
from portico.filter import And, Equal, Filter
from portico.functions import Function, FunctionPlugin, Parameter
from portico.search import TextSearchOptions, TextSearchResult
from portico.types import Compiled, compile_type

if TYPE_CHECKING:
    from portico.ports.text_search import TextSearch

__all__ = ["SEARCH_TAG", "search_plugin"]

SearchFunction: TypeAlias = Literal["Search", "GetTextSearchResults", "GetSearchResults"]

SEARCH_TAG = "search"
"""The tag of functions that search and return passages with name and link; planners look for it."""

_MAXIMUM = 1_000

_DESCRIPTIONS: Mapping[SearchFunction, str] = {
    "Search": "Search {name} and return the text of the passages found.",
    "GetTextSearchResults": "Search {name} and return passages with text, name and link.",
    "GetSearchResults": "Search {name} and return its own records.",
}


def search_plugin(
    search: TextSearch,
    name: str,
    *,
    description: str | None = None,
    functions: Iterable[SearchFunction] = ("Search", "GetTextSearchResults", "GetSearchResults"),
    descriptions: Mapping[SearchFunction, str] | None = None,
    filter: Filter | None = None,
    parameters: Mapping[str, str] | None = None,
    count: int = 2,
) -> FunctionPlugin:
    """Make a function plugin of a text search.

    Each function takes ``query``, ``count`` (default ``count``, 1 to 1,000) and ``skip`` (0 to 1,000). ``filter`` is
    always applied. ``parameters`` maps further fields to descriptions: each becomes an optional parameter that,
    when given, adds an equality filter; left out, the fields that the source offers by itself are used. Raises
    ``ValueError`` for a function that there is not and a parameter of a name that is taken.
    """
    if parameters is None:
        parameters = {
            field: f"Only passages whose {field} is exactly this." for field in search.capabilities.filter.offered
        }
    taken = {"query", "count", "skip"} & parameters.keys()
    if taken:
        raise ValueError(f"a parameter cannot be called {', '.join(sorted(taken))}: the functions have that already")
    text = compile_type(str)
    shared = (
        Parameter("query", "What to search for.", text, required=True),
        Parameter("count", "How many results at most.", compile_type(int), required=False, default=count),
        Parameter("skip", "How many of the best results to leave out.", compile_type(int), required=False, default=0),
        *(Parameter(field, about, compile_type(str | None), required=False) for field, about in parameters.items()),
    )
    methods: Mapping[SearchFunction, tuple[Callable[..., Any], Compiled]] = {
        "Search": (search.search, compile_type(list[str])),
        "GetTextSearchResults": (search.get_text_search_results, compile_type(list[TextSearchResult])),
        "GetSearchResults": (search.get_search_results, _RECORDS),
    }
    made = []
    for chosen in functions:
        if chosen not in methods:
            raise ValueError(f"there is no search function {chosen!r}; there are {', '.join(methods)}")
        method, returns = methods[chosen]
        about = (descriptions or {}).get(chosen) or _DESCRIPTIONS[chosen].format(name=name)
        made.append(
            Function(
                chosen,
                _calling(f"{name}-{chosen}", method, filter, tuple(parameters), count),
                plugin=name,
                description=about,
                parameters=shared,
                returns=returns,
                tags=frozenset({SEARCH_TAG}) if chosen == "GetTextSearchResults" else frozenset(),
            )
        )
    return FunctionPlugin(name, tuple(made), description or f"Search {name}.")


def _calling(
    function: str, method: Callable[..., Any], fixed: Filter | None, fields: tuple[str, ...], default_count: int
) -> Callable[..., Any]:
    async def call(query: str, count: int = default_count, skip: int = 0, **chosen: str | None) -> list[Any]:
        clauses: list[Filter] = [Equal(field, value) for field in fields if (value := chosen.get(field)) is not None]
        if fixed is not None:
            clauses.insert(0, fixed)
        filter = None if not clauses else clauses[0] if len(clauses) == 1 else And(tuple(clauses))
        faults = [
            f"{parameter}: must be {least} to {_MAXIMUM}, not {value}"
            for parameter, least, value in (("count", 1, count), ("skip", 0, skip))
            if not least <= value <= _MAXIMUM
        ]
        if faults:
            raise ArgumentsInvalid(function, faults)
        results = await method(query, TextSearchOptions(top=count, skip=skip, filter=filter))
        return list(await results.list())

    return call


# Records are of the source's own type, known only when they come: each is written by what it is.
_RECORDS = Compiled({"type": "array"}, list, compile_type(list[Any]).unstructure)
