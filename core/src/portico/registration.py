"""What a plugin package registers, and how a service reaches other services."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

__all__ = ["Registration", "Secret", "Services"]

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Registration:
    """One service that a package offers for a port.

    >>> Registration(
    ...     name="acme",
    ...     factory="portico_acme.search:AcmeSearch",
    ...     settings="portico_acme.config:AcmeSettings",
    ...     summary="Search the Acme catalogue.",
    ... ).name
    'acme'

    ``factory`` is ``"module:attribute"``. It is imported only when it is chosen, and called as
    ``factory(settings, services)``; it must not open anything. ``settings`` is an attrs class or a dataclass, or its
    ``"module:attribute"``; None where there are no settings. ``port_version`` is the major version of the port, from 1.
    A name may be registered for several versions; the one that fits the core is used. Raises ``ValueError`` for a
    malformed name, reference, summary or version.
    """

    name: str
    factory: str
    summary: str
    settings: type[Any] | str | None = None
    port_version: int = 1

    def __post_init__(self) -> None:
        if not self.name or not all(letter.isalnum() or letter in "-_" for letter in self.name):
            raise ValueError(f"a registration's name has letters, digits, '-' and '_' only, not {self.name!r}")
        for reference in (self.factory, self.settings):
            if isinstance(reference, str) and reference.count(":") != 1:
                raise ValueError(f"{reference!r} is not of the form 'module:attribute'")
        if not self.summary.strip() or "\n" in self.summary:
            raise ValueError(f"the registration {self.name!r} needs a summary of one line")
        version: object = self.port_version
        # True and 1.0 equal 1.
        if type(version) is not int or version < 1:
            raise ValueError(f"port_version is a whole number from 1, not {version!r} (registration {self.name!r})")


class Services(Protocol):
    """Gives factories the services of other ports; the host implements it.

    A service is made when it is first requested, and shared. A factory may request services; a circle is a
    ``ConfigurationError``.
    """

    def get(self, port: Callable[..., P], name: str | None = None) -> P:
        """Return the service configured for ``port``, or the one of that name.

        Raises ``PluginNotInstalled``, ``PluginBroken``, ``PluginConflict`` or ``ConfigurationError``.
        """
        ...

    def names(self, port: Callable[..., object]) -> tuple[str, ...]:
        """Return the names that are configured for ``port``, in the order of the configuration."""
        ...


class Secret:
    """A value that must not be shown: repr, str and format show asterisks only.

    >>> key = Secret("sk-123", origin="env OPENAI_API_KEY")
    >>> f"{key} {key!r}"
    '******** Secret(env OPENAI_API_KEY)'
    >>> key.reveal()
    'sk-123'
    """

    __slots__ = ("_value", "origin")

    def __init__(self, value: str, *, origin: str = "literal") -> None:
        self._value = value
        self.origin = origin

    def reveal(self) -> str:
        """Return the value; call this only to send it."""
        return self._value

    def __str__(self) -> str:
        return "********"

    def __repr__(self) -> str:
        return f"Secret({self.origin})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __getstate__(self) -> Any:
        raise TypeError("a Secret is not serialised")

    def __reduce_ex__(self, protocol: object) -> Any:
        raise TypeError("a Secret is not serialised")
