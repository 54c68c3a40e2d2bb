"""Filters of a search or a store. They are data, never code.

A source declares with :class:`FilterSupport` which filters it can apply. `FilterSupport.check` refuses others, so no
clause is dropped in silence. :func:`FilterSupport.matches` is the reference meaning for stores that translate filters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import ge, gt, le, lt
from typing import TYPE_CHECKING, Any, TypeAlias

from portico.errors import UnsupportedOption

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Scalar: TypeAlias = str | int | float | bool
"""A value of a metadata field. ``True`` and ``1`` are different values."""

_MAXIMUM_DEPTH = 20
_MAXIMUM_CLAUSES = 1_000


@dataclass(frozen=True, slots=True)
class Equal:
    """Keep records with this value in the field; a string equals only a string, a bool only a bool."""

    field: str
    value: Scalar


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Keep records with one of these values in the field; no values keep nothing."""

    field: str
    values: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """Keep records with a value between the bounds: numbers with numbers, strings by code point with strings.

    Dates work as ISO 8601 strings of one form. A bool is not a number here. Raises ``ValueError`` without a bound.
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
    """Keep records that every part keeps; no parts keep everything."""

    parts: tuple[Filter, ...]

    @staticmethod
    def join(*filters: Filter | None) -> Filter | None:
        """Return the filters as one, without those that are None."""
        parts = tuple(filter for filter in filters if filter is not None)
        return And(parts) if len(parts) > 1 else parts[0] if parts else None


@dataclass(frozen=True, slots=True)
class Or:
    """Keep records that any part keeps; no parts keep nothing."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """Keep records that the part does not keep, also those without the field."""

    part: Filter


Filter: TypeAlias = Equal | AnyOf | Range | And | Or | Not


@dataclass(frozen=True, slots=True)
class FilterSupport:
    """The filters that a source supports.

    ``fields`` maps each field to its clauses (``"Equal"``, ``"AnyOf"``, ``"Range"``); None means any field with any
    clause. A field with ``"Not"`` among them takes these under Not, also where ``combine`` does not have Not: values
    that are left out. ``combine`` names the combinations (``"And"``, ``"Or"``, ``"Not"``). ``offered`` are the fields
    that search functions show to a model by default.
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

    def check(self, filter: Filter | None, source: str) -> None:
        """Raise ``UnsupportedOption`` unless ``source`` can apply every clause of ``filter``."""
        if filter is None:
            return
        for clause in _clauses(filter):
            kind = type(clause).__name__
            if isinstance(clause, And | Or | Not):
                if kind not in self.combine and not self._leaves_out(clause):
                    raise UnsupportedOption(
                        f"{source} cannot combine filters with {kind}. It supports {self.describe()}"
                        + (f", combined with {', '.join(sorted(self.combine))}." if self.combine else ".")
                    )
            elif self.fields is not None:
                if clause.field not in self.fields:
                    raise UnsupportedOption(
                        f"{source} cannot filter by {clause.field!r}. It supports {self.describe()}."
                    )
                if kind not in self.fields[clause.field]:
                    raise UnsupportedOption(
                        f"{source} cannot apply {kind} to {clause.field!r}. It supports {self.describe()}."
                    )

    def _leaves_out(self, clause: Filter) -> bool:
        """Tell whether a clause is a Not that its field supports."""
        inner = clause.part if isinstance(clause, Not) else clause
        return isinstance(inner, Equal | AnyOf) and "Not" in (self.fields or {}).get(inner.field, ())

    def describe(self) -> str:
        """Return in words what is supported."""
        if self.fields is None:
            return "any field"
        if not self.fields:
            return "no filters"
        return ", ".join(f"{field} ({', '.join(sorted(kinds))})" for field, kinds in sorted(self.fields.items()))

    @staticmethod
    def matches(filter: Filter | None, record: Mapping[str, object]) -> bool:
        """Tell whether ``filter`` keeps ``record``: the reference meaning of every clause.

        A clause does not keep a record without its field. It keeps a list if it keeps one of the elements.
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
                return all(FilterSupport.matches(part, record) for part in parts)
            case Or(parts):
                return any(FilterSupport.matches(part, record) for part in parts)
            case Not(part):
                return not FilterSupport.matches(part, record)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The values and the ranges that a filter allows for each field. The clauses are joined by And.

    A field has one value here. ``nothing`` is True where no value is left, as with two values for one field. Ranges are
    not compared with each other. ``unwanted`` are the values that Not leaves out.
    """

    values: Mapping[str, tuple[Scalar, ...]]
    ranges: Mapping[str, tuple[Range, ...]]
    nothing: bool = False
    unwanted: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict)


def split_filter(filter: Filter | None) -> Wanted:
    """Sort the clauses of a filter by field, for sources with a parameter for each field.

    >>> split_filter(And((Equal("site", "a.example"), Range("date", at_least="2026"))))
    Wanted(values={'site': ('a.example',)}, ranges={'date': (Range(field='date', at_least='2026', at_most=None, \
above=None, below=None),)}, nothing=False, unwanted={})
    >>> split_filter(Not(AnyOf("site", ("a.example", "b.example")))).unwanted
    {'site': ('a.example', 'b.example')}

    Raises ``ValueError`` for Or, and for Not of other clauses, which such a source must not declare.
    """
    values: dict[str, tuple[Scalar, ...]] = {}
    ranges: dict[str, tuple[Range, ...]] = {}
    unwanted: dict[str, tuple[Scalar, ...]] = {}
    for clause in () if filter is None else _clauses(filter, inside_not=False):
        match clause:
            case Equal(field, value):
                allowed: tuple[Scalar, ...] = (value,)
            case AnyOf(field, allowed):
                pass
            case Range(field):
                ranges[field] = (*ranges.get(field, ()), clause)
                continue
            case Not(Equal() | AnyOf() as out):
                refused = out.values if isinstance(out, AnyOf) else (out.value,)
                unwanted[out.field] = (*unwanted.get(out.field, ()), *refused)
                continue
            case And():
                continue
            case _:
                raise ValueError(f"{type(clause).__name__} cannot be split by field")
        # A bool is not a number, and NaN equals nothing.
        known = {(isinstance(each, bool), each): each for each in values.get(field, allowed) if _same(each, each)}
        keys = {(isinstance(each, bool), each) for each in allowed}
        values[field] = tuple(each for key, each in known.items() if key in keys)
    for field, bounds in ranges.items():
        if field in values:
            values[field] = tuple(value for value in values[field] if all(_within(value, bound) for bound in bounds))
    for field in unwanted.keys() & values.keys():
        left_out = Not(AnyOf(field, unwanted[field]))
        values[field] = tuple(value for value in values[field] if FilterSupport.matches(left_out, {field: value}))
    return Wanted(values, ranges, not all(values.values()), unwanted)


def _clauses(filter: Filter, *, inside_not: bool = True) -> Iterator[Filter]:
    stack: list[tuple[Filter, int]] = [(filter, 0)]
    count = 0
    while stack:
        clause, depth = stack.pop()
        count += 1
        if depth > _MAXIMUM_DEPTH or count > _MAXIMUM_CLAUSES:
            raise UnsupportedOption(
                f"The filter is larger than {_MAXIMUM_CLAUSES} clauses or deeper than {_MAXIMUM_DEPTH} levels."
            )
        yield clause
        if isinstance(clause, And | Or):
            stack.extend((part, depth + 1) for part in reversed(clause.parts))
        elif isinstance(clause, Not) and inside_not:
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


def _within(value: Any, bounds: Range) -> bool:
    """Tell whether a value is between bounds of its kind, text or number; a bool is neither."""
    checks = ((bounds.at_least, ge), (bounds.at_most, le), (bounds.above, gt), (bounds.below, lt))
    return all(
        bound is None or ((kind := _kind(value)) is not None and kind is _kind(bound) and holds(value, bound))
        for bound, holds in checks
    )


def _kind(value: object) -> type | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str if isinstance(value, str) else float
