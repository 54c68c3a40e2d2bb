"""The configuration as it takes effect, with the origin of each value and without secrets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from portico.plugins import Secret
from portico.ports import PORTS
from portico_host.configuration import Configuration, Entry, LoopBudget, PluginChoice, SecretRules, default_settings
from portico_host.fields import holds_secret, is_settings_class, json_value, settings_fields
from portico_host.loading import fields_of
from portico_host.packages import Plugins
from portico_host.problems import dotted
from portico_host.tree import NONE

_MASK = "********"


@dataclass(frozen=True, slots=True)
class EffectiveSetting:
    """One setting: dotted key, a value fit for JSON, and the file, variable, "override" or "default" it is from."""

    key: str
    value: Any
    origin: str


def effective_settings(configuration: Configuration, plugins: Plugins) -> tuple[EffectiveSetting, ...]:
    """Return every setting of what is chosen or configured.

    A setting that may hold a secret shows where the secret comes from, never its value. If the plugin is not at hand
    that knows which settings are secret, every value is masked.
    """
    return tuple(_all(configuration, plugins))


def _all(configuration: Configuration, plugins: Plugins) -> Iterator[EffectiveSetting]:
    for port in PORTS:
        chosen = configuration.use(port)
        off = configuration.is_off(port)
        default = NONE if off else plugins.default_of(port)
        if not port.many and (chosen or default):
            origin = configuration.origins.get((port.table, port.key), "default")
            yield EffectiveSetting(f"{port.table}.{port.key}", str(chosen or default), origin)
        if port.table == "planner":
            yield from _own(configuration, LoopBudget, configuration.budget, ("planner",))
        entries = list(configuration.entries(port))
        if chosen is None and default and not off and default not in [entry.name for entry in entries]:
            entries.insert(0, configuration.single(port, default))
        for entry in entries:
            if port.many:
                key = (*entry.key, "use")
                yield EffectiveSetting(dotted(key), entry.use, configuration.place(key))
            yield from _of_entry(configuration, plugins, entry)
    yield from _own(configuration, PluginChoice, configuration.plugins, ("plugins",))
    yield from _own(configuration, SecretRules, configuration.secrets, ("secrets",))


def _own(configuration: Configuration, cls: type[Any], made: Any, key: tuple[str, ...]) -> Iterator[EffectiveSetting]:
    for member in settings_fields(cls):
        inside = (*key, member.key)
        given = any(known[: len(inside)] == inside for known in configuration.origins)
        origin = configuration.place(inside) if given else "default"
        yield EffectiveSetting(dotted(inside), _plain(getattr(made, member.key)), origin)


def _of_entry(configuration: Configuration, plugins: Plugins, entry: Entry) -> Iterator[EffectiveSetting]:
    fields = fields_of(plugins, entry.port.name, entry.use)
    for name, value in entry.settings.items():
        key = (*entry.key, name)
        member = fields.get(name)
        visible = _masked(value) if member is None or holds_secret(member.hint) else _plain(value)
        yield EffectiveSetting(dotted(key), visible, configuration.place(key))
    unchosen = configuration.use(entry.port) is None and entry.use == entry.port.default
    embedded = default_settings(entry.port.name, entry.use) if unchosen else {}
    for name, member in fields.items():
        if name not in entry.settings and not member.required:
            value = _plain(embedded.get(name, member.default))
            yield EffectiveSetting(dotted((*entry.key, name)), value, "default")


def _masked(value: Any) -> Any:
    if isinstance(value, Mapping) and len(value) == 1:
        ((kind, name),) = value.items()
        if kind in ("env", "file") and isinstance(name, str):
            return f"{_MASK} ({kind} {name})"
    return value if value is None or isinstance(value, bool) else _MASK


def _plain(value: Any) -> Any:
    """Return a value for JSON; what has no form in it is shown as Python shows it."""
    if isinstance(value, Secret):
        return _MASK
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(part) for part in value]
    if is_settings_class(type(value)):
        return {member.key: _plain(getattr(value, member.key, None)) for member in settings_fields(type(value))}
    try:
        return json_value(value)
    except TypeError:
        return str(value)
