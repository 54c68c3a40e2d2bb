"""Services given by hand, for tests of what asks for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from portico import Kernel
from portico.plugins import Services

__all__ = ["FixedServices"]

P = TypeVar("P")


class FixedServices:
    """Hand out the services given: by port, or by port and name, as ``Kernel(services={…})`` does.

    >>> from portico.ports import TextSearch
    >>> services = FixedServices({(TextSearch, "docs"): "one", (TextSearch, "web"): "another"})
    >>> services.get(TextSearch, "web"), services.get(TextSearch), services.names(TextSearch)
    ('another', 'one', ('docs', 'web'))
    """

    def __init__(self, services: Mapping[Any, Any] | None = None) -> None:
        given = Kernel(services or {}).services
        assert given is not None
        self._services: Services = given

    def get(self, port: Callable[..., P], name: str | None = None) -> P:
        """Return the service; ``PluginNotInstalled`` when none was given."""
        return self._services.get(port, name)

    def names(self, port: Callable[..., object]) -> tuple[str, ...]:
        """Return the names of the port's services in the order given."""
        return self._services.names(port)
