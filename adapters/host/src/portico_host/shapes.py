"""The keys of ``[search.NAME]`` that shape the functions of a source, whichever search it uses."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from attrs import asdict, field as setting, fields_dict, frozen

from portico.errors import UnsupportedOption
from portico_host.problems import Problem, SettingsInvalid

if TYPE_CHECKING:
    from portico import Function, FunctionPlugin
    from portico.ports import TextSearch
    from portico.search import Filter, SearchParameter

_Scalar = str | bool | int | float
_USUAL = ("Search", "GetTextSearchResults", "GetSearchResults")
_TYPES = {"strings": list[str], "integer": int, "number": float, "boolean": bool, "date": dt.date}


@frozen
class ClauseShape:
    """A table in a filter: the bounds that a field keeps within, or the values that it must not have."""

    at_least: str | int | float | None = None
    at_most: str | int | float | None = None
    above: str | int | float | None = None
    below: str | int | float | None = None
    is_not: _Scalar | tuple[_Scalar, ...] | None = None


@frozen
class ParameterShape:
    """A parameter that becomes a filter, as ``portico.search.SearchParameter`` is in code."""

    description: str = setting(metadata={"doc": "What the model reads."})
    field: str | None = setting(default=None, metadata={"doc": "The field of the source; the parameter's name."})
    type: Literal["string", "strings", "integer", "number", "boolean", "date"] = setting(
        default="string", metadata={"doc": "What its values are; `strings` keeps any of several."}
    )
    values: tuple[_Scalar, ...] = setting(default=(), metadata={"doc": "All values that it may have."})
    required: bool = setting(default=False, metadata={"doc": "Whether a call must give it."})
    default: _Scalar | tuple[str, ...] | None = setting(default=None, metadata={"doc": "The value otherwise."})
    bound: Literal["at_least", "at_most"] | None = setting(
        default=None, metadata={"doc": "A bound in place of equality, as for dates."}
    )

    def declare(self) -> SearchParameter:
        """Return the parameter in core's form."""
        from portico.search import SearchParameter

        many, default = self.type == "strings", self.default
        fallback = [default] if many and isinstance(default, str) else default
        return SearchParameter(
            **asdict(self, recurse=False) | {"type": _TYPES.get(self.type, str), "default": fallback}
        )


@frozen
class _Shape:
    description: str = setting(default="", metadata={"doc": "What the source contains. Models and planners read it."})
    filter: dict[str, _Scalar | tuple[_Scalar, ...] | ClauseShape] = setting(
        factory=dict,
        metadata={
            "doc": "Always applies: for each field a value, a list of values or a table (`at_least`, …, `is_not`)."
        },
    )
    count: int | None = setting(default=None, metadata={"doc": "Results of a call that does not say how many; 2."})
    skip: int | None = setting(default=None, metadata={"doc": "Best results that such a call leaves out; 0."})
    most: int | None = setting(default=None, metadata={"doc": "Results that a call may ask for; 1,000."})
    names: dict[str, str] | None = setting(
        default=None, metadata={"doc": 'Other names of `query`, `count` and `skip`: `{ query = "topic" }`.'}
    )
    returns: str | None = setting(default=None, metadata={"doc": "What the results are, for models and planners."})
    parameters: dict[str, str | Literal[False] | ParameterShape] | None = setting(
        default=None,
        metadata={"doc": "What a model may set: a description, `false` to leave it out, or a table for a filter."},
    )

    def fixed(self) -> Filter | None:
        """Return the filter; raises ``ValueError`` for a table without a bound."""
        from portico.search import And

        return And.join(*(_clause(*item) for item in self.filter.items()))


@frozen
class FunctionShape(_Shape):
    """``[search.NAME.functions.FUNCTION]``: one function; what it does not say is as the source says."""

    use: str = setting(default="GetTextSearchResults", metadata={"doc": "The search function that it is made of."})


@frozen
class SourceShape(_Shape):
    """What `[search.NAME]` may say beside the settings of the search that it uses."""

    functions: tuple[str, ...] | dict[str, FunctionShape] = setting(
        default=_USUAL, metadata={"doc": "The functions there are: names, or a table for each function of your own."}
    )


SHAPING = frozenset(fields_dict(SourceShape))
"""The keys; a search that has a setting of the same name keeps it."""


def shape_functions(
    search: TextSearch, name: str, shape: SourceShape, *, summary: str = "", restricted: bool, **options: Any
) -> FunctionPlugin:
    """Make the function plugin of a source; ``options`` are further ones of ``search_plugin``.

    With ``restricted``, the search itself applies the filter of the source. Where neither the file nor the connector
    has words for a function, it begins with the ``summary`` of the registration. Raises ``SettingsInvalid``, with keys
    under ``[search.NAME]``, for a shape that the source does not take.
    """
    from portico import And, FunctionPlugin
    from portico.search import search_plugin

    chosen = shape.functions
    functions = chosen if isinstance(chosen, Mapping) else {each: FunctionShape(use=each) for each in chosen}
    told = getattr(search, "descriptions", {})
    made: list[Function] = []
    for function, own in functions.items():
        try:
            made += search_plugin(
                search,
                name,
                description=shape.description or (summary if own.use in _USUAL and own.use not in told else None),
                functions={function: own.use},
                descriptions={function: own.description} if own.description else None,
                filter=And.join(None if restricted else shape.fixed(), own.fixed()),
                **options,
                **_inherit(shape, own),
            )
        except (ValueError, UnsupportedOption) as error:
            if shape == SourceShape():
                raise
            key: tuple[str, ...] = ("functions", function) if isinstance(chosen, Mapping) else ()
            raise SettingsInvalid([Problem(str(error), key=key)]) from error
    return FunctionPlugin(name, tuple(made), shape.description or summary or f"Search {name}.")


def _inherit(*shapes: _Shape) -> dict[str, Any]:
    """Return what the last shape says, or else the one before it."""
    said: dict[str, Any] = {}
    for shape in shapes:
        inherited = {key: getattr(shape, key) for key in ("count", "skip", "most", "names", "returns", "parameters")}
        said |= {key: value for key, value in inherited.items() if value is not None}
    if parameters := said.get("parameters"):
        said["parameters"] = {
            name: each.declare() if isinstance(each, ParameterShape) else each or None
            for name, each in parameters.items()
        }
    return said


def _clause(name: str, value: Any) -> Filter | None:
    from portico.search import And, AnyOf, Equal, Not, Range

    if isinstance(value, ClauseShape):
        bounds = asdict(value, filter=lambda member, _: member.name != "is_not")
        unwanted = None if value.is_not is None else _clause(name, value.is_not)
        kept = Range(name, **bounds) if unwanted is None or any(each is not None for each in bounds.values()) else None
        return And.join(kept, unwanted and Not(unwanted))
    return AnyOf(name, value) if isinstance(value, tuple) else Equal(name, value)
