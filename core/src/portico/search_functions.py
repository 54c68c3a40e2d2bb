"""A text search as functions of a kernel, for plans, prompts and models."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from portico.errors import ArgumentsInvalid, SchemaUnsupported, UnsupportedFilter, nearest
from portico.filter import And, Filter, check_filter
from portico.functions import Function, FunctionPlugin, Parameter
from portico.search import SearchCapabilities, TextSearchOptions, TextSearchResult, query_bounds, search_methods
from portico.search_parameters import FilterParameter, SearchParameter, excludes_all
from portico.types import Compiled, compile_type

if TYPE_CHECKING:
    from portico.ports.text_search import TextSearch
    from portico.ports.type_codec import TypeCodec

__all__ = ["SEARCH_TAG", "SearchParameter", "search_plugin"]

_log = logging.getLogger(__name__)
SEARCH_TAG = "search"
"""The tag of functions that search and return passages with name and link; planners look for it."""

_FUNCTIONS = ("Search", "GetTextSearchResults", "GetSearchResults")
_MOST = 1_000
_WORDS: Final[Mapping[str, str]] = {
    "query": "What to search for.",
    "count": "How many results at most.",
    "skip": "How many of the best results to leave out.",
}


def search_plugin(
    search: TextSearch,
    name: str,
    *,
    description: str | None = None,
    functions: Iterable[str] | Mapping[str, str] = _FUNCTIONS,
    descriptions: Mapping[str, str] | None = None,
    parameters: Mapping[str, str | SearchParameter | None] | None = None,
    filter: Filter | None = None,
    count: int = 2,
    skip: int = 0,
    most: int = _MOST,
    codecs: Iterable[TypeCodec] = (),
    asked_by_planners: bool = True,
) -> FunctionPlugin:
    """Make a function plugin of a text search.

    >>> from portico import SearchConnector, SearchResults
    >>> class Colours(SearchConnector[str]):
    ...     name = "colours"
    ...     async def fetch(self, query, options):
    ...         return SearchResults([f"dark {query}", f"light {query}"])
    ...     def to_text(self, record):
    ...         return record
    ...     def to_result(self, record):
    ...         return TextSearchResult(record)
    >>> plugin = search_plugin(
    ...     Colours(),
    ...     "Paint",
    ...     functions={"find": "Search"},
    ...     descriptions={"find": "Find shades of a colour."},
    ...     parameters={"query": "A colour.", "count": None, "skip": None},
    ... )
    >>> plugin["find"].full_name, [parameter.name for parameter in plugin["find"].parameters]
    ('Paint-find', ['query'])

    ``functions`` are ``Search``, ``GetTextSearchResults``, ``GetSearchResults`` and further methods of the connector
    (`portico.search.search_methods`); a mapping gives them names of the application's own, by which ``descriptions``
    has them. Each function takes ``query``, ``count`` (1 to ``most``) and ``skip`` (0 to 1,000).

    ``parameters`` are the further ones: a description, or a `SearchParameter`. Left out, they are the fields that the
    source offers by itself. For ``query``, ``count`` and ``skip`` it has other words, or None for one that is not
    offered. ``filter`` is applied whatever is asked; a parameter can only narrow it. A call that finds nothing because
    its parameters exclude it, or each other, is answered by saying so.

    ``codecs`` are a kernel's ``type_codecs``, for records that are of other kinds than the standard library's.
    ``asked_by_planners`` is False for a source that another one asks: planners that ask every source leave it out.

    Raises ``UnsupportedFilter`` for a filter or a parameter that the source does not take, and ``ValueError`` for a
    function that there is not.
    """
    if not 1 <= count <= most or not 0 <= skip <= _MOST:
        raise ValueError(f"count must be 1 to {most:,} and skip 0 to {_MOST:,}, not {count} and {skip}")
    if isinstance(functions, str):
        functions = (functions,)
    chosen = dict(functions) if isinstance(functions, Mapping) else {function: function for function in functions}
    described = dict(descriptions or {})
    for function in described.keys() - chosen.keys():
        raise ValueError(f"{function!r} is described and is no function of {name!r}. {_known(function, chosen)}")
    methods = _methods(search, name, tuple(codecs), chosen.values())
    made = []
    for function, wanted in chosen.items():
        method = methods[wanted]
        offered = _offered(parameters, method)
        clauses = {each: FilterParameter.of(each, parameter) for each, parameter in offered.items()}
        call = _Call(f"{name}-{function}", method.call, filter, clauses, count, skip, most)
        source = f"Text search {search.name!r}" + (f" ({wanted})" if method.own else "")
        call.check(method.capabilities, source)
        made.append(
            Function(
                function,
                call,
                plugin=name,
                description=described.get(function) or method.about,
                parameters=call.parameters(parameters or {}, method.capabilities),
                returns=method.returns,
                tags=frozenset({SEARCH_TAG} if asked_by_planners and wanted == "GetTextSearchResults" else ()),
            )
        )
    return FunctionPlugin(name, tuple(made), description or f"Search {name}.")


@dataclass(frozen=True, slots=True)
class _Method:
    """A way to search: what it calls, what it says of itself, and what it returns."""

    call: Callable[..., Any]
    about: str
    returns: Compiled
    capabilities: SearchCapabilities
    own: bool = False


def _methods(
    search: TextSearch, name: str, codecs: tuple[TypeCodec, ...], wanted: Iterable[str]
) -> Mapping[str, _Method]:
    """Return the methods wanted, by name."""
    wanted = tuple(wanted)
    # Hints are read only of methods that are asked for: they may name what only a type checker imports.
    asked = any(each not in _FUNCTIONS for each in wanted)
    further = {method.name: method for method in search_methods(search)} if asked else {}
    known = [*_FUNCTIONS, *(each for each in further if each not in _FUNCTIONS)]
    found: dict[str, _Method] = {}
    for each in wanted:
        if each == "Search":
            about, returns = f"Search {name} and return the text of the passages found.", compile_type(list[str])
            found[each] = _Method(search.search, about, returns, search.capabilities)
        elif each == "GetTextSearchResults":
            about = f"Search {name} and return passages with text, name and link."
            returns = compile_type(list[TextSearchResult])
            found[each] = _Method(search.get_text_search_results, about, returns, search.capabilities)
        elif each == "GetSearchResults":
            about = f"Search {name} and return its own records."
            returns = _records(getattr(search, "record_type", Any), codecs)
            found[each] = _Method(search.get_search_results, about, returns, search.capabilities)
        elif each in further:
            method = further[each]
            about = method.description or f"{each} of {name}."
            returns, capabilities = _records(method.record_type, codecs), method.capabilities or search.capabilities
            found[each] = _Method(getattr(search, method.method), about, returns, capabilities, own=True)
        else:
            raise ValueError(f"there is no search function {each!r}. {_known(each, known)}")
    return found


def _records(record: Any, codecs: tuple[TypeCodec, ...]) -> Compiled:
    """Compile an array of records; one whose type has no schema is written by what it is when it comes."""
    if record is not Any:
        try:
            return compile_type(list[record], codecs)
        except (SchemaUnsupported, NameError):
            # A hint that names what only a type checker imports cannot be resolved.
            pass
    return Compiled({"type": "array"}, list, compile_type(list[Any], codecs).unstructure)


def _known(name: str, known: Iterable[str]) -> str:
    known = tuple(known)
    near = nearest(name, known)
    return (f"Did you mean {near[0]!r}? " if near else "") + f"There are: {', '.join(known)}"


def _offered(
    parameters: Mapping[str, str | SearchParameter | None] | None, method: _Method
) -> dict[str, SearchParameter]:
    """Return the parameters that become filters."""
    if parameters is None:
        fields = method.capabilities.filter.offered
        return {field: SearchParameter(f"Only passages whose {field} is exactly this.") for field in fields}
    offered = {}
    for name, parameter in parameters.items():
        if name in _WORDS:
            if isinstance(parameter, SearchParameter) or (name == "query" and parameter is None):
                raise ValueError(f"the parameter {name!r} is there already: it takes other words, and no filter")
        elif parameter is None:
            raise ValueError(f"the parameter {name!r} has no description")
        else:
            offered[name] = SearchParameter(parameter) if isinstance(parameter, str) else parameter
    return offered


@dataclass(frozen=True, slots=True)
class _Call:
    """A search function: its arguments become options made for this call alone."""

    function: str
    method: Callable[..., Any]
    fixed: Filter | None
    clauses: Mapping[str, FilterParameter]
    count: int
    skip: int
    most: int

    async def __call__(self, query: str, **given: Any) -> list[Any]:
        count, skip = given.pop("count", self.count), given.pop("skip", self.skip)
        unknown = given.keys() - self.clauses.keys()
        if unknown:
            raise TypeError(f"{self.function} has no parameter {', '.join(sorted(unknown))}")
        faults = [
            f"{parameter}: must be {least} to {most}, not {value}"
            for parameter, least, most, value in (("count", 1, self.most, count), ("skip", 0, _MOST, skip))
            if not least <= value <= most
        ]
        filters = {name: clause.filter(given.get(name)) for name, clause in self.clauses.items()}
        faults += [
            f"{name}: must not be empty"
            for name, filter in filters.items()
            if filter is None and self.clauses[name].parameter.required
        ]
        if faults:
            raise ArgumentsInvalid(self.function, faults)
        if not query.strip():
            return []
        filter = _joined([self.fixed, *filters.values()])
        results = await self.method(query, TextSearchOptions(top=count, skip=skip, filter=filter))
        found = list(await results.list())
        failures = results.metadata.get("failures")
        if isinstance(failures, Mapping):
            # A function gives results alone; what a fused search says of its sources must not be lost.
            for source, why in failures.items():
                _log.warning("The source %r failed in %s: %s", source, self.function, why)
        if not found and (contradictions := self._contradictions(filters)):
            # Who only sees that there is nothing asks for the same in other words, again and again.
            raise ArgumentsInvalid(self.function, contradictions)
        return found

    def _contradictions(self, filters: Mapping[str, Filter | None]) -> list[str]:
        """Say which parameters nothing passes, where a field holds one value; what the fixed filter is stays untold."""
        given = {name: filter for name, filter in filters.items() if filter is not None}
        if excludes_all(self.fixed) or not excludes_all(_joined([self.fixed, *given.values()])):
            return []
        alone = [name for name, filter in given.items() if excludes_all(_joined([self.fixed, filter]))]
        if not alone:
            return [f"{', '.join(given)}: nothing is all of this at once"]
        return [f"{name}: this search is limited to others; leave it out, or give another value" for name in alone]

    def parameters(
        self, words: Mapping[str, str | SearchParameter | None], capabilities: SearchCapabilities
    ) -> tuple[Parameter, ...]:
        """Return what can be given, ``query`` first; those that must be given come before the others."""
        number = compile_type(int)
        said = {name: words.get(name, usual) for name, usual in _WORDS.items()}
        if "query" not in words and (bounds := query_bounds(capabilities)):
            said["query"] = f"What to search for: {bounds}."
        if "count" not in words and self.most < _MOST:
            said["count"] = f"How many results, 1 to {self.most}."
        own = [
            Parameter(name, str(said[name]), number, required=False, default=default)
            for name, default in (("count", self.count), ("skip", self.skip))
            if said[name] is not None
        ]
        further = [
            Parameter(name, each.parameter.description, each.compiled, each.parameter.required, each.parameter.default)
            for name, each in self.clauses.items()
        ]
        query = Parameter("query", str(said["query"]), compile_type(str), required=True)
        needed = [each for each in further if each.required]
        return (query, *needed, *own, *(each for each in further if not each.required))

    def check(self, capabilities: SearchCapabilities, source: str) -> None:
        """Raise ``UnsupportedFilter`` for what the source would refuse in a call."""
        check_filter(self.fixed, capabilities.filter, source)
        for name, clause in self.clauses.items():
            try:
                check_filter(_joined([self.fixed, clause.sample]), capabilities.filter, source)
            except UnsupportedFilter as error:
                raise UnsupportedFilter(f"{self.function} cannot have the parameter {name!r}. {error}") from error


def _joined(filters: Iterable[Filter | None]) -> Filter | None:
    parts = tuple(filter for filter in filters if filter is not None)
    return And(parts) if len(parts) > 1 else parts[0] if parts else None
