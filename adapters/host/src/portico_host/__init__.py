"""The composition root: finds plugin packages, reads `portico.toml` and wires the services of a kernel.

What an application needs::

    import portico_host

    async with portico_host.open() as kernel:                       # ./portico.toml, or the embedded default
        answer = await kernel.run("How do I write a search connector?")

    async with portico_host.open("other.toml", overrides={"planner": {"use": "recorded"}}, sources=["docs"]) as kernel:
        ...

What a command line needs::

    application = portico_host.load(config, overrides)              # reads and discovers; opens nothing
    application.plugins.packages                                    # every package: state, problem, registrations
    application.configuration                                       # the merged tree: file, environment, overrides
    application.sources                                             # names of the configured text searches
    application.settings()                                          # effective settings with origins, secrets masked
    application.redacted()                                          # the same for JSON
    application.budget                                              # what a run may cost, from [planner]
    application.check()                                             # problems: severity, subject, cause, mend
    application.schema()                                            # JSON Schema of the whole portico.toml
    async with application.services(sources) as services:           # ports without a kernel
        search = services.get(TextSearch, "docs")
    async with application.kernel(sources) as kernel:
        ...
    portico_host.diagnose(config)                                   # check, also when the configuration is wrong
    portico_host.commands()                                         # entry points of `portico.commands`

Every error is of `portico.errors`: a mistake of the configuration is a ``ConfigurationError`` whose text is
fit for people and never holds a secret. Importing this module imports nothing else; each name is loaded when
it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from portico_host.application import Application, Diagnosis, diagnose, load, open  # noqa: A004 - portico_host.open
    from portico_host.checking import Problem, check
    from portico_host.configuration import Configuration, read_configuration
    from portico_host.discovery import discover
    from portico_host.effective import EffectiveSetting
    from portico_host.entry_points import Command, commands
    from portico_host.mistakes import Mistake, SettingsInvalid
    from portico_host.packages import Defect, Offer, Package, Plugins
    from portico_host.schema import configuration_schema
    from portico_host.services import HostServices

__all__ = [
    "Application",
    "Command",
    "Configuration",
    "Defect",
    "Diagnosis",
    "EffectiveSetting",
    "HostServices",
    "Mistake",
    "Offer",
    "Package",
    "Plugins",
    "Problem",
    "SettingsInvalid",
    "check",
    "commands",
    "configuration_schema",
    "diagnose",
    "discover",
    "load",
    "open",
    "read_configuration",
]

_HOMES = {
    name: home
    for home, names in {
        "application": "Application Diagnosis diagnose load open",
        "checking": "Problem check",
        "configuration": "Configuration read_configuration",
        "discovery": "discover",
        "effective": "EffectiveSetting",
        "entry_points": "Command commands",
        "mistakes": "Mistake SettingsInvalid",
        "packages": "Defect Offer Package Plugins",
        "schema": "configuration_schema",
        "services": "HostServices",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
