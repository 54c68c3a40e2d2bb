"""Services that a kernel uses without being told to, and does without when they are broken."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from portico.errors import ConfigurationError, PorticoError
from portico.ports.schema_validator import SchemaValidator
from portico.ports.type_codec import TypeCodec
from portico_host.services import HostServices

if TYPE_CHECKING:
    from portico.types.compiled import Compiled

__all__ = ["schema_validator", "type_codecs"]

P = TypeVar("P")
_LOG = logging.getLogger("portico_host")


def type_codecs(services: HostServices) -> list[TypeCodec]:
    """Make the type codecs: the configured ones in the order of the file, then all others that are installed.

    Raises what `HostServices.get` does for a configured one. One of the others that cannot be made is left out,
    with a warning in the log: only a function with a type of its kind needs it.
    """
    unasked = services.unasked(TypeCodec.__name__)
    made: list[TypeCodec] = []
    for name in services.names(TypeCodec):
        if name not in unasked:
            made.append(services.get(TypeCodec, name))
            continue
        codec = _spared(services, TypeCodec, name)
        if codec is not None:
            made.append(_Spared(codec))
    return made


def schema_validator(services: HostServices) -> SchemaValidator | None:
    """Make the chosen schema validator, or the only one that is installed; None leaves core its own."""
    unasked = services.unasked(SchemaValidator.__name__)
    if unasked:
        return _spared(services, SchemaValidator, unasked[0])
    return services.get(SchemaValidator) if services.names(SchemaValidator) else None


def _spared(services: HostServices, port: Callable[..., P], name: str) -> P | None:
    try:
        return services.get(port, name)
    except ConfigurationError:
        if services.has_settings(port.__name__, name):
            raise
        # One that needs settings is active when it has them.
        return None
    except PorticoError as error:
        _LOG.warning("%s It is left out; `portico doctor` says what mends it.", error)
        return None


class _Spared:
    """A codec that nobody asked for: a failure of its own is no reason to refuse a type that others know."""

    def __init__(self, codec: TypeCodec) -> None:
        self.name = codec.name
        self._codec = codec
        self._told = False

    def compile(self, hint: object, inner: Callable[[object], Compiled]) -> Compiled | None:
        """Compile a hint; None, and a warning the first time, where the codec fails."""
        try:
            return self._codec.compile(hint, inner)
        except (PorticoError, RecursionError):
            raise
        except Exception as error:  # noqa: BLE001 - it may raise anything
            if not self._told:
                self._told = True
                shown = f"{type(error).__name__}: {error}"
                _LOG.warning("Type codec %r failed on %r, and is passed by: %s", self.name, hint, shown)
            return None
