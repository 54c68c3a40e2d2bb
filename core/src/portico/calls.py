"""How a function is called with Python values: at once, awaited, or in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import CoroutineType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from portico.functions import Function

__all__ = ["called"]


async def called(function: Function, arguments: Mapping[str, Any]) -> Any:
    """Call a function and return what it returns; what it raises comes through."""
    if function.thread and not function.is_async:
        return await asyncio.to_thread(_in_thread, function, arguments)
    result = function.callable(**arguments)
    # A decorator may hide that what it wraps is asynchronous.
    return await result if function.is_async or isinstance(result, CoroutineType) else result


def _in_thread(function: Function, arguments: Mapping[str, Any]) -> Any:
    try:
        return function.callable(**arguments)
    except StopIteration as error:
        # No future can hold one: before Python 3.12, who waits for it waits for ever.
        raise RuntimeError(f"{function.full_name} raised StopIteration") from error
