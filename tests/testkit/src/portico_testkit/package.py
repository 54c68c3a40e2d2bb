"""What every plugin package must be, whatever ports it is for."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import pytest
from packaging.version import InvalidVersion, Version

from portico.errors import nearest
from portico.ports import PORTS
from portico.registration import Registration, Services
from portico_testkit._package_checks import lacking_metadata, misspelt_settings, unfit_requirements
from portico_testkit._package_conduct import blocking_calls, swallowed_cancellations
from portico_testkit._package_installed import InstalledPackage, Offered
from portico_testkit._package_kits import KITS, folder_of_tests, kits_used
from portico_testkit._package_left import no_more_of
from portico_testkit._package_services import Lent, StandIns
from portico_testkit._package_settings import instance_of, looks_secret, settings_fields, takes_secret
from portico_testkit._package_sources import folded, imports_of, modules_of, undeclared
from portico_testkit._package_toml import schema_faults, unsettable
from portico_testkit._package_watch import watched
from portico_testkit.tasks import no_tasks_but

__all__ = ["PackageKit"]

_TOLD = "k3y-0f-the-4ccount"
"""What the tests put into each ``Secret``."""
_MOST_SUMS = 5.0
"""Sums of a million squares, which take 30 to 60 ms each, that are granted to the own code of a package at import."""
_SUMS_A_MODULE = 0.2
"""The same for each module more: without bytecode it is compiled first."""


class PackageKit:
    """Subclass it with the name of the distribution::

        class TestPackage(PackageKit):
            distribution = "portico-acme"

    ``settings`` has an instance of each settings class that the kit cannot make by itself, for it knows nothing of
    what your validators take: ``settings = (AcmeSettings(Secret("key"), language="it"),)``. A fixture ``services``
    stands for what a factory asks for where the kit's fakes do not do. ``most_modules`` is how many modules may be
    imported, beside core's registrations, to list the package. ``tests`` is the folder of the package's tests, where
    it is not the one beside `pyproject.toml` that the subclass is in.

    The package has to be installed, as `pip install --editable .` does it; what changes in `pyproject.toml` is seen
    after another `pip install`.
    """

    distribution: ClassVar[str]
    settings: ClassVar[Sequence[object]] = ()
    most_modules: ClassVar[int] = 40
    tests: ClassVar[Path | None] = None

    @pytest.fixture
    def services(self) -> Services:
        """Give what a factory asks for."""
        return StandIns()

    def test_its_metadata_is_complete(self) -> None:
        """Whoever finds it on an index sees what it is, what it may be used for, and whether it will run."""
        lacking = lacking_metadata(self._package().distribution)
        assert lacking == [], f"{self.distribution} lacks in its metadata: {'; '.join(lacking)}"

    def test_its_version_is_one(self) -> None:
        """Installers compare it."""
        try:
            Version(self._package().distribution.version)
        except InvalidVersion as error:
            pytest.fail(f"the version of {self.distribution}: {error}")

    def test_it_is_typed(self) -> None:
        """Type checkers ignore what is in a package without the marker."""
        package = self._package()
        classifiers = package.distribution.metadata.get_all("Classifier") or []
        assert (package.folder / "py.typed").is_file(), (
            f"there is no py.typed in {package.import_name}: add an empty file"
        )
        assert "Typing :: Typed" in classifiers, 'add the classifier "Typing :: Typed"'

    def test_it_requires_core_and_lets_others_do_so_too(self) -> None:
        """One core serves all that are installed, and the application is nothing to a plugin."""
        unfit = unfit_requirements(self._package().distribution)
        assert unfit == [], "; ".join(unfit)

    def test_its_entry_point_is_named_for_it(self) -> None:
        """That is the name by which it is listed and switched off; core's namespace is core's."""
        package = self._package()
        assert package.import_name != "portico", "the import name portico is core's; yours is portico_<name>"
        expected = folded(self.distribution).removeprefix("portico-")
        for point in package.entry_points:
            assert folded(point.name) == expected, f"the entry point is named {point.name!r}, not {expected!r}"
            assert not point.attr, f"the entry point is to be a module, not {point.value!r}"
        assert len(package.entry_points) <= 1, f"{self.distribution} has several entry points of the group `portico`"
        for point in package.leading_nowhere():
            pytest.fail(
                f"the entry point {point.name!r} leads to {point.module}, and there is no such module. Correct "
                "[project.entry-points.portico] in pyproject.toml, and install it again.",
                pytrace=False,
            )

    def test_listing_it_imports_no_vendor(self) -> None:
        """Every command of `portico` lists every package; none may pay for the libraries of one."""
        found = self._package().probe()
        if found.failed is not None:
            pytest.fail(f"its entry point or a hook of it raises:\n{found.failed}", pytrace=False)
        told = [f"{name} (by {line})" for name, line in found.foreign.items()]
        assert told == [], f"listing {self.distribution} imports {', '.join(told)}; import it where it is used"
        assert found.printed == "", f"listing {self.distribution} prints {found.printed!r}"

    def test_listing_it_is_cheap(self) -> None:
        """Counted in modules, and in processor time beside a sum that the same process does: machines differ."""
        found = self._package().probe()
        assert found.modules <= self.most_modules, f"listing {self.distribution} imports {found.modules} modules"
        assert found.listing <= _MOST_SUMS, (
            f"listing {self.distribution} takes as long as summing {found.listing:.1f} million squares, beside what it "
            "imports of others; do it in the factory or later"
        )

    def test_nothing_is_done_at_import(self) -> None:
        """Its modules define things; settings and factories are there for the rest."""
        package = self._package()
        found = package.probe()
        assert found.deeds == [], f"at import, {'; '.join(found.deeds)}"
        allowed = _MOST_SUMS + len(modules_of(package.import_name, package.folder)) * _SUMS_A_MODULE
        assert found.importing <= allowed, (
            f"importing all modules of {self.distribution} takes as long as summing {found.importing:.1f} million "
            "squares, beside what they import of others; compute it when it is first asked for"
        )

    def test_its_hooks_are_known_and_return_registrations(self) -> None:
        """A function of another name is never called, and another result is no use."""
        package = self._package()
        hooks = [port.hook for port in PORTS]
        for module in package.modules():
            for name, value in vars(module).items():
                if name.startswith("portico_") and inspect.isfunction(value) and name not in hooks:
                    close = nearest(name, hooks, count=1)
                    pytest.fail(f"{name} is no hook; " + (f"is it {close[0]}?" if close else f"there are {hooks}"))
                assert name not in hooks or inspect.isfunction(value), f"{name} is not a function"
        for port, returned in package.answers():
            assert isinstance(returned, list | tuple), f"{port.hook} returns {returned!r}, not a list"
            other = [item for item in returned if not isinstance(item, Registration)]
            assert other == [], f"{port.hook} returns what is no Registration: {other}"
            names = [(item.name, item.port_version) for item in returned]
            assert len(set(names)) == len(names), f"{port.hook} registers a name twice: {[name for name, _ in names]}"
        assert package.offers or package.commands, f"{self.distribution} registers nothing"

    def test_its_names_are_its_own(self) -> None:
        """Of two that are installed and register one name, an application can use neither."""
        for offered, other in self._package().rivals():
            pytest.fail(f"{offered} is registered by {other} too. Register it by another name.", pytrace=False)

    def test_it_is_for_the_ports_as_they_are_here(self) -> None:
        """One that was written for another version of a port is refused."""
        for offered in self._package().offers:
            written, here = offered.registration.port_version, offered.port.version
            mend = f"write it for that and register port_version={here}, or test with the core that it is for"
            assert written == here, f"{offered} is for version {written} of its port; core has {here}: {mend}"

    def test_factories_and_settings_are_where_it_says(self) -> None:
        """They are imported only when they are chosen, by somebody else."""
        for offered in self._package().offers:
            try:
                factory, settings = offered.factory(), offered.settings_class()
            except Exception as error:
                pytest.fail(f"{offered}: {type(error).__name__}: {error}")
            assert callable(factory), f"{offered}: {offered.registration.factory} cannot be called"
            try:
                inspect.signature(factory).bind(settings, None)
            except TypeError as error:
                pytest.fail(f"{offered}: its factory is not to be called with (settings, services): {error}")

    def test_every_setting_has_a_type_and_says_what_it_is(self) -> None:
        """An editor shows it, and so does the message for a mistake."""
        for offered, cls in self._settings():
            try:
                fields = settings_fields(cls)
            except (TypeError, NameError) as error:
                pytest.fail(f"the settings of {offered}: {error}")
            silent = [field.key for field in fields if not field.doc]
            assert silent == [], f'{cls.__name__}: give metadata={{"doc": "…"}} to {", ".join(silent)}'
            untyped = [field.key for field in fields if field.hint is Any]
            assert untyped == [], f"{cls.__name__}: {', '.join(untyped)} may be anything; give it a type"

    def test_every_setting_can_be_set_in_a_file(self) -> None:
        """A service is set up in `portico.toml`, where an editor shows the schema of what can be said there."""
        for offered, cls in self._settings():
            try:
                told = unsettable(cls)
            except (TypeError, NameError) as error:
                pytest.fail(f"the settings of {offered}: {error}")
            assert told == [], f"{cls.__name__}: no value in a TOML file is of the type: {'; '.join(told)}"
            faults = schema_faults(cls)
            assert faults == [], f"the JSON Schema of {cls.__name__}, for editors: {'; '.join(faults)}"

    def test_secrets_are_not_shown(self) -> None:
        """Settings and services get into logs and errors."""
        for offered, cls in self._settings():
            bare = [field.key for field in settings_fields(cls) if looks_secret(field)]
            assert bare == [], f"{cls.__name__}: make it a portico.registration.Secret: {', '.join(bare)}"
            if any(takes_secret(field) for field in settings_fields(cls)):
                settings = self._settings_for(offered)
                for text in (repr(settings), str(settings), f"{settings}"):
                    assert _TOLD not in text, f"the repr of {cls.__name__} shows a secret"

    @pytest.mark.asyncio
    async def test_a_factory_opens_nothing(self, services: Services) -> None:
        """Services are made to be listed and checked, too; what they need they open when they are first used."""
        folder = str(self._package().folder)
        for offered in self._package().offers:
            # Imported before, since that is no deed of the factory.
            offered.factory()
            tasks = asyncio.all_tasks()
            with watched(folder) as deeds:
                service = self._made(offered, services)
            told = [str(deed) for deed in deeds]
            started = asyncio.all_tasks() - tasks
            for task in started:
                task.cancel()
            with suppress(Exception):
                await service.aclose()
            assert told == [], f"the factory of {offered}: {'; '.join(told)}"
            assert not started, f"the factory of {offered} starts the tasks {[task.get_name() for task in started]}"
            assert _TOLD not in f"{service!r} {service}", f"the repr of {offered} shows a secret"

    @pytest.mark.asyncio
    async def test_a_service_has_the_name_that_it_is_registered_by(self, services: Services) -> None:
        """It is in errors and logs, and who reads it there writes it into `portico.toml`.

        One that passes on what another does may have the name of that.
        """
        for offered in self._package().offers:
            lent = Lent(services)
            service = self._made(offered, lent)
            name = getattr(service, "name", None)
            with suppress(Exception):
                await service.aclose()
            expected = offered.registration.name
            assert name is None or name == expected or name in lent.called, (
                f"{offered} says that its name is {name!r}: name = {expected!r}"
            )

    @pytest.mark.asyncio
    async def test_a_service_leaves_nothing_behind_when_it_is_closed(self, services: Services) -> None:
        """An application that ends does not hang, and one that is reloaded does not grow."""
        for offered in self._package().offers:
            tasks = asyncio.all_tasks()
            with no_more_of(str(offered)):
                service = self._made(offered, services)
                close = getattr(service, "aclose", None)
                assert close is None or inspect.iscoroutinefunction(close), f"aclose of {offered} is not asynchronous"
                try:
                    if close is not None:
                        await close()
                except Exception as error:
                    pytest.fail(f"aclose of {offered} raises {type(error).__name__}: {error}")
                await no_tasks_but(tasks)

    def test_a_misspelt_setting_is_refused_with_the_nearest(self, tmp_path: Path) -> None:
        """Asked of the host, where it is installed: it has to be able to read the settings for that."""
        if find_spec("portico_host") is None:
            pytest.skip("portico-host is not installed")
        for offered, cls in self._settings():
            if offered.registration.port_version != offered.port.version:
                continue  # refused for that, before its settings are read
            keys = [field.key for field in settings_fields(cls)]
            told = misspelt_settings(self.distribution, offered, keys, tmp_path)
            unnamed = [key for key in keys if key not in told]
            assert unnamed == [], (
                f"{offered}: nobody is told, of a setting that is misspelt, that it is {unnamed}: {told}"
            )

    def test_it_lets_itself_be_stopped(self) -> None:
        """Whoever cancels a call waits for it, and a time limit is a cancellation too."""
        found = [*swallowed_cancellations(self._package().folder)]
        assert found == [], f"{'; '.join(found)}. Raise it again, catch Exception, or let a finally come to its end."

    def test_it_does_not_hold_up_others(self) -> None:
        """All that an application does at a time shares one event loop."""
        found = [*blocking_calls(self._package().folder)]
        assert found == [], "; ".join(found)

    def test_each_port_has_its_kit(self) -> None:
        """That a service maps its vendor's errors, can be stopped and serves many at a time, its port's kit asks."""
        folder = self.tests or folder_of_tests(Path(inspect.getfile(type(self))))
        used = kits_used(folder)
        for offered in self._package().offers:
            kit = KITS.get(offered.port.name)
            if kit is None or kit in used:
                continue
            module, _, name = kit.rpartition(".")
            pytest.fail(
                f"no class of tests in {folder} subclasses {name}, for {offered}: "
                f"from {module} import {name}; class Test{offered.port.name}({name}): … "
                "Where the tests are elsewhere, say so: tests = Path(…)",
                pytrace=False,
            )

    def test_it_imports_only_what_it_declares(self) -> None:
        """What is there by chance here is missing elsewhere; the application is nobody's to import."""
        package = self._package()
        application = [
            f"{name} ({where})"
            for where, name in imports_of(package.folder)
            if name.partition(".")[0] in {"portico_cli", "portico_host"}
        ]
        assert application == [], f"plugins do not import the application: {', '.join(application)}"
        found = undeclared(package.folder, package.distribution)
        told = [f"{name} ({where})" for name, where in found.items()]
        assert told == [], f"not among the dependencies of {self.distribution}: {', '.join(told)}"

    def test_its_commands_can_be_loaded(self) -> None:
        """A command that cannot be is found by who types it."""
        for point in self._package().commands:
            try:
                command = point.load()
            except Exception as error:
                pytest.fail(f"the command {point.name!r}: {type(error).__name__}: {error}")
            assert callable(command), f"the command {point.name!r} is {command!r}, which cannot be called"

    def _package(self) -> InstalledPackage:
        if not hasattr(self, "distribution"):
            pytest.fail(f'say which package {type(self).__name__} tests: distribution = "portico-…"', pytrace=False)
        return InstalledPackage(self.distribution)

    def _settings(self) -> Iterator[tuple[Offered, Any]]:
        for offered in self._package().offers:
            cls = offered.settings_class()
            if cls is not None:
                yield offered, cls

    def _made(self, offered: Offered, services: Services) -> Any:
        """Return what a factory makes."""
        service = offered.factory()(self._settings_for(offered), services)
        if inspect.iscoroutine(service):
            service.close()
            pytest.fail(f"the factory of {offered} is asynchronous; nobody awaits it")
        return service

    def _settings_for(self, offered: Offered) -> Any:
        """Return settings for a registration, or fail with what to give."""
        cls = offered.settings_class()
        if cls is None:
            return None
        try:
            return instance_of(cls, self.settings, _TOLD)
        except (TypeError, ValueError) as error:
            name = cls.__name__
            return pytest.fail(
                f"the kit cannot make settings for {offered} ({error}). Give it some: settings = ({name}(…),)"
            )
