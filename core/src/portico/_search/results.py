"""Text search: results as a stream, the options of a search, and the base class of connectors.

A connector subclasses :class:`SearchConnector` and writes ``fetch`` and two mappers. The rest of the TextSearch port is
derived.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from inspect import getdoc, isawaitable, iscoroutine
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, get_args, get_origin, get_type_hints, overload

from portico._search.filters import And, Filter, FilterSupport

if TYPE_CHECKING:
    from portico._ports.search_index import SearchIndex


Record = TypeVar("Record")
Mapped = TypeVar("Mapped")


@dataclass(frozen=True, slots=True)
class TextSearchResult:
    """One passage: its text, its name, and the link that opens it.

    >>> TextSearchResult("Ports are protocols.", name="Architecture", link="file:///docs/a.md#L3").name
    'Architecture'
    """

    value: str
    name: str | None = None
    link: str | None = None


@dataclass(frozen=True, slots=True)
class TextSearchOptions:
    """What one search call asks for. Nothing of it reaches the next call.

    ``top`` results at most come, after the first ``skip``. A total count comes only when asked for, since it may cost
    a service another request. Raises ``ValueError`` for a value that is too small.
    """

    top: int = 5
    skip: int = 0
    include_total_count: bool = False
    filter: Filter | None = None

    def __post_init__(self) -> None:
        for name, least in (("top", 1), ("skip", 0)):
            if (value := getattr(self, name)) < least:
                raise ValueError(f"{name} is {value}; it must be at least {least}")


class SearchResults(Generic[Record]):
    """An asynchronous stream of results, with what the source says about all of them.

    Iterate once, as far as needed. A connector fetches the next page only when it is read. Close a stream that is not
    read to its end with `aclose`. ``total_count`` is None unless it was asked for and the source knows it.
    ``metadata`` is what else the source says, such as a corrected query. A connector may return a subclass with more.

    >>> results = SearchResults(["a", "b"], total_count=2)
    >>> import asyncio; asyncio.run(results.list())
    ['a', 'b']
    """

    __slots__ = ("_inner", "_stream", "metadata", "total_count")

    def __init__(
        self,
        results: AsyncIterable[Record] | Iterable[Record],
        *,
        total_count: int | None = None,
        metadata: Mapping[str, Any] | None = None,
        inner: SearchResults[Any] | None = None,
    ) -> None:
        """Make a stream of results; closing it also closes ``inner``, the results that it is made from."""
        self._stream = aiter(results) if isinstance(results, AsyncIterable) else _stream(results)
        self._inner = inner
        self.total_count = total_count
        self.metadata: Mapping[str, Any] = metadata or {}

    def __aiter__(self) -> AsyncIterator[Record]:
        return self._stream

    async def list(self) -> list[Record]:
        """Collect the rest of the stream."""
        return [record async for record in self._stream]

    async def aclose(self) -> None:
        """Close the stream; a second call does nothing."""
        close = getattr(self._stream, "aclose", None)
        try:
            if close is not None:
                await close()
        finally:
            # A generator that was never started does not run its `finally`.
            if self._inner is not None:
                await self._inner.aclose()

    def map(self, convert: Callable[[Record], Mapped]) -> SearchResults[Mapped]:
        """Return the same results converted one by one as they are read."""
        return self.over((convert(record) async for record in self), self.total_count)

    def over(self, stream: AsyncIterator[Any], total_count: int | None) -> SearchResults[Any]:
        """Return results of the same class, with all that a connector keeps in them, over another stream."""
        made: SearchResults[Any] = copy(self)
        made._stream, made._inner, made.total_count = stream, self, total_count
        return made


@dataclass(frozen=True, slots=True)
class SearchCapabilities:
    """What a source supports. It is declared, so that no option is ignored in silence."""

    filter: FilterSupport = field(default_factory=FilterSupport.nothing)
    total_count: bool = False
    """Whether the source can count all results; otherwise ``total_count`` stays None."""
    most: int | None = None
    """The most results of one query, over all pages; None for no bound."""
    query_characters: int | None = None
    """The most characters of a query, with the operators of filters; None for no bound."""
    query_words: int | None = None
    """The most words of a query, with the operators of filters; None for no bound."""
    local: bool = False
    """Whether many results of one query cost little more than few, as in an index on this machine.

    The query of a source that is not local leaves the application, which a `portico.Policy` looks at."""

    def query_bounds(self) -> str:
        """Return in words how long a query may be; empty where there is no bound.

        >>> SearchCapabilities(query_characters=400, query_words=50).query_bounds()
        'at most 400 characters and 50 words'
        """
        counted = ((self.query_characters, "characters"), (self.query_words, "words"))
        bounds = [f"{most} {unit}" for most, unit in counted if most is not None]
        return f"at most {' and '.join(bounds)}" if bounds else ""


class SearchConnector(ABC, Generic[Record]):
    """The TextSearch port, derived from one method and two mappers.

    >>> class Colours(SearchConnector[str]):
    ...     name = "colours"
    ...
    ...     async def fetch(self, query, options):
    ...         found = [c for c in ("red", "dark red", "blue") if query in c]
    ...         return SearchResults(found[options.skip : options.skip + options.top])
    ...
    ...     def to_text(self, record):
    ...         return record
    ...
    ...     def to_result(self, record):
    ...         return TextSearchResult(record, name=record.title())
    >>> async def names(query):
    ...     results = await Colours().get_text_search_results(query)
    ...     return [result.name for result in await results.list()]
    >>> import asyncio; asyncio.run(names("red"))
    ['Red', 'Dark Red']

    ``fetch`` is called only with a query that is not blank and a filter that ``capabilities`` allow. Its results are
    cut at ``top``. `use_mappers` replaces a mapper of one instance.
    """

    name: str
    capabilities: SearchCapabilities = SearchCapabilities()
    index: SearchIndex | None = None
    fixed_filter: Filter | None = None
    """What `use_filter` made apply to every call."""
    descriptions: ClassVar[Mapping[str, str]] = {}
    """What search functions say by their kind: ``{"Search": "Find shades of a colour."}``; others have usual words."""
    record_type: Any = Any
    """The type of the records, from ``SearchConnector[Record]``. Search functions describe their results by it."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for base in cls.__dict__.get("__orig_bases__", ()):
            origin, arguments = get_origin(base), get_args(base)
            if isinstance(origin, type) and issubclass(origin, SearchConnector) and len(arguments) == 1:
                cls.record_type = Any if isinstance(arguments[0], TypeVar) else arguments[0]

    @abstractmethod
    async def fetch(self, query: str, options: TextSearchOptions) -> SearchResults[Record]:
        """Ask the source. Honour ``top``, ``skip`` and the filter, and turn its failures into errors of Portico."""

    @abstractmethod
    def to_text(self, record: Record) -> str:
        """Return the text of a record, for `search`."""

    @abstractmethod
    def to_result(self, record: Record) -> TextSearchResult:
        """Return a record as a passage with name and link, for `get_text_search_results`."""

    def use_mappers(
        self,
        *,
        to_text: Callable[[Record], str] | None = None,
        to_result: Callable[[Record], TextSearchResult] | None = None,
    ) -> Self:
        """Replace one mapper or both on this instance, and return it."""
        if to_text is not None:
            self.to_text = to_text  # type: ignore[method-assign, assignment]
        if to_result is not None:
            self.to_result = to_result  # type: ignore[method-assign, assignment]
        return self

    def use_filter(self, filter: Filter) -> Self:
        """Apply a filter to every call of this instance, and return it; the filter of a call can only narrow it.

        Raises ``UnsupportedOption`` for a filter that the source does not take.
        """
        joined = And.join(self.fixed_filter, filter)
        self.capabilities.filter.check(joined, f"Text search {self.name!r}")
        self.fixed_filter = joined
        return self

    async def search(self, query: str, options: TextSearchOptions | None = None) -> SearchResults[str]:
        """Find passages and return their texts."""
        return (await self.get_search_results(query, options)).map(partial(self._map, "to_text", str))

    async def get_text_search_results(
        self, query: str, options: TextSearchOptions | None = None
    ) -> SearchResults[TextSearchResult]:
        """Find passages and return them with name and link."""
        return (await self.get_search_results(query, options)).map(partial(self._map, "to_result", TextSearchResult))

    async def get_search_results(self, query: str, options: TextSearchOptions | None = None) -> SearchResults[Record]:
        """Find passages and return the source's own records."""
        return await _check_and_fetch(self, self.fetch, query, options)

    def _map(self, mapper: str, wanted: type[Mapped], record: Record) -> Mapped:
        """Call a mapper. Raise ``TypeError`` if it returns something else, or fails for a record of another type."""
        name, kind = type(self).__name__, self.record_type
        try:
            made = getattr(self, mapper)(record)
        except (AttributeError, LookupError, TypeError) as error:
            if type(kind) is not type or isinstance(record, kind):
                raise
            raise TypeError(f"{name}.fetch gave {_kind(record)} as a record: give {kind.__name__}.") from error
        return require_type(made, wanted, f"{name}.{mapper}")


@dataclass(frozen=True, slots=True)
class SearchMethod:
    """A further search method of a connector: its function name, its description, and the type of its records.

    ``capabilities`` are None where those of the connector apply.
    """

    name: str
    method: str
    description: str
    record_type: Any
    capabilities: SearchCapabilities | None = None


_Method = Callable[[Any, str, TextSearchOptions], Awaitable[SearchResults[Mapped]]]
_Further = Callable[..., Coroutine[Any, Any, SearchResults[Mapped]]]
_MARK = "__portico_search_method__"


@overload
def search_method(fetch: _Method[Mapped], /) -> _Further[Mapped]: ...
@overload
def search_method(*, capabilities: SearchCapabilities) -> Callable[[_Method[Mapped]], _Further[Mapped]]: ...
def search_method(
    fetch: Callable[..., Any] | None = None, /, *, capabilities: SearchCapabilities | None = None
) -> Callable[..., Any]:
    """Make a further search method of a connector, for news or images; `search_plugin` can offer it.

    Write it as `SearchConnector.fetch`. The name ``get_news`` makes the function ``GetNews``, the docstring makes its
    description, and the type of the records its result. Give ``capabilities`` if it filters by other fields than the
    connector.

    >>> class Papers(SearchConnector[str]):
    ...     name = "papers"
    ...     async def fetch(self, query, options): ...
    ...     def to_text(self, record): ...
    ...     def to_result(self, record): ...
    ...
    ...     @search_method
    ...     async def get_news(self, query: str, options: TextSearchOptions) -> SearchResults[str]:
    ...         '''Find what was in the papers.'''
    ...         return SearchResults(["Anvil falls.", "Anvil found."])
    >>> [method.name for method in search_methods(Papers)]
    ['GetNews']
    >>> async def news(query, top):
    ...     return await (await Papers().get_news(query, TextSearchOptions(top=top))).list()
    >>> import asyncio; asyncio.run(news("anvil", 1)), asyncio.run(news(" ", 1))
    (['Anvil falls.'], [])
    """
    if fetch is None:
        return partial(search_method, capabilities=capabilities)

    @wraps(fetch)
    async def method(self: Any, query: str, options: TextSearchOptions | None = None) -> SearchResults[Any]:
        return await _check_and_fetch(self, partial(fetch, self), query, options, capabilities)

    setattr(method, _MARK, (capabilities,))
    return method


def search_methods(connector: object) -> tuple[SearchMethod, ...]:
    """Return the further search methods of a connector or its class, in the order of definition."""
    # What stands for a connector, such as one that is traced, says whose class it has.
    kind = connector if isinstance(connector, type) else connector.__class__
    found: dict[str, SearchMethod] = {}
    for base in reversed(kind.__mro__):
        for name, member in vars(base).items():
            if mark := getattr(member, _MARK, ()):
                returned = get_type_hints(member, include_extras=True).get("return")
                record = (get_args(returned) or (Any,))[0]
                about = (getdoc(member) or "").partition("\n\n")[0].replace("\n", " ")
                function = "".join(word[:1].upper() + word[1:] for word in name.split("_"))
                found[name] = SearchMethod(function, name, about, record, *mark)
    return tuple(found.values())


async def _check_and_fetch(
    connector: SearchConnector[Any],
    fetch: Callable[[str, TextSearchOptions], Awaitable[SearchResults[Mapped]]],
    query: str,
    options: TextSearchOptions | None,
    capabilities: SearchCapabilities | None = None,
) -> SearchResults[Mapped]:
    """Check the options against what the connector or the method declares, fetch, and check what was fetched."""
    options = options or TextSearchOptions()
    if connector.fixed_filter is not None:
        options = replace(options, filter=And.join(connector.fixed_filter, options.filter))
    capabilities = capabilities or connector.capabilities
    capabilities.filter.check(options.filter, f"Text search {connector.name!r}")
    counted = options.include_total_count and capabilities.total_count
    if not query.strip():
        return SearchResults([], total_count=0 if counted else None)
    name = f"{type(connector).__name__}.{getattr(getattr(fetch, 'func', fetch), '__name__', 'fetch')}"
    try:
        found: Any = fetch(query, options)
    except TypeError as error:
        if error.__traceback__ is None or error.__traceback__.tb_next is not None:
            raise
        # The call itself does not fit.
        raise TypeError(f"{name} must take (self, query, options): {error}.") from None
    if not isawaitable(found):
        mend = "write it with `async def`, without `yield`, and return SearchResults(records)"
        raise TypeError(f"{name} gave {_kind(found)} and no coroutine: {mend}.")
    found = await found
    if not isinstance(found, SearchResults):
        raise TypeError(f"{name} returned {_kind(found)}: return SearchResults(records).")
    return found.over(_first(found, options.top), found.total_count if counted else None)


async def _stream(items: Iterable[Record]) -> AsyncIterator[Record]:
    for item in items:
        yield item


async def _first(results: SearchResults[Record], count: int) -> AsyncIterator[Record]:
    try:
        async for record in results:
            yield record
            count -= 1
            if count == 0:
                return
    finally:
        await results.aclose()


def require_type(made: object, wanted: type[Mapped], name: str) -> Mapped:
    """Return what a method of a connector made, or raise ``TypeError`` if it is of another type."""
    if isinstance(made, wanted):
        return made
    mend = f"return {wanted.__name__}"
    if iscoroutine(made):
        made.close()
        mend = "write it with `def`, without `async`"
    raise TypeError(f"{name} returned {_kind(made)}: {mend}.")


def _kind(value: object) -> str:
    """Return what a value is, for a message: "None", "a list", "an int"."""
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"
