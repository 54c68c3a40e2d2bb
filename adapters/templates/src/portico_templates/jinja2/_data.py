"""What of a value a template may read: data, and the methods of Python's own kinds that only compute."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import uuid
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from jinja2 import Undefined
from jinja2.environment import TemplateModule
from jinja2.runtime import AsyncLoopContext, BlockReference, LoopContext, Macro, TemplateReference
from jinja2.utils import Cycler, Joiner, Namespace, missing

from portico_templates.handlebars.values import declared_fields


class Refused(Exception):
    """What a template may not do, or cannot: the message for its author, not yet the place."""


NOTHING: Any = missing
"""What a lookup returns where there is nothing: None is a value."""

JINJA_OWN = (
    AsyncLoopContext,
    BlockReference,
    Cycler,
    Joiner,
    LoopContext,
    Macro,
    Namespace,
    TemplateModule,
    TemplateReference,
)
"""What Jinja2 itself gives a template; only names that begin with ``_`` are kept from it."""


def _words(names: str) -> frozenset[str]:
    return frozenset(names.split())


_WITHOUT_FIELDS = frozenset([bool, bytes, complex, float, int])
_TEXT = _words(
    "capitalize casefold center count endswith expandtabs find format format_map index isalnum isalpha isascii "
    "isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper join ljust lower lstrip "
    "partition removeprefix removesuffix replace rfind rindex rjust rpartition rsplit rstrip split splitlines "
    "startswith strip swapcase title upper zfill"
)
_SEQUENCE = frozenset(["count", "index"])
_MAPPING = frozenset(["get", "items", "keys", "values"])
_SET = _words("difference intersection isdisjoint issubset issuperset symmetric_difference union")
_CALENDAR = _words("date isocalendar isoformat isoweekday strftime time timestamp total_seconds weekday")
METHODS = _TEXT | _SEQUENCE | _MAPPING | _SET | _CALENDAR
"""The names of all methods that a template may call."""


_OF_CALENDAR = _words("day days fold hex hour microsecond microseconds minute month second seconds tzinfo year")


class Missing(Undefined):
    """A variable that is not there: empty, false, without elements and fields; called, it is a function.

    ``words`` are the names it was reached by, none where it is a field of some value.
    """

    __slots__ = ("words",)

    def __init__(self, hint: str | None = None, obj: Any = missing, name: Any = None, exc: Any = None) -> None:
        super().__init__(hint, obj, name, *([exc] if exc is not None else []))
        self.words: tuple[str, ...] = (name,) if obj is missing and isinstance(name, str) and hint is None else ()

    def field(self, name: object) -> Missing:
        """Return what a field of it is: missing as well."""
        further = Missing(name=str(name))
        if self.words and isinstance(name, str):
            further.words = (*self.words, name)
            further._undefined_name = ".".join(further.words)
        else:
            further.words = ()
        return further


@dataclass(slots=True, eq=False)
class Method:
    """A method of a value that a template may call."""

    of: Any
    name: str


def read_field(value: Any, name: str) -> Any:
    """Return ``value.name``: an element of a mapping, a field, a method; `NOTHING` where there is none.

    Raises ``Refused`` for a value that is no data, whatever the name: to ask it would already run its own code.
    """
    kind: Any = type(value)
    if isinstance(value, Mapping):
        if name in value:
            return value[name]
        return Method(value, name) if name in _MAPPING else NOTHING
    if isinstance(value, str):
        if isinstance(value, enum.Enum) and name in ("name", "value"):
            return getattr(value, name)
        return Method(value, name) if name in _TEXT else NOTHING
    if value is None or kind in _WITHOUT_FIELDS:
        return NOTHING
    if name in declared_fields(kind):
        return getattr(value, name, NOTHING)
    if isinstance(value, Sequence):
        return Method(value, name) if name in _SEQUENCE else NOTHING
    if isinstance(value, Set):
        return Method(value, name) if name in _SET else NOTHING
    if isinstance(value, dt.date | dt.time | dt.timedelta | uuid.UUID | decimal.Decimal):
        if name in _OF_CALENDAR:
            return getattr(value, name, NOTHING)
        return Method(value, name) if name in _CALENDAR and hasattr(value, name) else NOTHING
    if isinstance(value, enum.Enum):
        return getattr(value, name) if name in ("name", "value") else NOTHING
    if declared_fields(kind):
        return NOTHING
    raise Refused(f"A template reads fields of data only. The value is {describe_kind(value)}: {name!r} is not read.")


def read_item(value: Any, key: Any) -> Any:
    """Return ``value[key]``; `NOTHING` where there is none. Raises ``Refused`` for a value that is no data."""
    if isinstance(value, Mapping | Sequence | range):
        try:
            return value[key]
        except (LookupError, TypeError):
            return NOTHING if not isinstance(key, str) else read_field(value, key)
    return read_field(value, key) if isinstance(key, str) else NOTHING


def describe_kind(value: object) -> str:
    """Say in a few words what a value is; never what it says of itself."""
    if isinstance(value, Macro):
        return f"the macro {value.name}" if value.name else "a block"
    if isinstance(value, LoopContext | AsyncLoopContext):
        return "the variable of a loop"
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
