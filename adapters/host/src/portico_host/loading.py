"""Import what a registration names, and turn whatever goes wrong there into an error about the package."""

from __future__ import annotations

from typing import Any

from portico.errors import PluginBroken
from portico_host.fields import is_settings_class, settings_classes
from portico_host.packages import Offer
from portico_host.printing import import_quietly

__all__ = ["broken", "factory_of", "faulty", "settings_class_of"]


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
    from portico_host.mending import mend_of_failure
    from portico_host.raised_at import raised_at

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
