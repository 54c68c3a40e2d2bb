"""Names of functions: the nearest one, the one that a service accepts, and texts about a function."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from portico.errors import FunctionNotFound

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from portico._functions.functions import Function


_SEPARATORS = re.compile(r"[-._:/ ]+")


def find_function(name: str, functions: Mapping[str, Function], *, lenient: bool = False) -> Function:
    """Find a function by its full name, or by another spelling that means one function only.

    ``Plugin-Function`` is the full name. ``Plugin.Function``, ``Plugin_Function`` and a bare ``Function`` are other
    spellings; with ``lenient``, for models, case does not matter. Raises ``FunctionNotFound`` with the nearest names,
    or with all that may be meant.
    """
    found = functions.get(name)
    return found if found is not None else functions[find_name(name, functions, lenient=lenient)]


def find_name(name: str, full_names: Collection[str], *, lenient: bool = False) -> str:
    """Find the full name for a spelling, as `find_function` does.

    >>> find_name("weather.forecast", ["Weather-Forecast", "Clock-Now"], lenient=True)
    'Weather-Forecast'
    """
    if name in full_names:
        return name
    for spelled in (_spelled, _spelled_alike)[: 1 + lenient]:
        matches = spelled(name, full_names)
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise FunctionNotFound(name, list(full_names), meant=matches)
    raise FunctionNotFound(name, list(full_names))


def _spelled(name: str, full_names: Iterable[str]) -> list[str]:
    matches = []
    for full_name in full_names:
        plugin, _, bare = full_name.rpartition("-")
        if name == bare or (plugin and name in (f"{plugin}.{bare}", f"{plugin}_{bare}")):
            matches.append(full_name)
    return matches


def _spelled_alike(name: str, full_names: Iterable[str]) -> list[str]:
    """Compare without case, kind of separator, and the ``functions.`` that some models write."""
    wanted = _SEPARATORS.sub("_", name.strip()).casefold().removeprefix("functions_")
    return [
        full_name
        for full_name in full_names
        if wanted in (full_name.replace("-", "_").casefold(), full_name.rpartition("-")[2].casefold())
    ]
