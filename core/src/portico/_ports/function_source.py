"""The FunctionSource port."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from portico._functions.functions import FunctionPlugin


class FunctionSource(Protocol):
    """Makes a function plugin from an outside source: an OpenAPI document, a directory of prompts.

    Errors: ``ConfigurationError`` when the source cannot be read. A single wrong function is left out, and reported in
    the plugin's description.
    """

    async def load(self, name: str) -> FunctionPlugin:
        """Return the plugin, called ``name``."""
        ...
