"""Names of functions: the nearest one, the one that a service accepts, and texts about a function."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from portico._functions.functions import FunctionManual
from portico.errors import FunctionNotFound

if TYPE_CHECKING:
    from portico._functions.functions import Function


_WIRE_LENGTH = 64
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


def wire_name(full_name: str) -> str:
    """Return a function's name for chat services: at most 64 letters, digits, ``_`` and ``-``, as OpenAI takes.

    A longer name keeps its beginning and ends in a digest of the whole, so that it is unique and always the same.
    """
    if len(full_name) <= _WIRE_LENGTH and full_name.isascii():
        return full_name
    digest = hashlib.sha256(full_name.encode()).hexdigest()[:8]
    return f"{full_name.encode('ascii', 'replace').decode().replace('?', '_')[: _WIRE_LENGTH - 9]}_{digest}"


def text_manual(manuals: Iterable[FunctionManual]) -> str:
    """Write manuals as indented text, a block for each function, in the form of Semantic Kernel's planners.

    >>> from portico import Function
    >>> def forecast(city: str, days: int = 1) -> str:
    ...     '''Tell the weather.
    ...
    ...     Args:
    ...         city: Where, by its English name.
    ...     '''
    >>> print(text_manual([Function.of(forecast, plugin="Weather").manual]))
    Weather.forecast:
      description: Tell the weather.
      inputs:
      - city: Where, by its English name.
      - days: (default: 1)

    Names have a dot. Defaults are JSON.
    """
    return "\n\n".join("\n".join(_lines(manual)) for manual in manuals)


def _lines(manual: FunctionManual) -> Iterator[str]:
    yield f"{manual.name.replace('-', '.')}:"
    yield f"  description: {_one_line(manual.description)}".rstrip()
    properties: Mapping[str, Any] = manual.parameters.get("properties", {})
    yield "  inputs:" if properties else "  inputs: none"
    required = manual.parameters.get("required", ())
    for name, schema in properties.items():
        known: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
        words = [_one_line(str(known.get("description", "")))]
        if name not in required:
            default = json.dumps(known["default"], ensure_ascii=False) if "default" in known else None
            words.append("(optional)" if default is None else f"(default: {default})")
        yield f"  - {name}: {' '.join(filter(None, words))}".rstrip()


def _one_line(text: str) -> str:
    return " ".join(text.split())
