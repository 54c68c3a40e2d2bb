"""Import what a registration names, and turn every failure into an error that names the package."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

from portico.errors import PluginBroken
from portico.ports import PortInfo
from portico_host.calling_out import import_quietly
from portico_host.fields import is_settings_class, settings_classes
from portico_host.packages import Offer

__all__ = ["broken", "factory_of", "faulty", "misfit_of", "settings_class_of"]


def factory_of(offer: Offer) -> Any:
    """Import a registration's factory. Raises ``PluginBroken`` with the cause."""
    factory = _imported(offer, offer.registration.factory)
    if not callable(factory):
        raise faulty(offer, f"its factory {offer.registration.factory} cannot be called")
    return factory


def settings_class_of(offer: Offer) -> type[Any] | None:
    """Import a registration's settings class, None when it has nothing to set.

    Raises ``PluginBroken`` for one that cannot be read, or that holds a class which cannot be.
    """
    settings = offer.registration.settings
    if settings is None:
        return None
    cls = _imported(offer, settings) if isinstance(settings, str) else settings
    if not is_settings_class(cls):
        raise faulty(offer, "its settings are neither an attrs class nor a dataclass")
    try:
        settings_classes(cls)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise broken(offer, "its settings class cannot be read", error) from error
    return cls


def broken(offer: Offer, what: str, error: BaseException) -> PluginBroken:
    """Return the error for a package that raised."""
    from portico_host.mending import mend_of_failure, raised_at

    sentence = f"{_whose(offer)}: {what}: {type(error).__name__}: {error}".rstrip(".")
    where = raised_at(error, offer.registration.factory.partition(":")[0])
    return PluginBroken(f"{sentence}.{where} {mend_of_failure(offer.distribution, offer.package, error)}")


def faulty(offer: Offer, what: str) -> PluginBroken:
    """Return the error for a package with a mistake in it, which only its authors can mend."""
    from portico_host.mending import mend_by_authors

    return PluginBroken(f"{_whose(offer)}: {what}. {mend_by_authors(offer.distribution, offer.package)}")


def _imported(offer: Offer, reference: str) -> Any:
    module, _, attribute = reference.partition(":")
    try:
        value: Any = import_quietly(module)
        for part in attribute.split("."):
            value = getattr(value, part)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise broken(offer, f"{reference} cannot be imported", error) from error
    return value


def _whose(offer: Offer) -> str:
    noun = offer.port.noun
    return f"{noun[0].upper()}{noun[1:]} {offer.name!r} of {offer.distribution} is broken"


def misfit_of(info: PortInfo, service: object, factory: str) -> str:
    """Return why what a factory gave cannot fill a port, without a full stop; empty where it has all members.

    It is asked once for each service that is made, so that those who use it need not ask. That the members take the
    right parameters is for the port's kit to test. Raises what the service's own properties raise.
    """
    if inspect.iscoroutine(service):
        service.close()  # Python would warn that it was never awaited, at some other time and place
        return f"its factory {factory} is asynchronous; a service is made by a plain function"
    if service is None:
        return f"its factory {factory} returned nothing, not a {info.name}"
    missing = [name for name in _members(info.name) if not hasattr(service, name)]
    return f"{type(service).__qualname__} is no {info.name}: it has no {', '.join(missing)}" if missing else ""


@cache
def _members(port: str) -> tuple[str, ...]:
    import portico

    protocol = vars(getattr(portico, port))
    annotated = protocol.get("__annotations__", {})
    # An annotated member with a default is optional.
    required = [name for name in annotated if name not in protocol] + [
        name for name in protocol if name not in annotated
    ]
    return tuple(name for name in required if not name.startswith("_"))
