"""Records of a search service, read from its JSON by what their fields are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from datetime import date, datetime
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from portico.web_search.snippets import moment, plain_text, web_address

__all__ = ["Verbatim", "WebAddress", "read_record"]

Record = TypeVar("Record")
_Read: TypeAlias = Callable[[Any], Any]

WebAddress: TypeAlias = Annotated[str | None, web_address]
"""The type of a field that holds an address, made clean; None for one that no browser opens."""


def _as_it_is(text: object) -> str:
    if not isinstance(text, str):
        raise TypeError(f"a text is {type(text).__name__}")
    return text.strip()


Verbatim: TypeAlias = Annotated[str, _as_it_is]
"""The type of a field that holds text without markup, with its lines."""


def read_record(kind: type[Record], item: Mapping[str, Any]) -> Record:
    """Return the record that a member of a service's answer is.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Article:
    ...     title: str
    ...     url: WebAddress
    ...     date_published: datetime | None = None
    ...     tags: tuple[str, ...] = ()
    >>> read_record(Article, {"title": "<b>Ports</b> &amp; more", "url": "https://a.example", "tags": ["a"], "id": 7})
    Article(title='Ports & more', url='https://a.example', date_published=None, tags=('a',))

    ``kind`` is a dataclass whose fields are named as the service names them, or so in snake case: ``date_published``
    is ``datePublished`` too. A ``str`` is made plain text, a ``datetime`` or ``date`` is read as services write
    them, an ``Annotated`` field by the function in it. What is missing or null is the field's default; other members
    are left out.
    Raises ``KeyError`` for a field that has to be there and ``TypeError`` for one of another kind: an answer of another
    form, which `WebSearchConnector` tells.
    """
    if not isinstance(item, Mapping):
        raise TypeError(f"a {kind.__name__} is {type(item).__name__}")
    values: dict[str, Any] = {}
    of: Any = kind
    for name, other, read, required in _readers(of):
        value = item.get(name)
        if value is None and other != name:
            value = item.get(other)
        if value is not None:
            values[name] = read(value)
        elif required:
            if name not in item and other not in item:
                raise KeyError(name)
            values[name] = read(None)
    return kind(**values)


@cache
def _readers(kind: Any) -> tuple[tuple[str, str, _Read, bool], ...]:
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        (
            field.name,
            _camel(field.name),
            _reader(hints[field.name]),
            field.default is MISSING and field.default_factory is MISSING,
        )
        for field in fields(kind)
        if field.init
    )


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def _reader(hint: Any) -> _Read:
    if get_origin(hint) is Annotated:
        own = next((extra for extra in hint.__metadata__ if callable(extra)), None)
        return own or _reader(hint.__origin__)
    if get_origin(hint) in (Union, UnionType):
        kinds = [kind for kind in get_args(hint) if kind is not NoneType]
        if len(kinds) == 1:
            return _optional(_reader(kinds[0]))
    if get_origin(hint) is tuple and get_args(hint)[1:] == (Ellipsis,):
        return _several(_reader(get_args(hint)[0]))
    if hint in _OF_KIND:
        return _OF_KIND[hint]
    if hint is Any:
        return lambda value: value
    raise TypeError(f"a field of a record cannot be {hint}; there are str, numbers, dates, tuples of these, and Any")


def _optional(read: _Read) -> _Read:
    return lambda value: None if value is None else read(value)


def _several(read: _Read) -> _Read:
    def read_all(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise TypeError(f"a list is {type(value).__name__}")
        return tuple(read(part) for part in value)

    return read_all


def _of(*kinds: type) -> _Read:
    def checked(value: Any) -> Any:
        if type(value) not in kinds:
            raise TypeError(f"a value is {type(value).__name__}, not {kinds[0].__name__}")
        return kinds[0](value)

    return checked


def _day(value: Any) -> date | None:
    found = moment(value)
    return None if found is None else found.date()


_OF_KIND: Mapping[Any, _Read] = {
    str: plain_text,
    bool: _of(bool),
    int: _of(int),
    float: _of(float, int),
    datetime: moment,
    date: _day,
}
