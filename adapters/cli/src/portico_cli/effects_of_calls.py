"""Who is asked before a model calls a function with effects, and what happens where nobody is there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from portico.errors import PorticoError

if TYPE_CHECKING:
    from portico.middleware import FunctionInvocation
    from portico_cli.person import Person

__all__ = ["ask_before_effects"]

_Filter = Callable[["FunctionInvocation", Callable[[], Awaitable[Any]]], Awaitable[Any]]


def ask_before_effects(person: Person | None) -> _Filter:
    """Return a function filter that asks before each call with effects; where nobody is there, none is made.

    The model is told in words that a call was not made, and goes on. Of a plan each step is asked for by itself.
    """
    always: set[str] = set()

    async def filter(context: FunctionInvocation, proceed: Callable[[], Awaitable[Any]]) -> Any:
        from portico.plans.plan_functions import plan_of

        function = context.function
        name = function.full_name
        if not function.effects or name in always or plan_of(function) is not None:
            return await proceed()
        if person is None:
            raise PorticoError(
                f"{name} was not called: it has effects, and nobody is there to approve it. `--yes` allows such calls."
            )
        answer = await person.about_call(name, context.arguments)
        if answer == "n":
            raise PorticoError(f"{name} was not called: the user did not approve it.")
        if answer == "a":
            always.add(name)
        return await proceed()

    return filter
