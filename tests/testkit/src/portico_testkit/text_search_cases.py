"""How text searches are asked and what they are tried with: awkward queries, and what one may refuse, or must."""

from __future__ import annotations

from collections.abc import Sized

from portico.errors import PorticoError
from portico.ports import TextSearch
from portico.search import (
    And,
    AnyOf,
    Equal,
    Filter,
    FilterSupport,
    Not,
    Or,
    Range,
    SearchCapabilities,
    TextSearchOptions,
    TextSearchResult,
)

__all__ = ["ALL", "AWKWARD_QUERIES", "all_by", "found_by", "is_too_long", "is_whole", "refused_filters", "tried_out"]

ALL = 50
"""How many results the kit asks for to see all of them; a source may have more."""

AWKWARD_QUERIES = (
    '"',
    "'; DROP TABLE passages; --",
    'NEAR("a" "b", 5) AND NOT text:c* OR ^d',
    "* - + ( ) : { } [ ] ^ ~ ? \\ / & | !",
    "\x00 \ufeff \u202e",
    "lone \ud800 surrogate",
    "中文 без עברית \U0001f9e6",
    "{{$input}} %s <script>",
    "site:example.org filetype:pdf -word",
    "word " * 2_000,
)


async def found_by(search: TextSearch, query: str, options: TextSearchOptions | None) -> list[TextSearchResult]:
    """Return the results of a search, read to their end."""
    return await (await search.get_text_search_results(query, options)).list()


async def all_by(search: TextSearch, query: str, filter: Filter | None = None) -> list[TextSearchResult]:
    """Return all results of a search, or as many as the kit asks for."""
    return await found_by(search, query, TextSearchOptions(top=ALL, filter=filter))


def is_whole(text_search: TextSearch, found: Sized) -> bool:
    """Return whether what `ALL` was asked for is all that there is, and no list that was cut."""
    return len(found) < min(ALL, text_search.capabilities.most or ALL)


def is_too_long(query: str, capabilities: SearchCapabilities) -> bool:
    """Return whether a source need not take a query of this length.

    >>> is_too_long("a long query", SearchCapabilities(query_words=2)), is_too_long("a query", SearchCapabilities())
    (True, False)
    """
    bounds = ((len(query), capabilities.query_characters), (len(query.split()), capabilities.query_words))
    return any(most is not None and length > most for length, most in bounds)


async def tried_out(text_search: TextSearch, query: str) -> list[TextSearchResult]:
    """Return what is found for a query that is longer than is declared: nothing, where it is refused properly."""
    try:
        return await (await text_search.get_text_search_results(query)).list()
    except PorticoError as error:
        assert str(error).strip(), "a query that is too long is refused without a word"
        return []


_CLAUSES: dict[str, type[Equal | AnyOf | Range]] = {"Equal": Equal, "AnyOf": AnyOf, "Range": Range}


def refused_filters(support: FilterSupport, unknown: str) -> list[Filter]:
    """Return one filter for each thing that is not supported; ``unknown`` is the name of no field.

    >>> refused_filters(FilterSupport({"colour": frozenset({"Equal", "AnyOf", "Range"})}), "no")[0]
    Equal(field='no', value='x')
    """
    if support.fields is None:
        any_clause: Filter = Equal(unknown, "x")
        refused: list[Filter] = []
    else:
        refused = [Equal(unknown, "x"), AnyOf(unknown, ("x",)), Range(unknown, at_least=1)]
        for field, kinds in support.fields.items():
            refused += [_clause(_CLAUSES[kind], field) for kind in sorted(_CLAUSES.keys() - kinds)]
        allowed = next(((field, kind) for field, kinds in support.fields.items() for kind in sorted(kinds)), None)
        if allowed is None:
            return refused
        any_clause = _clause(_CLAUSES[allowed[1]], allowed[0])
    combinations: dict[str, Filter] = {"And": And((any_clause,)), "Or": Or((any_clause,)), "Not": Not(any_clause)}
    refused += [combinations[name] for name in sorted(combinations.keys() - support.combine)]
    # A clause that is refused hides no deeper in one that is allowed.
    if refused and "And" in support.combine:
        refused.append(And((any_clause, refused[0])))
    return refused


def _clause(kind: type[Equal | AnyOf | Range], field: str) -> Filter:
    if kind is AnyOf:
        return AnyOf(field, ("x",))
    return Range(field, at_least="x") if kind is Range else Equal(field, "x")
