"""Find ahead what will not work, and say what mends it; this is what `portico doctor` shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from portico.errors import ConfigurationError, PluginConflict, PluginIncompatible, PluginNotInstalled, PorticoError
from portico.ports import PORTS
from portico_host.configuration import Configuration
from portico_host.discovery import Package, Plugins, port_named
from portico_host.fields import secret_values
from portico_host.given import Given
from portico_host.loading import factory_of, settings_class_of
from portico_host.mistakes import SettingsInvalid
from portico_host.services import HostServices
from portico_host.tree import dotted

__all__ = ["Problem", "check", "package_problems", "problems_of"]

_INSTALL = re.compile(r"`pip install [^`]+`")


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that does not work ("error") or is unwise ("warning"): whose, why, and what mends it."""

    severity: Literal["error", "warning"]
    subject: str
    cause: str
    mend: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.subject}: {self.cause} {self.mend}"


def check(configuration: Configuration, plugins: Plugins, *, imports: bool = True) -> list[Problem]:
    """Return every problem of the installed packages and of what the configuration chooses.

    Nothing is opened, no network is used. With ``imports`` the factories of what is chosen are imported, which
    finds a vendor's library that does not load.
    """
    problems = package_problems(plugins)
    services = HostServices(configuration, plugins)
    defaults = [
        (port.name, None)
        for port in PORTS
        if plugins.default_of(port) and configuration.use(port) is None and not configuration.is_off(port)
    ]
    unasked = [(port.name, name) for port in PORTS for name in services.unasked(port.name)]
    for port, name in (*services.chosen(), *defaults, *unasked):
        try:
            prepared = services.prepare(port, name)
            if imports:
                factory_of(prepared.offer)
        except PorticoError as error:
            waits = name is not None and (port, name) in unasked and not services.has_settings(port, name)
            if waits and isinstance(error, ConfigurationError):
                # One that needs settings is active when it has them.
                continue
            problems += problems_of(error, port, name or _use(configuration, port))
    problems += _idle_tables(configuration, plugins)
    problems += _literal_secrets(configuration, plugins)
    return list(dict.fromkeys(problems))


def package_problems(plugins: Plugins) -> list[Problem]:
    """Return what is wrong with the installed packages, chosen or not."""
    cause = "It is named in `disable`, `only` or PORTICO_DISABLE and is not installed."
    return [problem for package in plugins.packages for problem in _of_package(package)] + [
        Problem("warning", name, cause, f"Remove {name!r} there, or correct its spelling.")
        for name in plugins.unmatched
    ]


def problems_of(error: PorticoError, port: str | None = None, name: str | None = None) -> list[Problem]:
    """Turn an error of the configuration or of a plugin into problems, one for each mistake.

    ``name`` is the service's.
    """
    if isinstance(error, SettingsInvalid):
        return [
            Problem("error", mistake.key or mistake.place, str(mistake), _mend_place(mistake.place))
            for mistake in error.mistakes
        ]
    subject = "configuration" if port is None else f"{port_named(port).noun} {name}" if name else port_named(port).noun
    if isinstance(error, PluginNotInstalled):
        # What is missing may be another that the service stands on, and what is switched off is there.
        command = _INSTALL.search(str(error))
        mend = f"Run {command[0]}, or choose another." if command else "Switch it on, or choose another."
    elif isinstance(error, PluginConflict):
        mend = "Run `pip uninstall` on one of them."
    elif isinstance(error, PluginIncompatible):
        mend = "Run `pip install --upgrade` on it."
    elif isinstance(error, ConfigurationError):
        mend = "Edit the configuration."
    else:
        mend = "Run `pip install --upgrade` on its distribution, or choose another."
    return [Problem("error", subject, str(error), mend)]


def _use(configuration: Configuration, port: str) -> str | None:
    """Return the plugin that is chosen for a port."""
    info = port_named(port)
    return configuration.use(info) or info.default


def _of_package(package: Package) -> Iterator[Problem]:
    name = package.distribution
    mends = {
        "broken": f"Run `pip install --upgrade {name}`, `pip uninstall {name}`, or set PORTICO_DISABLE={package.name}.",
        "conflict": f"Run `pip uninstall {name}`, or set PORTICO_DISABLE={name}.",
        "incompatible": f"Run `pip install --upgrade {name} portico-core`.",
    }
    if package.state in mends:
        yield Problem(
            "error", name, f"The package is {_STATES[package.state]}. {package.problem}", mends[package.state]
        )


_STATES = {"broken": "broken", "conflict": "in conflict with another", "incompatible": "incompatible"}


def _idle_tables(configuration: Configuration, plugins: Plugins) -> Iterator[Problem]:
    for port in PORTS:
        if port.many:
            continue
        installed = plugins.names(port.name)
        for entry in configuration.entries(port):
            if entry.name not in installed and entry.settings and entry.name != configuration.use(port):
                known = ", ".join(installed) or "none"
                cause = f"[{dotted(entry.key)}] belongs to no installed {port.noun}. Installed: {known}."
                yield Problem("warning", dotted(entry.key), cause, _mend_place(configuration.place(entry.key)))


def _literal_secrets(configuration: Configuration, plugins: Plugins) -> Iterator[Problem]:
    for port in PORTS:
        for entry in configuration.entries(port):
            try:
                cls = settings_class_of(plugins.offer(port.name, entry.use))
            except PorticoError:
                continue
            for key, value in secret_values(cls, entry.settings) if cls else ():
                if isinstance(value, str) and not isinstance(value, Given):
                    full = dotted((*entry.key, *key))
                    place = configuration.place((*entry.key, *key))
                    cause = f"{place}: {full}: the secret is written into the file, where others may read it."
                    yield Problem("warning", full, cause, 'Put it in a variable: { env = "NAME" }.')


def _mend_place(place: str) -> str:
    if place.startswith("PORTICO_"):
        return f"Change the environment variable {place}."
    return "Change the command's options." if place == "override" else f"Edit {Path(place).name if place else 'it'}."
