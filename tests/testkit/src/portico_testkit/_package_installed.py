"""A package as it is installed: its metadata, its entry points, what it registers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.metadata import Distribution, EntryPoint, PackageNotFoundError, distribution, distributions
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import pytest

from portico.errors import nearest
from portico.ports import PORTS, PortInfo
from portico.registration import Registration
from portico_testkit._package_probe import Probe, probe
from portico_testkit._package_sources import folded, folder_of, modules_of

__all__ = ["InstalledPackage", "Offered"]


@dataclass(frozen=True, slots=True)
class Offered:
    """One registration, and the port that it is for."""

    port: PortInfo
    registration: Registration

    def __str__(self) -> str:
        return f"the {self.port.noun} {self.registration.name!r}"

    def factory(self) -> Any:
        """Import the factory."""
        return _imported(self.registration.factory)

    def settings_class(self) -> Any:
        """Import the settings class; None where there is nothing to set."""
        settings = self.registration.settings
        return _imported(settings) if isinstance(settings, str) else settings


class InstalledPackage:
    """The package of a distribution; everything is looked up when it is first asked for.

    >>> package = InstalledPackage("portico-testkit")
    >>> package.distribution.metadata["Name"], package.entry_points
    ('portico-testkit', [])
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @cached_property
    def distribution(self) -> Distribution:
        """What is installed; fails the test where nothing of that name is."""
        try:
            return distribution(self.name)
        except PackageNotFoundError:
            close = nearest(self.name, sorted({_name_of(one) for one in distributions()}), count=1)
            advice = f"Is it {close[0]}? Otherwise run" if close else "Run"
            _fail(f"{self.name} is not installed in this environment. {advice} `pip install --editable .`.")

    @cached_property
    def entry_points(self) -> list[EntryPoint]:
        """Those of the group `portico`."""
        return [*self.distribution.entry_points.select(group="portico")]

    @cached_property
    def commands(self) -> list[EntryPoint]:
        """Those of the group `portico.commands`."""
        return [*self.distribution.entry_points.select(group="portico.commands")]

    @cached_property
    def import_name(self) -> str:
        """The name that it is imported by."""
        points = [*self.entry_points, *self.commands]
        if not points:
            _fail(
                f"{self.name} has no entry point of the group `portico`. Add [project.entry-points.portico] to its "
                "pyproject.toml, and install it again."
            )
        return points[0].module.partition(".")[0]

    @cached_property
    def folder(self) -> Path:
        """The folder of its import package."""
        self._leads_somewhere()
        try:
            folder = folder_of(self.import_name)
        except ModuleNotFoundError as error:
            _fail(f"{self.name} has an entry point into {self.import_name}, and {error}")
        return folder or _fail(f"{self.import_name} is a single module; make it a package, with py.typed in it")

    def probe(self) -> Probe:
        """Import it in a fresh process; the same answer serves every test."""
        try:
            return probe(
                [point.module for point in self.entry_points],
                [*modules_of(self.import_name, self.folder), *(point.module for point in self.commands)],
                self.folder,
            )
        except RuntimeError as error:
            _fail(f"{self.name} cannot be imported: {error}")

    def modules(self) -> list[ModuleType]:
        """Import the modules of the entry points, here."""
        self._leads_somewhere()
        return [import_module(point.module) for point in self.entry_points]

    @cached_property
    def offers(self) -> list[Offered]:
        """What it registers, as far as that can be read; of a name for several versions of a port the one that fits.

        Where none fits it is the newest, as the host has it. The others are for another core, and cannot be tried here.
        """
        found = [
            Offered(port, registration)
            for port, returned in self.answers()
            for registration in (returned if isinstance(returned, list | tuple) else ())
            if isinstance(registration, Registration)
        ]
        found.sort(key=_fitness)
        return [*{(each.port.name, each.registration.name): each for each in found}.values()]

    def leading_nowhere(self) -> list[EntryPoint]:
        """Return the entry points whose modules are not there."""
        return [point for point in self.entry_points if not _is_there(point.module)]

    def _leads_somewhere(self) -> None:
        """Skip the test where an entry point leads nowhere: one test says so, and that is enough."""
        for point in self.leading_nowhere():
            pytest.skip(f"there is no module {point.module}: see test_its_entry_point_is_named_for_it")

    def rivals(self) -> Iterator[tuple[Offered, str]]:
        """Yield each registration whose name another distribution registers for the same port, and that one's name."""
        own = {(offered.port.name, offered.registration.name): offered for offered in self.offers}
        for other in distributions():
            # What others have installed may be broken in any way; that is not this package's.
            with suppress(Exception, SystemExit):
                name = _name_of(other)
                points = [] if folded(name) == folded(self.name) else other.entry_points.select(group="portico")
                for port, returned in _answers([import_module(point.module) for point in points]):
                    names = {item.name for item in returned if isinstance(item, Registration)}
                    yield from ((own[port.name, each], name) for each in names if (port.name, each) in own)

    def answers(self) -> Iterator[tuple[PortInfo, object]]:
        """Yield what each of its hooks returns."""
        return _answers(self.modules())


def _answers(modules: list[ModuleType]) -> Iterator[tuple[PortInfo, Any]]:
    for module in modules:
        for port in PORTS:
            hook: Any = vars(module).get(port.hook)
            if callable(hook):
                yield port, hook()


def _is_there(module: str) -> bool:
    """Return whether a module can be found; to look for one imports the packages above it, which may fail."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError as error:
        return not f"{module}.".startswith(f"{error.name}.")
    except Exception:
        return True


def _fail(said: str) -> NoReturn:
    """Fail the test with words alone: where in the kit it fails is of no help."""
    pytest.fail(said, pytrace=False)


def _name_of(installed: Distribution) -> str:
    """Return the name of a distribution, empty for a folder that is left of one."""
    metadata: Any = installed.metadata
    return str(metadata.get("Name", ""))


def _fitness(offered: Offered) -> tuple[bool, int]:
    written = offered.registration.port_version
    return written == offered.port.version, written


def _imported(reference: str) -> Any:
    module, _, attribute = reference.partition(":")
    value: Any = sys.modules.get(module) or import_module(module)
    for part in attribute.split("."):
        value = getattr(value, part)
    return value
