"""A placeholder until the chats are merged."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from portico import Kernel


class Chats:
    """Nothing yet."""

    def __init__(self, kernel: Kernel, sources: tuple[str, ...]) -> None:
        self.kernel, self.sources = kernel, sources

    async def aclose(self) -> None:
        """Cancel what is under way."""
