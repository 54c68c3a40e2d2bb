"""Services that an application gives by hand, for a kernel without a host."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from portico.errors import PluginNotInstalled

P = TypeVar("P")


class GivenServices:
    """Give the instances of a mapping, by port or by port and name; see `portico.Kernel`.

    Without a name, the one given for the port alone is meant, or else the first of the port. One that is given without
    a name is found by its own ``name`` too.
    """

    def __init__(self, services: Mapping[Any, Any]) -> None:
        self._services: dict[Any, dict[str | None, Any]] = {}
        for key, service in services.items():
            port, name = key if isinstance(key, tuple) and len(key) == 2 else (key, None)
            if not isinstance(port, type) or not isinstance(name, str | None):
                raise TypeError(f"services= is by port, as ChatService, or by (port, name), and not by {key!r}")
            self._services.setdefault(port, {})[name] = service

    def get(self, port: Callable[..., P], name: str | None = None) -> P:
        """Return the service; ``PluginNotInstalled`` where it was not given."""
        given = self._services.get(port, {})
        if name is None and given:
            chosen: P = given[None] if None in given else next(iter(given.values()))
            return chosen
        for known, service in given.items():
            if name is not None and name == (_own_name(service) if known is None else known):
                found: P = service
                return found
        wanted = f"{port.__name__} {name!r}" if name else port.__name__
        there = ", ".join(self.names(port)) or "none"
        raise PluginNotInstalled(f"No {wanted} was given; there are: {there}. Add it to Kernel(services={{…}}).")

    def names(self, port: Callable[..., object]) -> tuple[str, ...]:
        """Return the names of the port's services in the order given."""
        given = self._services.get(port, {})
        return tuple(_own_name(service) if name is None else name for name, service in given.items())


def _own_name(service: Any) -> str:
    return str(getattr(service, "name", "default"))
