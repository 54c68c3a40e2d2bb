"""Find ahead what will not work, and say what mends it; this is what `portico doctor` shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from portico.errors import ConfigurationError, PorticoError
from portico.ports import PORTS
from portico_host.configuration import FILE_NAME, Configuration
from portico_host.fields import holds_secret, settings_fields
from portico_host.loading import factory_of, settings_class_of
from portico_host.mistakes import Mistake, SettingsInvalid
from portico_host.packages import Defect, Package, Plugins, port_named
from portico_host.schema import offered_schema
from portico_host.services import HostServices
from portico_host.tree import Given, dotted


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
    implicit = [(port.name, name) for port in PORTS for name in services.implicit(port.name)]
    for port, name in (*services.chosen(), *defaults, *implicit):
        try:
            prepared = services.prepare(port, name)
            offered_schema(prepared.offer)
            if imports:
                factory_of(prepared.offer)
        except PorticoError as error:
            waits = name is not None and (port, name) in implicit and not services.has_settings(port, name)
            if waits and isinstance(error, ConfigurationError):
                # One that needs settings is active when it has them.
                continue
            problems += problems_of(
                error, port, name or configuration.use(port_named(port)) or port_named(port).default
            )
    problems += _literal_secrets(configuration, plugins)
    return list(dict.fromkeys(problems))


def package_problems(plugins: Plugins) -> list[Problem]:
    """Return what is wrong with the installed packages, chosen or not."""
    cause = "It is named in `disable`, `only` or PORTICO_DISABLE and is not installed."
    problems = [problem for package in plugins.packages for problem in _of_package(package)]
    return problems + [
        Problem("warning", name, cause, f"Remove {name!r} there, or correct its spelling.")
        for name in plugins.unmatched
    ]


def problems_of(error: PorticoError, port: str | None = None, name: str | None = None) -> list[Problem]:
    """Turn an error of the configuration or of a plugin into problems, one for each mistake.

    ``name`` is the service's.
    """
    if isinstance(error, SettingsInvalid):
        return [_of_mistake(mistake) for mistake in error.mistakes]
    subject = "configuration" if port is None else f"{port_named(port).noun} {name}" if name else port_named(port).noun
    mend = "Edit the configuration." if isinstance(error, ConfigurationError) else "Choose another."
    defect = error.args[0] if error.args and isinstance(error.args[0], Defect) else Defect(str(error))
    return [Problem("error", subject, defect.sentence, defect.mend or mend, error.__cause__)]


def _of_mistake(mistake: Mistake) -> Problem:
    cause = str(replace(mistake, mend=""))
    mend = mistake.mend or _mend_place(mistake.place, mistake.key)
    return Problem("error", mistake.key or mistake.place, cause, mend)


def _of_package(package: Package) -> Iterator[Problem]:
    name = package.distribution
    if package.state == "disabled":
        return
    for number, defect in enumerate(package.defects):
        state = "The package is broken. " if package.state == "broken" else ""
        severity: Literal["error", "warning"] = "warning" if package.state == "empty" else "error"
        yield Problem(severity, name, f"{state}{defect.sentence}", defect.mend, None if number else package.cause)


def _literal_secrets(configuration: Configuration, plugins: Plugins) -> Iterator[Problem]:
    for port in PORTS:
        for entry in configuration.entries(port):
            try:
                cls = settings_class_of(plugins.offer(port.name, entry.use))
            except PorticoError:
                continue
            for member in settings_fields(cls) if cls else ():
                if holds_secret(member.hint) and _has_literal(entry.settings.get(member.key)):
                    key = (*entry.key, member.key)
                    cause = f"{configuration.place(key)}: {dotted(key)}: the secret is written into the file, where "
                    cause += "others may read it."
                    yield Problem("warning", dotted(key), cause, 'Put it in a variable: { env = "NAME" }.')


def _has_literal(value: object) -> bool:
    """Tell whether a secret, or one in a table of secrets, is written out in the file."""
    if isinstance(value, Mapping):
        return not value.keys() & {"env", "file"} and any(map(_has_literal, value.values()))
    return isinstance(value, str) and not isinstance(value, Given)


def _mend_place(place: str, key: str = "") -> str:
    if place.startswith("PORTICO_"):
        return f"Change the environment variable {place}."
    if place == "override":
        return "Change the command's options."
    file = Path(place).name if place.endswith(".toml") else FILE_NAME
    return f"Edit `{key}` in {file}." if key else f"Edit {file}."
