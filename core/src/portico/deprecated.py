"""The names of core that are on their way out, all in this file.

A name that is replaced keeps working for a while and says what replaces it. What that means for a module is one entry
in `NAMES` and, in the module, ``__getattr__`` made by `attribute_of` (PEP 562): Python calls it only for a name that is
not there, so that nothing is paid on import or on use of any other name::

    __getattr__ = attribute_of(__name__)

A parameter that has another name is one entry in `PARAMETERS` and a decorator::

    @renamed_parameters("portico.search.search_all")
    def search_all(query: str, *, top: int = 5) -> ...:

`docs/reference/versions.md` lists both tables and is held to them by a test.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import ParamSpec, TypeVar

__all__ = ["NAMES", "PARAMETERS", "Deprecation", "attribute_of", "renamed_parameters"]

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Deprecation:
    """What replaces a name, since which version of `portico-core` it warns, and in which it goes.

    ``new`` is the full name of what replaces it, "portico.search.TextSearchOptions"; of a parameter only its own
    name. Raises ``ValueError`` unless ``goes`` is a later version than ``since``.

    >>> Deprecation("portico.search.TextSearchOptions", since="0.4", goes="1.0").warning("portico.search.Options")
    'portico.search.Options is deprecated since portico-core 0.4 and goes in 1.0. Use portico.search.TextSearchOptions.'
    """

    new: str
    since: str
    goes: str

    def __post_init__(self) -> None:
        if _parts(self.since) >= _parts(self.goes):
            raise ValueError(f"{self.new}: it goes in {self.goes}, which must be later than {self.since}")

    def warning(self, old: str) -> str:
        """Return the sentence that warns of ``old``."""
        return f"{old} is deprecated since portico-core {self.since} and goes in {self.goes}. Use {self.new}."


NAMES: Mapping[str, Deprecation] = {}
"""By the full old name, "portico.search.Options"."""

PARAMETERS: Mapping[tuple[str, str], Deprecation] = {}
"""By the function's full name and the old name of its parameter, ("portico.search.search_all", "count")."""


def attribute_of(module: str, *, depth: int = 0, names: Mapping[str, Deprecation] = NAMES) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a module: it knows the deprecated names, and warns whoever uses one.

    It raises ``AttributeError`` for every other name. A module that has a ``__getattr__`` already ends it with
    ``return attribute_of(__name__, depth=1)(name)``, and so imports this one only for a name that it has not:
    ``depth`` is how many functions stand between the one who is warned and this one.
    """

    def __getattr__(name: str) -> object:  # noqa: N807 - it becomes the module's
        found = names.get(f"{module}.{name}")
        if found is not None:
            warnings.warn(found.warning(f"{module}.{name}"), DeprecationWarning, stacklevel=2 + depth)
            home, _, attribute = found.new.rpartition(".")
            return getattr(import_module(home), attribute)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return __getattr__


def renamed_parameters(
    function: str, *, parameters: Mapping[tuple[str, str], Deprecation] = PARAMETERS
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function take its parameters by their deprecated names too, and warn whoever does.

    ``function`` is its full name, as in `PARAMETERS`. The one who calls is warned, also of a coroutine function, before
    anything is awaited. Type checkers know the new names only. Raises ``TypeError`` when both names are given.

    >>> table = {("math.double", "x"): Deprecation("number", since="0.4", goes="1.0")}
    >>> @renamed_parameters("math.double", parameters=table)
    ... def double(number: int) -> int:
    ...     return 2 * number
    >>> double(number=2)
    4
    """
    old_names = {old: found for (owner, old), found in parameters.items() if owner == function}

    def decorate(wrapped: Callable[P, R]) -> Callable[P, R]:
        if not old_names:
            return wrapped

        @functools.wraps(wrapped)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            for old in old_names.keys() & kwargs.keys():
                found = old_names[old]
                if found.new in kwargs:
                    raise TypeError(f"{function}() got {old!r} and {found.new!r}, which are the same parameter")
                warnings.warn(found.warning(f"The parameter {old!r} of {function}"), DeprecationWarning, stacklevel=2)
                kwargs[found.new] = kwargs.pop(old)
            return wrapped(*args, **kwargs)

        # Before 3.12 nothing can be marked so; a call gives a coroutine all the same.
        mark = getattr(inspect, "markcoroutinefunction", None)
        return mark(wrapper) if mark and inspect.iscoroutinefunction(wrapped) else wrapper

    return decorate


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
