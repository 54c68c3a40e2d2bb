"""Connectors of services that answer over HTTP in JSON: their pages, limits, filters and errors are done here."""

from __future__ import annotations

import asyncio
import html
import re
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Hashable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import MISSING, dataclass, field, fields, replace
from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cache
from importlib import import_module
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    Self,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)
from urllib.parse import quote, urlsplit

from portico._plugins.http import HttpRequest, HttpResponse, printable, secrets_of
from portico._plugins.registration import Secret, Services, ValueForm
from portico._ports.http_client import HttpClient
from portico._search.filters import Filter, Scalar, Wanted, split_filter
from portico._search.results import SearchCapabilities, SearchConnector, SearchResults, TextSearchOptions, require_type
from portico.errors import PluginNotInstalled, PorticoError, ResponseInvalid, ServiceError, UnsupportedOption

Record = TypeVar("Record")
Found = TypeVar("Found")

# What reading JSON of another form than expected raises.
_FORM_ERRORS = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


@dataclass(frozen=True, slots=True)
class AskedPage:
    """The page to ask a service for.

    ``start`` is the number of the first result wanted and ``number`` the number of the page, both from 0 on. ``size``
    is how many results are wanted. ``wanted`` is the filter, field by field, and ``options`` are those of the search.
    ``source`` begins the messages of errors, and ``capabilities`` say how long a query may be.
    """

    query: str
    start: int
    size: int
    number: int
    wanted: Wanted
    options: TextSearchOptions = field(default_factory=TextSearchOptions)
    source: str = "The service"
    capabilities: SearchCapabilities = field(default_factory=SearchCapabilities)

    def value(self, field: str, default: Scalar | None = None, *, form: ValueForm | None = None) -> Any:
        """Return the first value that the filter wants of a field, or ``default``; ``form`` as in `values`."""
        return next(iter(self.values(field, form=form)), default)

    def values(self, field: str, *, form: ValueForm | None = None) -> tuple[Scalar, ...]:
        """Return the values that the filter wants of a field.

        With a ``form``, values are texts. Raises ``UnsupportedOption`` for a value that does not have the form, because
        a service would ignore it in silence.
        """
        values = self.wanted.values.get(field, ())
        if form is None:
            return values
        texts = tuple(str(value).lower() if isinstance(value, bool) else str(value) for value in values)
        for value, text in zip(values, texts, strict=True):
            if not form.fits(text):
                raise UnsupportedOption(f"{self.source} does not know {value!r} for {field!r}. It takes {form.words}.")
        return texts

    def chosen(self, settings: object, **forms: ValueForm) -> dict[str, Any]:
        """Return a value for each field: of the filter, or else of the setting with that name, or None.

        >>> from types import SimpleNamespace
        >>> from portico._plugins.registration import ValueForm
        >>> page = AskedPage("ports", 0, 10, 0, Wanted({"country": ("DE",)}, {}))
        >>> country, age = ValueForm("[A-Z]{2}", "two letters, as in 'DE'"), ValueForm.one_of("day", "week")
        >>> page.chosen(SimpleNamespace(country="US"), country=country, age=age)
        {'country': 'DE', 'age': None}
        """
        return {field: self.value(field, getattr(settings, field, None), form=form) for field, form in forms.items()}

    def query_with(self, *fields: str) -> str:
        """Return the query with the filter's values of ``fields`` as operators.

        >>> asked = Wanted({"site": ("a.example",), "language": ("en", "de")}, {})
        >>> AskedPage("cats OR dogs NOT", 0, 10, 0, asked).query_with("site", "language")
        'cats or dogs site:a.example (language:en OR language:de)'

        Several values of a field are joined by OR. What the filter leaves out of any field becomes ``-site:a.example``.
        Operators in the query itself that would lift the filter are made words. Raises ``UnsupportedOption`` where the
        query is longer than the service takes.
        """
        filters = []
        for name in fields:
            operators = [_query_operator(name, value) for value in self.wanted.values.get(name, ())]
            if operators:
                filters.append(operators[0] if len(operators) == 1 else f"({' OR '.join(operators)})")
        for name, values in self.wanted.unwanted.items():
            filters += [f"-{_query_operator(name, value)}" for value in dict.fromkeys(values)]
        query = " ".join([_disarm_operators(self.query), *filters]).strip() if filters else self.query
        return _within_bounds(query, self.source, self.capabilities)

    def days(self, field: str, *, instead_of: str | None = None) -> tuple[date | None, date | None]:
        """Return the first and the last day that the filter's ranges leave of a field; None for no bound.

        A bound is an ISO 8601 date; a time of day is left out. Raises ``UnsupportedOption`` for anything else, and
        where the filter also has the field ``instead_of``, which says the same in another way.
        """
        ranges = self.wanted.ranges.get(field, ())
        if ranges and instead_of is not None and self.wanted.values.get(instead_of):
            raise UnsupportedOption(f"{self.source} filters by {field!r} or by {instead_of!r}, not by both.")
        first = [(each.at_least, 0) for each in ranges] + [(each.above, 1) for each in ranges]
        last = [(each.at_most, 0) for each in ranges] + [(each.below, -1) for each in ranges]
        return (
            max((_read_day(field, *bound) for bound in first if bound[0] is not None), default=None),
            min((_read_day(field, *bound) for bound in last if bound[0] is not None), default=None),
        )

    def period(self, field: str, form: str, *, instead_of: str | None = None) -> str | None:
        """Return the first and the last day of a field in the form of a service; None without a range.

        >>> from portico import Range
        >>> asked = Wanted({}, {"date": (Range("date", at_least="2026-01-01", at_most="2026-01-31"),)})
        >>> AskedPage("ports", 0, 10, 0, asked).period("date", "{}to{}")
        '2026-01-01to2026-01-31'

        An open beginning is 1970-01-01, an open end is today. Raises what `days` raises.
        """
        first, last = self.days(field, instead_of=instead_of)
        if first is None and last is None:
            return None
        return form.format(first or date(1970, 1, 1), last or max(datetime.now(UTC).date(), first or date.min))


@dataclass(frozen=True, slots=True)
class FoundPage(Generic[Record]):
    """The content of an answer: records in order, and what the service says about all of them.

    ``more`` says whether there is another page. None leaves that to the number of records and to ``total_count``.
    ``fault`` is raised if the first page has no records; on a later page it ends the results. The metadata of the
    results also have the whole first answer, as ``raw``.
    """

    records: Sequence[Record]
    total_count: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    more: bool | None = None
    fault: ServiceError | None = None

    def __post_init__(self) -> None:
        if type(self.total_count) not in (int, NoneType):
            raise TypeError(f"total_count is {type(self.total_count).__name__}, not a whole number")

    @staticmethod
    def plain_text(markup: str | None) -> str:
        """Return the text of a snippet that has tags and entities in it; empty for None.

        >>> FoundPage.plain_text("A <b>port</b> isn&#x27;t an <b>adapter</b>,<br>but List<int> &amp; 1 &lt; 2 stay.")
        "A port isn't an adapter, but List<int> & 1 < 2 stay."

        Raises ``TypeError`` for a value that is not text.
        """
        if markup is None:
            return ""
        if not isinstance(markup, str):
            raise TypeError(f"a text is {type(markup).__name__}")
        return " ".join(html.unescape(_INLINE.sub("", _BLOCK.sub(" ", markup))).split())


class WebSearchConnector(SearchConnector[Record]):
    """The TextSearch port over HTTP: write a request, a reading of the answer, and two mappers.

    >>> class Acme(WebSearchConnector[dict]):
    ...     name = "acme"
    ...     page_size = 20
    ...
    ...     def request(self, page):
    ...         return HttpRequest("https://acme.example/find", {"q": page.query, "from": page.start, "n": page.size})
    ...
    ...     def read(self, answer):
    ...         return FoundPage(answer["items"], total_count=answer["total"])
    ...
    ...     def to_text(self, record):
    ...         return record["text"]
    ...
    ...     def to_result(self, record):
    ...         return TextSearchResult(record["text"], record["title"], record["url"])
    >>> Acme().page_size
    20

    The class is its own factory. Without ``settings``, the keyword arguments are the settings of the class
    ``settings_class``: ``BingTextSearch(api_key="…")``; a `Secret` may be given as text. It takes the HTTP client of
    ``services`` when it first needs one. Without services it makes the one of portico-web, which `aclose` closes; where
    that is not installed, the search raises ``PluginNotInstalled``. It asks for the first page at once, for others as
    the stream is read. An answer that `read` does not expect is ``ResponseInvalid``. An answer without success is the
    error that `failure` names, or that of its status.
    """

    paging: ClassVar[Literal["results", "pages", "all pages"]] = "results"
    """How to ask for more: from any result, by pages of a given size, or by pages of the service's size."""
    page_size: ClassVar[int] = 10
    """The most results that one request may ask for. The most of one query is ``capabilities.most``."""
    at_once: ClassVar[int | None] = None
    """The most requests at the same time; None for no bound."""
    advice: ClassVar[Mapping[int, str]] = {}
    """What to do about an answer with a status, where the connector knows better than `HttpResponse.error`."""

    settings_class: ClassVar[str] = ""
    """The class of the settings, "module:attribute", as its registration has it; empty for none."""
    _client: Any = None

    def __init__(self, settings: Any = None, services: Services | None = None, **values: Any) -> None:
        if values or (settings is None and self.settings_class):
            settings = self._own_settings(settings, values)
        self.settings = settings
        self._services = services
        self._slots: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None

    @classmethod
    def _own_settings(cls, settings: Any, values: dict[str, Any]) -> Any:
        if settings is not None or not cls.settings_class:
            raise TypeError(f"{cls.__name__} takes settings or their values, and not {', '.join(values)} here")
        module, _, name = cls.settings_class.partition(":")
        made = getattr(import_module(module), name)
        hints = get_type_hints(made)
        secret = {key for key in values if hints.get(key) in (Secret, Secret | None) and isinstance(values[key], str)}
        return made(**{key: Secret(value) if key in secret else value for key, value in values.items()})

    async def aclose(self) -> None:
        """Close the HTTP client that the connector made for itself; that of the services stays open."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def use_filter(self, filter: Filter) -> Self:
        """Do as `SearchConnector.use_filter`, and refuse values that the service would ignore, too."""
        super().use_filter(filter)
        self.request(self._first_page("", TextSearchOptions(filter=filter), 1, split_filter(self.fixed_filter)))
        return self

    @abstractmethod
    def request(self, page: AskedPage) -> HttpRequest:
        """Return the request for a page."""

    @abstractmethod
    def read(self, answer: Any) -> FoundPage[Record]:
        """Return what the service's JSON holds. ``KeyError`` and ``TypeError`` mean that it has another form."""

    def failure(self, response: HttpResponse, answer: Any) -> type[ServiceError] | ServiceError | None:
        """Return the kind of failure that the status does not show, or an error with the words to show; None otherwise.

        ``answer`` is the body as JSON, or None. The status decides for a plain ``ServiceError``, and if this raises.
        """
        return None

    def identity(self, record: Any) -> Hashable:
        """Return what makes two records equal: the ``url``, or the whole record where it has none.

        Services find a thing again on a further page. It is given once. A page with nothing new is the last.
        """
        return getattr(record, "url", None) or repr(record)

    async def fetch(self, query: str, options: TextSearchOptions) -> SearchResults[Record]:
        """Ask for the pages that hold the results wanted."""
        return await self.pages(query, options, self.request, self.read)

    async def pages(
        self,
        query: str,
        options: TextSearchOptions,
        request: Callable[[AskedPage], HttpRequest],
        read: Callable[[Any], FoundPage[Found]],
    ) -> SearchResults[Found]:
        """Do what `fetch` does with another request and reading, for further search methods."""
        clauses, most = split_filter(options.filter), self.capabilities.most
        if clauses.nothing:
            return SearchResults([], total_count=0)
        last = options.skip + options.top if most is None else min(most, options.skip + options.top)
        if options.skip >= last:
            return SearchResults([])
        asked = self._first_page(_replace_surrogates(query), options, last, clauses)
        made = require_type(request(asked), HttpRequest, f"{type(self).__name__}.request")
        hidden = (*made.secrets, *secrets_of(self.settings))
        with Secret.hiding(hidden):
            first = await self._ask(made, read, hidden)
            if first.fault is not None and not first.records:
                raise first.fault
        stream = self._results(request, read, asked, first, range(options.skip, last), hidden=hidden)
        return SearchResults(stream, total_count=first.total_count, metadata=first.metadata)

    def _first_page(self, query: str, options: TextSearchOptions, last: int, clauses: Wanted) -> AskedPage:
        size, start = self.page_size, 0
        if self.paging == "results":
            size, start = min(size, last - options.skip), options.skip
        elif self.paging == "pages":
            size = min(size, last) if options.skip == 0 else size
            start = options.skip - options.skip % size
        source = f"Text search {self.name!r}"
        query = _within_bounds(query, source, self.capabilities)
        return AskedPage(query, start, size, start // size, clauses, options, source, self.capabilities)

    async def _results(
        self,
        request: Callable[[AskedPage], HttpRequest],
        read: Callable[[Any], FoundPage[Found]],
        page: AskedPage,
        found: FoundPage[Found],
        wanted: range,
        *,
        hidden: Sequence[Secret],
    ) -> AsyncIterator[Found]:
        """Yield the results whose numbers are ``wanted``, without repetitions, and ask for further pages on the way."""
        most = self.capabilities.most
        left, skip = len(wanted), wanted.start - page.start
        known: set[Hashable] = set()
        while True:
            fresh = []
            for record in found.records:
                if (identity := self.identity(record)) not in known:
                    known.add(identity)
                    fresh.append(record)
            for record in fresh[skip:]:
                yield record
                left -= 1
                if left == 0:
                    return
            position, more = page.start + len(found.records), found.more
            if more is None:
                full = len(found.records) >= page.size or self.paging == "all pages"
                more = full or (self.paging == "results" and position < (found.total_count or 0))
            if self.paging == "all pages":
                skip = max(0, skip - len(fresh))
            elif self.paging == "pages":
                # Such a service counts pages, even where the last one was short.
                skip, position = 0, page.start + page.size
            if not fresh or not more or (most is not None and position >= most):
                return
            size = page.size
            if self.paging == "results":
                size = min(self.page_size, left, left if most is None else most - position)
            page = replace(page, start=position, size=size, number=page.number + 1)
            with Secret.hiding(hidden):
                found = await self._ask(request(page), read, hidden)

    async def _ask(
        self, request: HttpRequest, read: Callable[[Any], FoundPage[Found]], hidden: Sequence[Secret]
    ) -> FoundPage[Found]:
        service = f"Text search {self.name!r}"
        client = self._own_client(service) if self._services is None else self._services.get(HttpClient)
        async with self._slot():
            try:
                response = await client.send(request)
            except ServiceError as error:
                error.args = (f"{service}: {error}",)
                raise
        answer, kind, why = None, None, "it is not JSON"
        with suppress(ValueError):
            answer = response.json()
        with suppress(*_FORM_ERRORS):
            kind = self.failure(response, answer)
        if kind is not None or not response.ok:
            raise response.error(service, kind, hidden=hidden, advice=self.advice.get(response.status))
        if answer is not None:
            try:
                found = read(answer)
            except PorticoError:
                raise
            except _FORM_ERRORS as error:
                why = printable(f"{type(error).__name__}: {error}", hidden)
            else:
                found = require_type(found, FoundPage, f"{type(self).__name__}.read")
                return replace(found, metadata={**found.metadata, "raw": answer})
        # Outside of the handler: the error itself may quote a secret.
        raise ResponseInvalid(f"{service} answered in another form than agreed: {why}. Check its address.")

    def _own_client(self, service: str) -> HttpClient:
        from importlib.metadata import entry_points

        if self._client is None:
            for point in entry_points(group="portico", name="web"):
                # As the host does: the package says where its client is.
                found = next(each for each in point.load().portico_http_clients() if each.name == "httpx")
                module, _, name = found.factory.partition(":")
                self._client = getattr(import_module(module), name)(None, None)
                break
            else:
                raise PluginNotInstalled(f"{service} has no HTTP client: run `pip install portico-web`, or give one.")
        client: HttpClient = self._client
        return client

    def _slot(self) -> AbstractAsyncContextManager[Any]:
        """Return what bounds the requests of this event loop."""
        if self.at_once is None:
            return nullcontext()
        loop = asyncio.get_running_loop()
        if self._slots is None or self._slots[0] is not loop:
            self._slots = loop, asyncio.Semaphore(self.at_once)
        return self._slots[1]


def _within_bounds(query: str, source: str, capabilities: SearchCapabilities) -> str:
    """Return a query that is not too long, and raise ``UnsupportedOption`` otherwise; the end of a question matters."""
    bounds = (
        (len(query), capabilities.query_characters, "characters"),
        (len(query.split()), capabilities.query_words, "words"),
    )
    for count, most, unit in bounds:
        if most is not None and count > most:
            raise UnsupportedOption(
                f"{source} takes queries of at most {most} {unit}, with the operators of filters; this "
                f"one has {count}. Ask a shorter one."
            )
    return query


def _replace_surrogates(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _query_operator(name: str, value: object) -> str:
    """Return an operator of a query language, ``name:value``, with the value quoted so that it is one value."""
    text = " ".join(_replace_surrogates(str(value)).replace('"', " ").split())
    plain = text and text[0] != "-" and all(letter.isalnum() or letter in "-._/:" for letter in text)
    return f"{name}:{text}" if plain else f'{name}:"{text}"'


def _disarm_operators(query: str) -> str:
    """Return a query that cannot change what is put after it: no OR, no open quote, no NOT at its end."""
    words = re.sub(r"\bOR\b", "or", query).replace("|", " ")
    if words.count('"') % 2:
        head, _, tail = words.rpartition('"')
        words = f"{head} {tail}"
    kept = words.split()
    while kept and (kept[-1] in ("NOT", "AND", "NEAR") or not kept[-1].strip("-+&!(")):
        kept.pop()
    return " ".join(kept)


def _read_day(field: str, value: object, step: int) -> date:
    try:
        return date.fromisoformat(str(value)[:10]) + timedelta(days=step)
    except (ValueError, OverflowError) as error:
        raise UnsupportedOption(
            f"{field} is compared with {value!r}; it takes ISO dates, as in '2026-01-31'. Nothing was sent."
        ) from error


# Only tags of HTML: ``List<int>`` of a service that does not escape stays. And the marks of Bing's ``textDecorations``.
_INLINE = re.compile(
    r"</?(?:a|abbr|b|bdi|cite|code|em|font|i|kbd|mark|q|s|samp|small|span|strong|sub|sup|time|tt|u|var|wbr)"
    r"(?:\s[^<>]*|/)?>|[\ue000\ue001]",
    re.IGNORECASE,
)
_BLOCK = re.compile(
    r"</?(?:br|dd|div|dl|dt|h[1-6]|hr|li|ol|p|pre|table|tbody|td|th|tr|ul)(?:\s[^<>]*|/)?>", re.IGNORECASE
)
# Characters that RFC 3986 does not allow, except letters of other scripts, which browsers take.
_UNSAFE = re.compile(r"[\x00-\x20\x7f-\xa0\"<>\\^`{|}\u2028\u2029\ud800-\udfff]")


def _web_address(url: str | None) -> str | None:
    """Return an address that opens in a browser; None if it is missing or has another scheme than http(s)."""
    if url is None:
        return None
    if not isinstance(url, str):
        raise TypeError(f"an address is {type(url).__name__}")
    url = _UNSAFE.sub(lambda mark: quote(mark[0], errors="replace"), url.strip())
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return url if parts.scheme in ("http", "https") and parts.netloc else None


def _read_date(written: object) -> datetime | None:
    """Return a date in ISO 8601 or RFC 2822, in UTC where it has no time zone; None for other values ("3 days ago")."""
    if not isinstance(written, str):
        return None
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            read_as = read(written.strip())
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        return read_as if read_as.tzinfo is not None else read_as.replace(tzinfo=UTC)
    return None


_Read: TypeAlias = Callable[[Any], Any]

WebAddress: TypeAlias = Annotated[str | None, _web_address]
"""The type of a field with an address, made clean; None for an address that no browser opens."""


def _read_verbatim(text: object) -> str:
    if not isinstance(text, str):
        raise TypeError(f"a text is {type(text).__name__}")
    return text.strip()


Verbatim: TypeAlias = Annotated[str, _read_verbatim]
"""The type of a field with text that has no markup and keeps its lines."""


def read_record(kind: type[Record], item: Mapping[str, Any]) -> Record:
    """Return a record of a service's answer.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Article:
    ...     title: str
    ...     url: WebAddress
    ...     date_published: datetime | None = None
    ...     tags: tuple[str, ...] = ()
    >>> read_record(Article, {"title": "<b>Ports</b> &amp; more", "url": "https://a.example", "tags": ["a"], "id": 7})
    Article(title='Ports & more', url='https://a.example', date_published=None, tags=('a',))

    ``kind`` is a dataclass. The field ``date_published`` also reads ``datePublished``. A ``str`` becomes plain text, a
    ``datetime`` or ``date`` is read as services write them, an ``Annotated`` field by the function in it. A missing or
    null member is the field's default; other members are left out. Raises ``KeyError`` for a missing field without a
    default and ``TypeError`` for a value of another kind.
    """
    if not isinstance(item, Mapping):
        raise TypeError(f"a {kind.__name__} is {type(item).__name__}")
    values: dict[str, Any] = {}
    of: Any = kind
    for name, (other, read, required) in _field_readers(of).items():
        value = item.get(name, item.get(other))
        if value is not None:
            values[name] = read(value)
        elif required:
            if name not in item and other not in item:
                raise KeyError(name)
            values[name] = read(None)
    return kind(**values)


@cache
def _field_readers(kind: Any) -> Mapping[str, tuple[str, _Read, bool]]:
    """Return for each field its name in camel case, how it is read, and whether it must be there."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        field.name: (
            re.sub("_(.)", lambda letter: letter[1].upper(), field.name),
            _reader(hints[field.name]),
            field.default is MISSING and field.default_factory is MISSING,
        )
        for field in fields(kind)
        if field.init
    }


def _reader(hint: Any) -> _Read:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return next((extra for extra in hint.__metadata__ if callable(extra)), None) or _reader(hint.__origin__)
    if origin in (Union, UnionType) and len(arguments) == 2 and NoneType in arguments:
        read = _reader(arguments[0] if arguments[1] is NoneType else arguments[1])
        return lambda value: None if value is None else read(value)
    if origin is tuple and arguments[1:] == (Ellipsis,):
        read_list, read = _require_type(list), _reader(arguments[0])
        return lambda value: tuple(map(read, read_list(value)))
    if hint not in _READERS:
        raise TypeError(
            f"a field of a record cannot be {hint}; there are str, numbers, dates, tuples of these, and Any"
        )
    return _READERS[hint]


def _require_type(*kinds: type) -> _Read:
    def require(value: Any) -> Any:
        if type(value) not in kinds:
            raise TypeError(f"a value is {type(value).__name__}, not {kinds[0].__name__}")
        return kinds[0](value)

    return require


_READERS: Mapping[Any, _Read] = {
    Any: lambda value: value,
    str: FoundPage.plain_text,
    bool: _require_type(bool),
    int: _require_type(int),
    float: _require_type(float, int),
    datetime: _read_date,
    date: lambda value: (found := _read_date(value)) and found.date(),
}
