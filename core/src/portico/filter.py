"""Filters are data: what a search or a store should keep, never code.

A source declares what it can apply with :class:`FilterSupport`; :func:`check_filter` refuses the rest, so no
clause is ever dropped in silence. :func:`matches` is the reference meaning, which stores that translate
filters (to SQL, to query parameters) must agree with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from portico.errors import UnsupportedFilter, nearest

__all__ = [
    "And",
    "AnyOf",
    "Equal",
    "Filter",
    "FilterSupport",
    "Not",
    "Or",
    "Range",
    "Scalar",
    "Wanted",
    "check_filter",
    "matches",
    "wanted",
]

Scalar: TypeAlias = str | int | float | bool
"""What a metadata field may hold and a filter may compare with. ``True`` and ``1`` are different values."""

_MAXIMUM_DEPTH = 20
_MAXIMUM_CLAUSES = 1_000


@dataclass(frozen=True, slots=True)
class Equal:
    """Keep what has this very value in the field; a string equals only a string, a bool only a bool."""

    field: str
    value: Scalar


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Keep what has one of these values in the field; no values keep nothing."""

    field: str
    values: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """Keep what lies between the bounds given: numbers with numbers, strings by code point with strings.

    Dates compare rightly as ISO 8601 strings of one form. A bool is not a number here. At least one bound is
    needed, else ``ValueError``.
    """

    field: str
    at_least: str | int | float | None = None
    at_most: str | int | float | None = None
    above: str | int | float | None = None
    below: str | int | float | None = None

    def __post_init__(self) -> None:
        if self.at_least is self.at_most is self.above is self.below is None:
            raise ValueError("a Range needs at_least, at_most, above or below")


@dataclass(frozen=True, slots=True)
class And:
    """Keep what every part keeps; no parts keep everything."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Keep what any part keeps; no parts keep nothing."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """Keep what the part does not keep, records without the field included."""

    part: Filter


Filter: TypeAlias = Equal | AnyOf | Range | And | Or | Not


@dataclass(frozen=True, slots=True)
class FilterSupport:
    """What a source can filter by.

    ``fields`` maps each field to the names of the clauses it takes (``"Equal"``, ``"AnyOf"``, ``"Range"``);
    None means any field with any clause. ``combine`` names the combinations (``"And"``, ``"Or"``, ``"Not"``).
    ``offered`` are the fields that a search function shows to a model unless the application says otherwise.
    """

    fields: Mapping[str, frozenset[str]] | None
    combine: frozenset[str] = frozenset({"And"})
    offered: tuple[str, ...] = ()

    @classmethod
    def everything(cls) -> FilterSupport:
        """Any field, every clause, every combination."""
        return cls(None, frozenset({"And", "Or", "Not"}))

    @classmethod
    def nothing(cls) -> FilterSupport:
        """No filter at all."""
        return cls({}, frozenset())

    @classmethod
    def fields_of(cls, *fields: str, offered: Iterable[str] = (), **more: Iterable[str]) -> FilterSupport:
        """Take these fields and those ``offered`` by equality, and ``more`` by the clauses named; combined by And.

        >>> FilterSupport.fields_of("site", date=("Range",)).describe()
        'date (Range), site (Equal)'
        """
        offered = tuple(offered)
        clauses = {field: frozenset({"Equal"}) for field in (*fields, *offered)}
        return cls(clauses | {field: frozenset(kinds) for field, kinds in more.items()}, offered=offered)

    def describe(self) -> str:
        """Say in words what is supported, for error messages and `portico plugins`."""
        if self.fields is None:
            return "any field"
        if not self.fields:
            return "no filters"
        return ", ".join(f"{field} ({', '.join(sorted(kinds))})" for field, kinds in sorted(self.fields.items()))


def check_filter(filter: Filter | None, support: FilterSupport, source: str) -> None:
    """Raise ``UnsupportedFilter`` unless ``source`` can apply every clause of ``filter``."""
    if filter is None:
        return
    for clause in _clauses(filter, 0):
        kind = type(clause).__name__
        if isinstance(clause, And | Or | Not):
            if kind not in support.combine:
                raise UnsupportedFilter(
                    f"{source} cannot combine filters with {kind}. It supports {support.describe()}"
                    + (f", combined with {', '.join(sorted(support.combine))}." if support.combine else ".")
                )
        elif support.fields is not None:
            if clause.field not in support.fields:
                near = nearest(clause.field, list(support.fields))
                hint = f" Did you mean {near[0]!r}?" if near else ""
                raise UnsupportedFilter(
                    f"{source} cannot filter by {clause.field!r}.{hint} It supports {support.describe()}."
                )
            if kind not in support.fields[clause.field]:
                raise UnsupportedFilter(
                    f"{source} cannot apply {kind} to {clause.field!r}. It supports {support.describe()}."
                )


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a filter of clauses joined by And wants of each field: the values allowed, and the ranges.

    A field holds one value here. ``nothing`` is True where none can pass, as with two different values for one field,
    or a range that ends before it begins.
    """

    values: Mapping[str, tuple[Scalar, ...]]
    ranges: Mapping[str, tuple[Range, ...]]
    nothing: bool = False


def wanted(filter: Filter | None) -> Wanted:
    """Sort the clauses of a filter by field, for a source that asks for fields one by one.

    >>> wanted(And((Equal("site", "a.example"), Range("date", at_least="2026"))))
    Wanted(values={'site': ('a.example',)}, ranges={'date': (Range(field='date', at_least='2026', at_most=None, \
above=None, below=None),)}, nothing=False)

    Raises ``ValueError`` for Or and Not, which a source that calls this does not declare.
    """
    values: dict[str, tuple[Scalar, ...]] = {}
    ranges: dict[str, tuple[Range, ...]] = {}
    for clause in () if filter is None else _clauses(filter, 0):
        match clause:
            case Equal(field, value):
                allowed: tuple[Scalar, ...] = (value,)
            case AnyOf(field, allowed):
                pass
            case Range(field):
                if clause not in ranges.get(field, ()):
                    ranges[field] = (*ranges.get(field, ()), clause)
                continue
            case And():
                continue
            case _:
                raise ValueError(f"{type(clause).__name__} cannot be told field by field")
        values[field] = _common(values.get(field, allowed), allowed)
    for field, bounds in ranges.items():
        if field in values:
            values[field] = tuple(value for value in values[field] if all(_within(value, bound) for bound in bounds))
    return Wanted(values, ranges, nothing=not all(values.values()) or any(map(_contradict, ranges.values())))


def _common(known: tuple[Scalar, ...], allowed: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    # As `_same` has it: a bool is no number, and a NaN is nothing's equal.
    keys = {(isinstance(value, bool), value) for value in allowed if _same(value, value)}
    kept: dict[tuple[bool, Scalar], Scalar] = {}
    for value in known:
        if (key := (isinstance(value, bool), value)) in keys:
            kept.setdefault(key, value)
    return tuple(kept.values())


def _contradict(bounds: tuple[Range, ...]) -> bool:
    """Tell whether no value lies within all the ranges: a lower bound is above an upper one, or of another kind."""
    lower = [(bound, False) for each in bounds for bound in (each.at_least,) if bound is not None]
    lower += [(bound, True) for each in bounds for bound in (each.above,) if bound is not None]
    upper = [(bound, False) for each in bounds for bound in (each.at_most,) if bound is not None]
    upper += [(bound, True) for each in bounds for bound in (each.below,) if bound is not None]
    for low, above in lower:
        for high, below in upper:
            order = _order(low, high)
            if order is None or order > 0 or (order == 0 and (above or below)):
                return True
    return False


def matches(filter: Filter | None, record: Mapping[str, object]) -> bool:
    """Tell whether ``record`` is kept by ``filter``: the reference meaning of every clause.

    A record without the field is never kept by a clause on it. A field that holds a list is kept when one of
    its elements is.
    """
    match filter:
        case None:
            return True
        case Equal(field, value):
            return any(_same(element, value) for element in _elements(record, field))
        case AnyOf(field, values):
            return any(_same(element, value) for element in _elements(record, field) for value in values)
        case Range():
            return any(_within(element, filter) for element in _elements(record, filter.field))
        case And(parts):
            return all(matches(part, record) for part in parts)
        case Or(parts):
            return any(matches(part, record) for part in parts)
        case Not(part):
            return not matches(part, record)


def _clauses(filter: Filter, depth: int) -> Iterator[Filter]:
    stack: list[tuple[Filter, int]] = [(filter, depth)]
    count = 0
    while stack:
        clause, depth = stack.pop()
        count += 1
        if depth > _MAXIMUM_DEPTH or count > _MAXIMUM_CLAUSES:
            raise UnsupportedFilter(
                f"The filter is larger than {_MAXIMUM_CLAUSES} clauses or deeper than {_MAXIMUM_DEPTH} levels."
            )
        yield clause
        if isinstance(clause, And | Or):
            stack.extend((part, depth + 1) for part in reversed(clause.parts))
        elif isinstance(clause, Not):
            stack.append((clause.part, depth + 1))


def _elements(record: Mapping[str, object], field: str) -> tuple[object, ...]:
    value = record.get(field)
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        return tuple(value)
    return (value,)


def _same(left: object, right: Scalar) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return isinstance(left, str | int | float) and left == right


def _within(value: object, bounds: Range) -> bool:
    return all(
        bound is None or ((order := _order(value, bound)) is not None and order in kept)
        for bound, kept in (
            (bounds.at_least, (0, 1)),
            (bounds.at_most, (-1, 0)),
            (bounds.above, (1,)),
            (bounds.below, (-1,)),
        )
    )


def _order(left: object, right: str | int | float) -> int | None:
    """Compare two values of one kind: -1, 0 or 1; None when they do not compare."""
    if isinstance(left, bool) or isinstance(right, bool):
        return None
    both_text = isinstance(left, str) and isinstance(right, str)
    both_numbers = isinstance(left, int | float) and isinstance(right, int | float)
    if not (both_text or both_numbers):
        return None
    above, below = left > right, left < right  # type: ignore[operator]
    # Only a NaN is neither above, nor below, nor equal.
    return above - below if above or below or left == right else None
