"""Find ahead what will not work, and say what mends it; this is what `portico doctor` shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from portico.errors import ConfigurationError, PluginConflict, PluginNotInstalled, PorticoError
from portico.ports import PORTS
from portico_host.configuration import FILE_NAME, Configuration
from portico_host.entry_points import Damaged, damaged_entry_points
from portico_host.fields import secret_values
from portico_host.loading import factory_of, settings_class_of
from portico_host.mending import mend_by_authors
from portico_host.mistakes import Mistake, SettingsInvalid
from portico_host.packages import Package, Plugins, port_named
from portico_host.schema import offered_schema
from portico_host.services import HostServices
from portico_host.shipped import folded
from portico_host.tree import Given, dotted

__all__ = ["Problem", "check", "package_problems", "problems_of"]

# What is to be installed beside what there is; other commands of pip mend what is installed already.
_INSTALL = re.compile(r"`pip install (?!-)[^`]+`")
_MEANT = re.compile(
    rf"(?:\.({'|'.join({port.key for port in PORTS})}): )?[\w ]+ '([^']+)' is not \w+\. Did you mean ([\w-]+)\?"
)
_MEND = re.compile(
    r" ((?:The \w+ is the older side: run|Run) `(?:pip|export|chmod|portico) .*|(?:Take|Add) `[^`]+` .*"
    r"|Mend it in .*|Register it under another name in .*)$"
)
_NOWHERE = "No installed package registers it."
_SLOW = 1.0
"""Seconds that the import of a package may take; all take part in every command."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that does not work ("error") or is unwise ("warning"): whose, why, and what mends it.

    ``error`` is what a package raised, where it did.
    """

    severity: Literal["error", "warning"]
    subject: str
    cause: str
    mend: str
    error: BaseException | None = field(default=None, compare=False, repr=False)

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
            offered_schema(prepared.offer)
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
    problems = [problem for package in plugins.packages for problem in _of_package(package)]
    problems += [
        Problem("warning", name, cause, f"Remove {name!r} there, or correct its spelling.")
        for name in plugins.unmatched
    ]
    return problems + [_of_damaged(damaged) for damaged in damaged_entry_points()]


def problems_of(error: PorticoError, port: str | None = None, name: str | None = None) -> list[Problem]:
    """Turn an error of the configuration or of a plugin into problems, one for each mistake.

    ``name`` is the service's.
    """
    if isinstance(error, SettingsInvalid):
        return [_of_mistake(mistake) for mistake in error.mistakes]
    subject = "configuration" if port is None else f"{port_named(port).noun} {name}" if name else port_named(port).noun
    cause, mend = _parted(str(error))
    if isinstance(error, PluginNotInstalled):
        # What is missing may be another that the service stands on, and what is switched off is there.
        command, meant = _INSTALL.search(str(error)), _MEANT.search(str(error))
        if meant:
            key, wrong, near = meant.groups()
            # Without a key it stands in a setting of the service, which alone knows which one.
            write = f'Set `{key} = "{near}"`' if key else f'Write "{near}" in place of "{wrong}"'
            cause, mend = str(error), f"{write}{f', or run {command[0]}' if command else ''}."
        elif command:
            cause, mend = str(error), f"Run {command[0]}, or choose another."
        elif _NOWHERE in str(error):
            cause, mend = str(error), "Choose another, or install the package that registers it, as its own pages say."
    elif isinstance(error, PluginConflict):
        mend = mend or "Run `pip uninstall` on one of them."
    elif isinstance(error, ConfigurationError):
        mend = mend or "Edit the configuration."
    return [Problem("error", subject, cause, mend or "Choose another.", error.__cause__)]


def _parted(text: str) -> tuple[str, str]:
    """Part a message into what is wrong and the sentence with the command that mends it, empty where there is none."""
    found = _MEND.search(text)
    return (text[: found.start()], found[1]) if found else (text, "")


def _of_mistake(mistake: Mistake) -> Problem:
    cause, mend = _parted(str(mistake))
    if not mend and mistake.message.startswith("is missing;"):
        table, _, key = mistake.key.rpartition(".")
        place = Path(mistake.place)
        mend = f"Set `{key}` in [{table}] of {place.name if place.suffix == '.toml' else FILE_NAME}."
    return Problem("error", mistake.key or mistake.place, cause, mend or _mend_place(mistake.place, mistake.key))


def _use(configuration: Configuration, port: str) -> str | None:
    """Return the plugin that is chosen for a port."""
    info = port_named(port)
    return configuration.use(info) or info.default


def _of_package(package: Package) -> Iterator[Problem]:
    name = package.distribution
    if package.state == "disabled":
        return
    for number, defect in enumerate(package.defects):
        state = "The package is broken. " if package.state == "broken" else ""
        severity: Literal["error", "warning"] = "warning" if package.state == "empty" else "error"
        yield Problem(severity, name, f"{state}{defect.sentence}", defect.mend, None if number else package.cause)
    if package.seconds > _SLOW:
        cause = f"Its import took {package.seconds:.1f} s, which every command waits for; it need import core only."
        yield Problem("warning", name, cause, mend_by_authors(name, package.name))


def _of_damaged(damaged: Damaged) -> Problem:
    name = damaged.distribution
    severity: Literal["error", "warning"] = "error" if folded(name).startswith("portico") else "warning"
    cause = f"Its {damaged.file} is damaged, so that nothing of it is found: {damaged.error}."
    return Problem(severity, name, cause, f"Run `pip install --force-reinstall --no-deps {name}`.")


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


def _mend_place(place: str, key: str = "") -> str:
    if place.startswith("PORTICO_"):
        return f"Change the environment variable {place}."
    if place == "override":
        return "Change the command's options."
    file = Path(place).name if place.endswith(".toml") else FILE_NAME
    return f"Edit `{key}` in {file}." if key else f"Edit {file}."
