"""Parameters of search functions that become filters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_origin

from portico.filter import AnyOf, Equal, Filter, Range, Scalar, wanted
from portico.types import Compiled, compile_type

__all__ = ["FilterParameter", "SearchParameter", "excludes_all"]


@dataclass(frozen=True, slots=True)
class SearchParameter:
    """A parameter of search functions that becomes a filter.

    >>> languages = SearchParameter("Languages to keep.", field="language", type=list[str], values=("en", "de"))

    It keeps what equals its value in ``field``, whose name is otherwise the parameter's. A ``type`` that is a list
    keeps any of its values. ``bound`` keeps what is at least or at most the value, as for dates. ``values`` are all
    that may be given. What is left out, null or empty filters by ``default``, or not at all.
    """

    description: str
    field: str | None = None
    type: Any = str
    values: tuple[Scalar, ...] = ()
    required: bool = False
    default: Any = None
    bound: Literal["at_least", "at_most"] | None = None


@dataclass(frozen=True, slots=True)
class FilterParameter:
    """A parameter made ready: its type, and the filter that its value is."""

    field: str
    parameter: SearchParameter
    compiled: Compiled
    many: bool

    @classmethod
    def of(cls, name: str, parameter: SearchParameter) -> FilterParameter:
        """Make a parameter ready; ``ValueError`` for a default or a bound that its type cannot have."""
        many = parameter.type is list or get_origin(parameter.type) is list
        hint: Any = parameter.type
        if parameter.values:
            one: Any = Literal.__getitem__(parameter.values)
            hint = list[one] if many else one
        optional = not parameter.required and parameter.default is None
        compiled = compile_type(hint | None if optional else hint)
        if not parameter.required:
            structure = compiled.structure
            # Models write an empty text for what they leave out, also where a date or one of some values is due.
            compiled = replace(compiled, structure=lambda value: None if _is_blank(value) else structure(value))
        clause = cls(parameter.field or name, parameter, compiled, many)
        if many and parameter.bound is not None:
            raise ValueError(f"the parameter {name!r} has a bound, which one value is, and takes several")
        if parameter.default is not None:
            try:
                clause.compiled.structure(clause.compiled.unstructure(parameter.default))
            except Exception as error:
                raise ValueError(f"the parameter {name!r} cannot be {parameter.default!r} by default") from error
        return clause

    def filter(self, value: Any) -> Filter | None:
        """Return what a value keeps; None where it is empty, as models write what they do not mean."""
        if self.many and value is not None:
            value = [value] if isinstance(value, str) else value
            value = [each for each in value if not _is_blank(each)] or None
        if value is None or _is_blank(value):
            value = self.parameter.default
        if value is None:
            return None
        if self.parameter.bound is not None:
            return Range(self.field, **{self.parameter.bound: self._plain(value)})
        if self.many:
            return AnyOf(self.field, tuple(dict.fromkeys(self._plain(value))))
        return Equal(self.field, self._plain(value))

    @property
    def sample(self) -> Filter:
        """A filter as values become, to ask whether a source takes such."""
        if self.parameter.bound is not None:
            return Range(self.field, at_least="")
        return AnyOf(self.field, ()) if self.many else Equal(self.field, "")

    def _plain(self, value: Any) -> Any:
        # What calls with Python values may give the text of a date as well as a date.
        return value if type(value) is str else self.compiled.unstructure(value)


def excludes_all(filter: Filter | None) -> bool:
    """Tell whether nothing passes a filter of clauses joined by And, where a field holds one value.

    >>> from portico.filter import And
    >>> excludes_all(And((Equal("site", "a.example"), Equal("site", "b.example"))))
    True

    Of a filter with Or or Not it is not known, which is False.
    """
    try:
        return wanted(filter).nothing
    except ValueError:
        return False


def _is_blank(value: object) -> bool:
    return isinstance(value, str) and not value.strip()
