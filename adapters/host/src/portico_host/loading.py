"""Import what a registration names, and turn every failure into an error that names the package."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

from portico.errors import PluginBroken, PorticoError
from portico_host.fields import Field, is_settings_class, settings_fields
from portico_host.packages import Offer, Plugins, mend_of, sentence_of, title
from portico_host.problems import Problem


def factory_of(offer: Offer) -> Any:
    """Import a registration's factory. Raises ``PluginBroken`` with the cause."""
    factory = _import(offer, offer.registration.factory)
    if not callable(factory):
        raise blame(offer, f"its factory {offer.registration.factory} cannot be called")
    return factory


def settings_class_of(offer: Offer) -> type[Any] | None:
    """Import a registration's settings class, None when it has nothing to set.

    Raises ``PluginBroken`` for one whose fields cannot be read.
    """
    settings = offer.registration.settings
    if settings is None:
        return None
    cls = _import(offer, settings) if isinstance(settings, str) else settings
    if not is_settings_class(cls):
        raise blame(offer, "its settings are neither an attrs class nor a dataclass")
    try:
        settings_fields(cls)
    except Exception as error:
        raise blame(offer, "its settings class cannot be read", error) from error
    return cls


def fields_of(plugins: Plugins, port: str, name: str) -> dict[str, Field]:
    """Return the settings of a registration by key; none where it cannot be used."""
    try:
        cls = settings_class_of(plugins.offer(port, name))
    except PorticoError:
        return {}
    return {member.key: member for member in settings_fields(cls)} if cls else {}


def blame(offer: Offer, what: str, error: BaseException | None = None) -> PluginBroken:
    """Return the error for a package that raised, or that has a mistake."""
    raised = "." if error is None else f": {sentence_of(error)}"
    sentence = f"{title(offer.port)} {offer.name!r} of {offer.distribution} is broken: {what}{raised}"
    return PluginBroken(Problem(sentence, mend_of(offer.distribution, offer.package)))


def _import(offer: Offer, reference: str) -> Any:
    module, _, attribute = reference.partition(":")
    try:
        value: Any = import_quietly(module)
        for part in attribute.split("."):
            value = getattr(value, part)
    except (Exception, SystemExit) as error:
        raise blame(offer, f"{reference} cannot be imported", error) from error
    return value


def import_quietly(module: str) -> ModuleType:
    """Import a module; what it prints meanwhile goes to standard error.

    One that is imported already prints nothing, so standard output is left alone.
    """
    if module in sys.modules:
        return import_module(module)  # which waits until another thread has imported it
    with printing_to_stderr():
        return import_module(module)


_lock = threading.Lock()
_replaced: list[Any] = []


@contextmanager
def printing_to_stderr() -> Iterator[None]:
    """Send what is printed to standard error, by other threads too.

    `contextlib.redirect_stdout` would not do: if two threads overlap, the later one restores what the earlier one has
    set. Here the first one sets it and the last one restores it. No lock is held inside, because an import may wait
    for that of another thread.
    """
    with _lock:
        _replaced.append(sys.stdout)
        sys.stdout = sys.stderr
    try:
        yield
    finally:
        with _lock:
            original = _replaced.pop()
            if not _replaced:
                sys.stdout = original
