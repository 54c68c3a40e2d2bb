"""Import what a registration names, and turn every failure into an error that names the package."""

from __future__ import annotations

from typing import Any

from portico.errors import PluginBroken
from portico_host.calling_out import import_quietly
from portico_host.fields import is_settings_class, settings_fields
from portico_host.packages import Defect, Offer, mend_of, sentence_of, title

__all__ = ["broken", "factory_of", "settings_class_of"]


def factory_of(offer: Offer) -> Any:
    """Import a registration's factory. Raises ``PluginBroken`` with the cause."""
    factory = _imported(offer, offer.registration.factory)
    if not callable(factory):
        raise broken(offer, f"its factory {offer.registration.factory} cannot be called")
    return factory


def settings_class_of(offer: Offer) -> type[Any] | None:
    """Import a registration's settings class, None when it has nothing to set.

    Raises ``PluginBroken`` for one whose fields cannot be read.
    """
    settings = offer.registration.settings
    if settings is None:
        return None
    cls = _imported(offer, settings) if isinstance(settings, str) else settings
    if not is_settings_class(cls):
        raise broken(offer, "its settings are neither an attrs class nor a dataclass")
    try:
        settings_fields(cls)
    except Exception as error:
        raise broken(offer, "its settings class cannot be read", error) from error
    return cls


def broken(offer: Offer, what: str, error: BaseException | None = None) -> PluginBroken:
    """Return the error for a package that raised, or that has a mistake."""
    raised = "." if error is None else f": {sentence_of(error)}"
    sentence = f"{title(offer.port)} {offer.name!r} of {offer.distribution} is broken: {what}{raised}"
    return PluginBroken(Defect(sentence, mend_of(offer.distribution, offer.package)))


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
