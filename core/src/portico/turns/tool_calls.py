"""Carrying out a model's tool call: whatever happens becomes a result that the model can work with."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from portico.chat import ToolCall, ToolResult
from portico.errors import ArgumentsInvalid, FunctionFailed, FunctionNotFound, PorticoError
from portico.middleware import ToolCallInvocation, run_middleware

if TYPE_CHECKING:
    from portico.functions import Function
    from portico.kernel import Kernel
    from portico.turns.toolset import Toolset

__all__ = ["carried_out"]


async def carried_out(kernel: Kernel, call: ToolCall, offered: Toolset | None) -> ToolResult:
    """Carry out a call, of the functions offered or of all; see `Kernel.call_tool`."""
    context = ToolCallInvocation(call)

    async def final() -> ToolResult:
        return ToolResult(context.call.id, context.call.name, await _text(kernel, context.call, offered))

    try:
        if not kernel.middleware.tool_call:
            return await final()
        result = await run_middleware(kernel.middleware.tool_call, context, final)
    except PorticoError as error:
        cause = error.__cause__ if isinstance(error, FunctionFailed) else error
        return ToolResult(context.call.id, context.call.name, str(error), error=True, cause=cause or error)
    if not isinstance(result, ToolResult):
        raise TypeError(f"a tool call filter returned {result!r}, not a ToolResult, such as proceed() gives")
    return result


async def _text(kernel: Kernel, call: ToolCall, offered: Toolset | None) -> str:
    function = kernel.function(call.name) if offered is None else _offered(kernel, call.name, offered)
    try:
        arguments = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError) as error:
        raise ArgumentsInvalid(function.full_name, [f"the arguments are not JSON: {error}"]) from error
    if not isinstance(arguments, dict):
        raise ArgumentsInvalid(function.full_name, ["the arguments must be one JSON object"])
    result = await kernel.invoke_json(function, arguments, lenient=True)
    try:
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise FunctionFailed(function.full_name, error) from error


def _offered(kernel: Kernel, name: str, offered: Toolset) -> Function:
    """Find an offered function; one of an earlier turn, which the model has seen, may be there and not be offered."""
    try:
        return offered.find(name)
    except FunctionNotFound:
        if name in kernel.functions:
            raise FunctionNotFound(name, tuple(offered.functions), offered=False) from None
        raise
