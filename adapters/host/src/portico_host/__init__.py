"""The composition root: finds plugin packages, reads `portico.toml` and wires the services of a kernel.

For applications::

    import portico_host

    async with portico_host.open() as kernel:                       # ./portico.toml, or the embedded default
        answer = await kernel.run("How do I write a search connector?")

    async with portico_host.open("other.toml", overrides={"planner": {"use": "recorded"}}, sources=["docs"]) as kernel:
        ...

For a command line: `load` reads the file and opens nothing. The `Application` has the packages, the settings in effect,
the problems and the JSON Schema of the file; its `kernel` and `services` are asynchronous context managers. `diagnose`
also works when the configuration is wrong.

Every error is of `portico.errors`: a mistake of the configuration is a ``ConfigurationError`` whose text is
fit for people and never holds a secret. A name is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from portico_host.application import (
        Application as Application,
        Diagnosis as Diagnosis,
        diagnose as diagnose,
        load as load,
        open as open,  # noqa: A004 - portico_host.open
    )
    from portico_host.configuration import Configuration as Configuration
    from portico_host.discovery import Command as Command, commands as commands, discover as discover
    from portico_host.marks import hookimpl as hookimpl, hookspec as hookspec
    from portico_host.packages import Offer as Offer, Package as Package, Plugins as Plugins
    from portico_host.problems import Problem as Problem, SettingsInvalid as SettingsInvalid
    from portico_host.services import HostServices as HostServices

_HOMES = {
    name: home
    for home, names in {
        "application": "Application Diagnosis diagnose load open",
        "configuration": "Configuration",
        "discovery": "Command commands discover",
        "marks": "hookimpl hookspec",
        "packages": "Offer Package Plugins",
        "problems": "Problem SettingsInvalid",
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
    return sorted(_HOMES)
