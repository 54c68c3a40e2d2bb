"""A page of results as it is asked for and as it is found, and queries as services take them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, Generic, TypeVar

from portico.errors import ServiceError, UnsupportedFilter, UnsupportedOption
from portico.filter import Range, Scalar, Wanted
from portico.settings import ValueForm

__all__ = ["AskedPage", "FoundPage", "check_query", "query_operator", "whole_text"]

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True)
class AskedPage:
    """The page to ask a service for.

    ``start`` is the number of the first result wanted, from 0 on; ``size`` how many; ``number`` the page's own, from 0
    on, for services that count pages. ``wanted`` is the filter, field by field; ``limits`` are the most ``characters``
    and ``words`` of a query that the service takes, and ``source`` begins the messages of what is refused before it is
    sent.
    """

    query: str
    start: int
    size: int
    number: int
    wanted: Wanted
    include_total_count: bool = False
    limits: Mapping[str, int | None] = field(default_factory=dict)
    source: str = "The service"

    def value(self, field: str, default: Scalar | None = None, *, form: ValueForm | None = None) -> Any:
        """Return the first value that the filter wants of a field, or ``default``; ``form`` as in `values`."""
        return next(iter(self.values(field, form=form)), default)

    def values(self, field: str, *, form: ValueForm | None = None) -> tuple[Scalar, ...]:
        """Return the values that the filter wants of a field.

        ``form`` is what the service understands; values are texts then. ``UnsupportedFilter`` for one that is nothing
        of it, for a service would ignore it in silence.
        """
        values = self.wanted.values.get(field, ())
        if form is None:
            return values
        texts = tuple(str(value).lower() if isinstance(value, bool) else str(value) for value in values)
        for value, text in zip(values, texts, strict=True):
            if not form.fits(text):
                raise UnsupportedFilter(f"{self.source} does not know {value!r} for {field!r}. It takes {form.words}.")
        return texts

    def chosen(self, settings: object, **forms: ValueForm) -> dict[str, Any]:
        """Return the values of several fields: what the filter wants, or else what the settings of that name say.

        >>> from types import SimpleNamespace
        >>> from portico.settings import one_of
        >>> page = AskedPage("ports", 0, 10, 0, Wanted({"country": ("DE",)}, {}))
        >>> country, age = ValueForm("[A-Z]{2}", "two letters, as in 'DE'"), one_of("day", "week")
        >>> page.chosen(SimpleNamespace(country="US"), country=country, age=age)
        {'country': 'DE', 'age': None}

        Each form is as in `values`. None is for a field that neither of them has.
        """
        return {field: self.value(field, getattr(settings, field, None), form=form) for field, form in forms.items()}

    def query_with(self, *fields: str) -> str:
        """Return the query with the filter's values of ``fields`` as operators, for services that take them there.

        >>> asked = Wanted({"site": ("a.example",), "language": ("en", "de")}, {})
        >>> AskedPage("cats OR dogs NOT", 0, 10, 0, asked).query_with("site", "language")
        'cats or dogs site:a.example (language:en OR language:de)'

        Several values of a field are joined by OR: declare AnyOf where the service reads that. What the query itself
        has of such a language is made words, as far as it would lift the filter.
        """
        filters = []
        for name in fields:
            operators = [query_operator(name, value) for value in self.wanted.values.get(name, ())]
            if operators:
                filters.append(operators[0] if len(operators) == 1 else f"({' OR '.join(operators)})")
        query = " ".join([_as_words(self.query), *filters]).strip() if filters else self.query
        return check_query(query, self.source, **self.limits)

    def days(self, field: str, *, instead_of: str | None = None) -> tuple[date | None, date | None]:
        """Return the first and the last day that the filter's ranges leave of a field, None for no bound.

        >>> asked = Wanted({}, {"date": (Range("date", at_least="2026-01-31", below="2026-03-01T00:00"),)})
        >>> AskedPage("ports", 0, 10, 0, asked).days("date")
        (datetime.date(2026, 1, 31), datetime.date(2026, 2, 28))

        A bound is an ISO 8601 date, alone or with a time of day, which is left out. Raises ``UnsupportedFilter`` for
        anything else, and where no day is left: what the service would not understand is not sent. ``instead_of`` is
        a field that says the same in another way and is refused together with this one.
        """
        bounds = self.wanted.ranges.get(field, ())
        first = [day for bound in bounds for day in _days(bound, bound.at_least, bound.above, 1)]
        last = [day for bound in bounds for day in _days(bound, bound.at_most, bound.below, -1)]
        earliest, latest = max(first, default=None), min(last, default=None)
        if bounds and instead_of is not None and self.wanted.values.get(instead_of):
            raise UnsupportedFilter(f"{self.source} filters by {field!r} or by {instead_of!r}, not by both.")
        if earliest is not None and latest is not None and earliest > latest:
            raise UnsupportedFilter(
                f"{self.source} is asked for {field!r} from {earliest} to {latest}: no day is left."
            )
        return earliest, latest

    def period(self, field: str, form: str, *, instead_of: str | None = None) -> str | None:
        """Return the first and the last day of a field as a service writes them; None without a range.

        >>> asked = Wanted({}, {"date": (Range("date", at_least="2026-01-01", at_most="2026-01-31"),)})
        >>> AskedPage("ports", 0, 10, 0, asked).period("date", "{}to{}")
        '2026-01-01to2026-01-31'

        An open beginning is 1970-01-01, an open end is today. Otherwise as `days`.
        """
        first, last = self.days(field, instead_of=instead_of)
        if first is None and last is None:
            return None
        return form.format(first or date(1970, 1, 1), last or max(datetime.now(UTC).date(), first or date.min))


@dataclass(frozen=True, slots=True)
class FoundPage(Generic[Record]):
    """What an answer holds: records in order, and what the service says of all of them.

    ``more`` tells whether there is another page; None leaves it to the number of records, and to ``total_count`` where
    a page may have fewer than it was asked for. ``fault`` is why there are no records, where that is a failure: it is
    raised for a first page without records, and a later one is the end. ``next_start`` is the number of the next page's
    first result, of a service that says it; None is right after these.
    """

    records: Sequence[Record]
    total_count: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    more: bool | None = None
    fault: ServiceError | None = None
    next_start: int | None = None

    def __post_init__(self) -> None:
        if type(self.total_count) not in (int, type(None)):
            raise TypeError(f"total_count is {type(self.total_count).__name__}, not a whole number")


def check_query(query: str, service: str, *, characters: int | None = None, words: int | None = None) -> str:
    """Return a query that is within a service's bounds; raise ``UnsupportedOption`` for one that is not.

    It is not cut: the end of a question is often what it asks, and a model that is told can ask a shorter one.

    >>> check_query("What is a port?", "Text search 'acme'", characters=400, words=50)
    'What is a port?'
    """
    for count, most, unit in ((len(query), characters, "characters"), (len(query.split()), words, "words")):
        if most is not None and count > most:
            raise UnsupportedOption(
                f"{service} takes queries of at most {most} {unit}, with the operators of filters; this "
                f"one has {count}. Ask a shorter one."
            )
    return query


def query_operator(name: str, value: object) -> str:
    """Return an operator of a query language, ``name:value``, with the value quoted so that it is one value.

    >>> query_operator("site", "example.org"), query_operator("intitle", "-two words")
    ('site:example.org', 'intitle:"-two words"')
    """
    text = " ".join(whole_text(str(value)).replace('"', " ").split())
    plain = text and text[0] != "-" and all(letter.isalnum() or letter in "-._/:" for letter in text)
    return f"{name}:{text}" if plain else f'{name}:"{text}"'


def _as_words(query: str) -> str:
    """Return a query in which nothing reaches over what is put after it: no OR, no open quote, no NOT at its end."""
    words = re.sub(r"\bOR\b", "or", query).replace("|", " ")
    if words.count('"') % 2:
        head, _, tail = words.rpartition('"')
        words = f"{head} {tail}"
    kept = words.split()
    while kept and (kept[-1] in ("NOT", "AND", "NEAR") or not kept[-1].strip("-+&!(")):
        kept.pop()
    return " ".join(kept)


def whole_text(text: str) -> str:
    """Return a text that UTF-8 can hold: half a character becomes the sign for one that is lost."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _days(bound: Range, including: object, excluding: object, step: int) -> Iterator[date]:
    for value, moved in ((including, 0), (excluding, step)):
        if value is None:
            continue
        try:
            yield date.fromisoformat(str(value)[:10]) + timedelta(days=moved)
        except (ValueError, OverflowError) as error:
            raise UnsupportedFilter(
                f"{bound.field} is compared with {value!r}; it takes ISO dates, as in '2026-01-31'. Nothing was sent."
            ) from error
