"""Names of functions: as the kernel has them, as code and models write them, and as services take them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from portico.errors import FunctionNotFound

if TYPE_CHECKING:
    from portico.functions import Function

__all__ = ["find_function", "wire_name"]

_WIRE_LENGTH = 64
_SEPARATORS = re.compile(r"[-._:/ ]+")


def find_function(name: str, functions: Mapping[str, Function], *, lenient: bool = False) -> Function:
    """Find a function by its full name, or by another spelling of it that means one function only.

    ``Plugin-Function`` is the name; ``Plugin.Function``, ``Plugin_Function`` and a bare ``Function`` are
    understood; with ``lenient``, for names that a model writes, another case too. Raises ``FunctionNotFound`` with
    the nearest names, or with all that may be meant.
    """
    found = functions.get(name)
    if found is not None:
        return found
    for spelled in (_spelled, _spelled_alike)[: 1 + lenient]:
        matches = spelled(name, functions.values())
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise FunctionNotFound(name, list(functions), meant=[function.full_name for function in matches])
    raise FunctionNotFound(name, list(functions))


def _spelled(name: str, functions: Iterable[Function]) -> list[Function]:
    return [
        function
        for function in functions
        if name == function.name
        or (function.plugin and name in (f"{function.plugin}.{function.name}", f"{function.plugin}_{function.name}"))
    ]


def _spelled_alike(name: str, functions: Iterable[Function]) -> list[Function]:
    """Compare without case and kind of separator, and without the ``functions.`` that some models put before."""
    wanted = _SEPARATORS.sub("_", name.strip()).casefold().removeprefix("functions_")
    return [
        function
        for function in functions
        if wanted in (function.full_name.replace("-", "_").casefold(), function.name.casefold())
    ]


def wire_name(full_name: str) -> str:
    """Return the name by which a model is offered a function: at most 64 letters, digits, ``_`` and ``-``.

    That is what OpenAI takes, and other services with it. A longer name keeps its beginning and ends in a digest
    of the whole, so that it is the same in every process and no other function's.
    """
    if len(full_name) <= _WIRE_LENGTH and full_name.isascii():
        return full_name
    digest = hashlib.sha256(full_name.encode()).hexdigest()[:8]
    return f"{full_name.encode('ascii', 'replace').decode().replace('?', '_')[: _WIRE_LENGTH - 9]}_{digest}"
