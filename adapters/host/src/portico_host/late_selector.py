"""The function selector of a kernel, made when a model is first asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from portico.ports.function_selector import FunctionSelector

if TYPE_CHECKING:
    from portico.functions import FunctionManual
    from portico.selection.selection import Selection
    from portico_host.services import HostServices

__all__ = ["LateSelector", "function_selector"]


class LateSelector:
    """Stands for the chosen selector until it is asked.

    What a selector stands on, vectors and a store of them, takes a second to import, and most that is done with a
    kernel asks no model. The settings were structured when the kernel opened; what else is wrong is raised by the first
    turn, as it is of a chat service.
    """

    def __init__(self, services: HostServices, name: str) -> None:
        self.name = name
        self._services = services

    @property
    def limit(self) -> int:
        """How many functions are offered where a caller does not say."""
        return self._services.get(FunctionSelector).limit

    async def select(
        self, functions: Sequence[FunctionManual], context: Sequence[str], *, limit: int | None = None
    ) -> Selection:
        """Choose; raises what making the selector does, and what it does itself."""
        return await self._services.get(FunctionSelector).select(functions, context, limit=limit)


def function_selector(services: HostServices) -> LateSelector | None:
    """Return the chosen selector, None where none is chosen."""
    names = services.names(FunctionSelector)
    return LateSelector(services, names[0]) if names else None
