"""Services given by hand, for tests of what asks for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from portico.errors import PluginNotInstalled

__all__ = ["FixedServices"]

P = TypeVar("P")


class FixedServices:
    """Hand out the services given: by port, or by port and name.

    >>> from portico.ports import TextSearch
    >>> services = FixedServices({(TextSearch, "docs"): "one", (TextSearch, "web"): "another"})
    >>> services.get(TextSearch, "web"), services.get(TextSearch), services.names(TextSearch)
    ('another', 'one', ('docs', 'web'))

    Without a name the service given for the port alone is meant, or else the first of the port. One that is
    given without a name is found by its own ``name`` too.
    """

    def __init__(self, services: Mapping[Any, Any] | None = None) -> None:
        self._services: dict[Any, dict[str | None, Any]] = {}
        for key, service in (services or {}).items():
            port, name = key if isinstance(key, tuple) else (key, None)
            self._services.setdefault(port, {})[name] = service

    def get(self, port: Callable[..., P], name: str | None = None) -> P:
        """Return the service; ``PluginNotInstalled`` when none was given."""
        given = self._services.get(port, {})
        if name is None and given:
            chosen: P = given[None] if None in given else next(iter(given.values()))
            return chosen
        for known, service in given.items():
            if name is not None and name == (_own_name(service) if known is None else known):
                found: P = service
                return found
        wanted = getattr(port, "__name__", port)
        raise PluginNotInstalled(f"No {wanted} {name or ''} was given; there are: {', '.join(self.names(port))}.")

    def names(self, port: Callable[..., object]) -> tuple[str, ...]:
        """Return the names of the port's services in the order given."""
        given = self._services.get(port, {})
        return tuple(_own_name(service) if name is None else name for name, service in given.items())


def _own_name(service: Any) -> str:
    return str(getattr(service, "name", "default"))
