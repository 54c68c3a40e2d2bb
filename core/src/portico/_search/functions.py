"""A text search as functions of a kernel, for plans, prompts and models."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_origin

from portico._flows.labels import FunctionLabels
from portico._functions.functions import RESULTS_TAG, SEARCH_TAG, Function, FunctionPlugin, Parameter
from portico._search.filters import And, AnyOf, Equal, Filter, Range, Scalar
from portico._search.results import (
    SearchCapabilities,
    SearchMethod,
    TextSearchOptions,
    TextSearchResult,
    search_methods,
)
from portico._types.compiled import Compiled
from portico._types.compiling import compile_type
from portico.errors import ArgumentsInvalid, SchemaUnsupported

if TYPE_CHECKING:
    from portico._ports.text_search import TextSearch
    from portico._ports.type_codec import TypeCodec


_log = logging.getLogger(__name__)

_FUNCTIONS = ("Search", "GetTextSearchResults", "GetSearchResults")
_MOST = 1_000
_OPTIONS = {"count": "How many results at most.", "skip": "How many of the best results to leave out."}
_NAMES = {role: role for role in ("query", *_OPTIONS)}


@dataclass(frozen=True, slots=True)
class SearchParameter:
    """A parameter of search functions that becomes a filter.

    >>> languages = SearchParameter("Languages to keep.", field="language", type=list[str], values=("en", "de"))

    It keeps results that have its value in ``field``, by default the parameter's name. A ``type`` that is a list keeps
    any of its values. ``bound`` keeps results that are at least or at most the value, as for dates.
    ``values`` are all values that may be given. A value that is left out, null or empty filters by ``default``, or not
    at all.
    """

    description: str
    field: str | None = None
    type: Any = str
    values: tuple[Scalar, ...] = ()
    required: bool = False
    default: Any = None
    bound: Literal["at_least", "at_most"] | None = None


def search_plugin(
    search: TextSearch,
    name: str,
    *,
    description: str | None = None,
    functions: Iterable[str] | Mapping[str, str] = _FUNCTIONS,
    descriptions: Mapping[str, str] | None = None,
    parameters: Mapping[str, str | SearchParameter | None] | None = None,
    names: Mapping[str, str] | None = None,
    returns: str | None = None,
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
    (`search_methods`). A mapping gives them other names, which ``descriptions`` uses too; one that it leaves out
    says ``description``, then the words of the connector for its kind, or else what its kind does. Each function takes
    ``query`` and the options of a search: ``count`` (1 to ``most``) and ``skip`` (0 to 1,000).

    ``parameters`` are the further ones: a description, or a `SearchParameter`. Without it, they are the fields that the
    source offers. For ``query``, ``count`` and ``skip`` it gives other descriptions, or None to leave an option out.
    ``names`` gives these three other names: ``{"query": "topic"}``. ``returns`` describes the results.
    ``filter`` always applies; a parameter can only narrow it.

    ``codecs`` are the ``type_codecs`` of a kernel, for types of records. ``asked_by_planners`` is False for a source
    that another one asks: planners that ask every source leave it out.

    Raises ``UnsupportedOption`` for a filter or a parameter that the source does not take, and ``ValueError`` for an
    unknown function or name.
    """
    defaults, limits = {"count": count, "skip": skip}, {"count": (1, most), "skip": (0, _MOST)}
    if faults := _out_of_limits(defaults, limits, _NAMES):
        raise ValueError(f"the default of {faults[0]}")
    if unknown := (names or {}).keys() - _NAMES.keys():
        raise ValueError(f"{min(unknown)!r} cannot be renamed: only {', '.join(_NAMES)}")
    names = {**_NAMES, **(names or {})}
    tags = frozenset((RESULTS_TAG, *(f"{role}={called}" for role, called in names.items() if role != called)))
    if isinstance(functions, str):
        functions = (functions,)
    chosen = dict(functions) if isinstance(functions, Mapping) else {function: function for function in functions}
    descriptions = descriptions or {}
    for function in descriptions.keys() - chosen.keys():
        raise ValueError(f"{function!r} is described and is no function of {name!r}. There are: {', '.join(chosen)}")
    made = []
    for function, kind in chosen.items():
        method = _find_method(search, name, kind)
        capabilities = method.capabilities or search.capabilities
        usual = method.description or f"{kind} of {name}."
        filters = _filter_parameters(parameters, capabilities)
        if twice := [called for called, times in Counter([*names.values(), *filters]).items() if times > 1]:
            raise ValueError(f"two parameters are named {twice[0]!r}")
        own = getattr(search, "fixed_filter", None)
        source = f"Text search {search.name!r}" + ("" if kind in _FUNCTIONS else f" ({kind})")
        for sample in (None, *(each.clause(() if each.many else "") for each in filters.values())):
            capabilities.filter.check(And.join(own, filter, sample), source)
        found = getattr(search, method.method)
        call = _SearchFunction(f"{name}-{function}", found, filter, filters, names, defaults, limits)
        records = _compile_records(method.record_type, tuple(codecs))
        made.append(
            Function(
                function,
                call,
                plugin=name,
                description=descriptions.get(function) or f"{description or ''} {usual}".lstrip(),
                parameters=call.parameters(parameters or {}, capabilities),
                returns=replace(records, schema={**records.schema, "description": returns}) if returns else records,
                tags=tags | ({SEARCH_TAG} if asked_by_planners and kind == "GetTextSearchResults" else set()),
                labels=FunctionLabels(reaches_out=not search.capabilities.local),
            )
        )
    return FunctionPlugin(name, tuple(made), description or f"Search {name}.")


def _find_method(search: TextSearch, name: str, kind: str) -> SearchMethod:
    """Return one of the three methods of every search, or a further one of this search."""
    usual = (
        SearchMethod("Search", "search", f"Search {name} and return the text of the passages found.", str),
        SearchMethod(
            "GetTextSearchResults",
            "get_text_search_results",
            f"Search {name} and return passages with text, name and link.",
            TextSearchResult,
        ),
        SearchMethod(
            "GetSearchResults",
            "get_search_results",
            f"Search {name} and return its own records.",
            getattr(search, "record_type", Any),
        ),
    )
    # Hints of further methods are read only if needed: they may name types that only a type checker imports.
    methods = {method.name: method for method in (usual if kind in _FUNCTIONS else (*usual, *search_methods(search)))}
    if kind not in methods:
        raise ValueError(f"there is no search function {kind!r}. There are: {', '.join(methods)}")
    own = getattr(search, "descriptions", {}).get(kind)
    return replace(methods[kind], description=own) if own else methods[kind]


def _compile_records(record: Any, codecs: tuple[TypeCodec, ...]) -> Compiled:
    """Compile a list of records; without a schema, each record is written by its type when it comes."""
    if record is not Any:
        try:
            return compile_type(list[record], codecs)
        except SchemaUnsupported:
            # A hint may name a type that only a type checker imports.
            pass
    return Compiled({"type": "array"}, list, compile_type(list[Any], codecs).unstructure)


def _filter_parameters(
    parameters: Mapping[str, str | SearchParameter | None] | None, capabilities: SearchCapabilities
) -> dict[str, _FilterParameter]:
    """Return the parameters that become filters."""
    if parameters is None:
        parameters = {field: f"Only passages whose {field} is exactly this." for field in capabilities.filter.offered}
    filters = {}
    for name, parameter in parameters.items():
        if name in _NAMES:
            if isinstance(parameter, SearchParameter) or (name == "query" and parameter is None):
                raise ValueError(f"the parameter {name!r} is there already: it takes another description, not a filter")
        elif parameter is not None:
            declared = SearchParameter(parameter) if isinstance(parameter, str) else parameter
            filters[name] = _FilterParameter.of(name, declared)
    return filters


def _out_of_limits(
    given: Mapping[str, int], limits: Mapping[str, tuple[int, int]], names: Mapping[str, str]
) -> list[str]:
    return [
        f"{names[role]}: must be {least} to {most}, not {given[role]}"
        for role, (least, most) in limits.items()
        if not least <= given[role] <= most
    ]


@dataclass(frozen=True, slots=True)
class _SearchFunction:
    """A search function: its arguments become options of this call alone."""

    function: str
    method: Callable[..., Any]
    fixed: Filter | None
    filters: Mapping[str, _FilterParameter]
    names: Mapping[str, str]
    defaults: Mapping[str, int]
    limits: Mapping[str, tuple[int, int]]

    async def __call__(self, **given: Any) -> list[Any]:
        if unknown := given.keys() - self.filters.keys() - set(self.names.values()):
            raise TypeError(f"{self.function} has no parameter {', '.join(sorted(unknown))}")
        if self.names["query"] not in given:
            raise TypeError(f"{self.function} needs {self.names['query']}")
        query: str = given[self.names["query"]]
        numbers = {role: given.get(self.names[role], default) for role, default in self.defaults.items()}
        clauses = {name: parameter.filter(given.get(name)) for name, parameter in self.filters.items()}
        faults = _out_of_limits(numbers, self.limits, self.names)
        for name, parameter in self.filters.items():
            if parameter.declared.required and clauses[name] is None:
                faults.append(f"{name}: must not be empty")
        if faults:
            raise ArgumentsInvalid(self.function, faults)
        if not query.strip():
            return []
        filter = And.join(self.fixed, *clauses.values())
        results = await self.method(query, TextSearchOptions(numbers["count"], numbers["skip"], filter=filter))
        found = list(await results.list())
        failures = results.metadata.get("failures")
        if isinstance(failures, Mapping):
            # A function returns results alone; failures of sources in a fused search must not be lost.
            for source, why in failures.items():
                _log.warning("The source %r failed in %s: %s", source, self.function, why)
        return found

    def parameters(
        self, words: Mapping[str, str | SearchParameter | None], capabilities: SearchCapabilities
    ) -> tuple[Parameter, ...]:
        """Return the parameters, ``query`` first; required ones come before the others."""
        bounds, most = capabilities.query_bounds(), self.limits["count"][1]
        usual = {"query": f"What to search for: {bounds}." if bounds else "What to search for."} | _OPTIONS
        if most < _MOST:
            usual["count"] = f"How many results, 1 to {most}."
        texts = {role: words.get(role, text) for role, text in usual.items()}
        further = [
            Parameter(self.names[role], str(texts[role]), compile_type(int), False, self.defaults[role])
            for role in _OPTIONS
            if texts[role] is not None
        ]
        for name, each in self.filters.items():
            declared = each.declared
            further.append(Parameter(name, declared.description, each.compiled, declared.required, declared.default))
        query = Parameter(self.names["query"], str(texts["query"]), compile_type(str), required=True)
        return (query, *sorted(further, key=lambda parameter: not parameter.required))


@dataclass(frozen=True, slots=True)
class _FilterParameter:
    """A `SearchParameter` with its compiled type."""

    field: str
    declared: SearchParameter
    compiled: Compiled
    many: bool

    @classmethod
    def of(cls, name: str, parameter: SearchParameter) -> _FilterParameter:
        """Compile a parameter; raise ``ValueError`` for a list that is a bound."""
        many = parameter.type is list or get_origin(parameter.type) is list
        hint: Any = parameter.type
        if parameter.values:
            one: Any = Literal.__getitem__(parameter.values)
            hint = list[one] if many else one
        optional = not parameter.required and parameter.default is None
        compiled = compile_type(hint | None if optional else hint)
        if not parameter.required:
            structure = compiled.structure
            # Models write an empty text for a value that they leave out, also for a date or a choice.
            compiled = replace(compiled, structure=lambda value: None if _is_blank(value) else structure(value))
        if many and parameter.bound is not None:
            raise ValueError(f"the parameter {name!r} takes several values, so it cannot be a bound")
        return cls(parameter.field or name, parameter, compiled, many)

    def filter(self, value: Any) -> Filter | None:
        """Return the filter of a value; None where the value is empty."""
        if self.many and value is not None:
            value = [value] if isinstance(value, str) else value
            value = [each for each in value if not _is_blank(each)] or None
        if value is None or _is_blank(value):
            value = self.declared.default
        if value is None:
            return None
        # A call with Python values may give the text of a date as well as a date.
        plain = value if type(value) is str else self.compiled.unstructure(value)
        return self.clause(tuple(dict.fromkeys(plain)) if self.many else plain)

    def clause(self, plain: Any) -> Filter:
        """Return the filter of a plain value, or of a tuple of them."""
        if self.declared.bound is not None:
            return Range(self.field, **{self.declared.bound: plain})
        return AnyOf(self.field, plain) if self.many else Equal(self.field, plain)


def _is_blank(value: object) -> bool:
    return isinstance(value, str) and not value.strip()
