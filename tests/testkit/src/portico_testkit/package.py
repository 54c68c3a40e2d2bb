"""What every plugin package must be, whatever ports it is for."""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import pytest
from packaging.requirements import Requirement

from portico.errors import nearest
from portico.plugins import Registration, Services
from portico.ports import PORTS
from portico_testkit._package import InstalledPackage, Offered, StandIns, folded, instance_of, settings_fields
from portico_testkit.tasks import no_tasks_but

__all__ = ["PackageKit"]

_TOLD = "k3y-0f-the-4ccount"
"""What the tests put into each ``Secret``."""
_SHORTEST = 20
"""Words that a README needs to say what a package is."""


class PackageKit:
    """Subclass it with the name of the distribution::

        class TestPackage(PackageKit):
            distribution = "portico-acme"

    ``settings`` has an instance of each settings class that the kit cannot make by itself:
    ``settings = (AcmeSettings(Secret("key"), language="it"),)``. Override the fixture ``services`` where a factory
    needs other services than the kit's fakes.

    The package has to be installed, for example with `pip install --editable .`. Install it again after a change of
    `pyproject.toml`.
    """

    distribution: ClassVar[str]
    settings: ClassVar[Sequence[object]] = ()

    @pytest.fixture
    def services(self) -> Services:
        """Give what a factory asks for."""
        return StandIns()

    def test_its_metadata_is_complete(self) -> None:
        """A reader on an index sees what it is, what it may be used for, and whether it runs."""
        metadata: Any = self._package().distribution.metadata
        classifiers = metadata.get_all("Classifier") or []
        text = metadata.get("Description") or metadata.get_payload() or ""
        there = {
            "a description of one line (description = …)": metadata.get("Summary", "").strip(),
            'a licence (license = "Apache-2.0")': metadata.get("License-Expression")
            or metadata.get("License")
            or any(line.startswith("License ::") for line in classifiers),
            'which Python it runs on (requires-python = ">=3.11")': metadata.get("Requires-Python"),
            f'a README of at least {_SHORTEST} words (readme = "README.md")': len(str(text).split()) >= _SHORTEST,
            'the classifier "Typing :: Typed"': "Typing :: Typed" in classifiers,
            "an empty file py.typed in its package": (self._package().folder / "py.typed").is_file(),
        }
        lacking = [what for what, found in there.items() if not found]
        assert lacking == [], f"{self.distribution} lacks: {'; '.join(lacking)}"

    def test_it_requires_core_and_lets_others_do_so_too(self) -> None:
        """One core serves all installed packages, and a plugin does not need the application."""
        lines = [Requirement(line) for line in self._package().distribution.requires or ()]
        required = {folded(one.name): one for one in lines if "extra" not in str(one.marker or "")}
        assert "portico-core" in required, "it does not require portico-core: add it to its dependencies"
        bounds = [str(one) for one in required["portico-core"].specifier if one.operator not in {">=", ">", "!="}]
        assert bounds == [], f"it requires portico-core{','.join(bounds)}: give a lower bound or none"
        application = [name for name in ("portico-host", "portico") if name in required]
        assert application == [], f"it requires {', '.join(application)}, which is the application"

    def test_its_entry_point_is_named_for_it(self) -> None:
        """The name is the one by which it is listed and disabled."""
        package = self._package()
        assert package.import_name != "portico", "the import name portico is core's; yours is portico_<name>"
        expected = folded(self.distribution).removeprefix("portico-")
        assert len(package.entry_points) <= 1, f"{self.distribution} has several entry points of the group `portico`"
        for point in package.entry_points:
            assert folded(point.name) == expected, f"the entry point is named {point.name!r}, not {expected!r}"
            assert not point.attr, f"the entry point is to be a module, not {point.value!r}"

    def test_listing_it_imports_no_vendor(self) -> None:
        """Every command of `portico` lists every package; none may pay for the libraries of one."""
        foreign = self._package().brought_by_listing()
        assert foreign == [], f"listing {self.distribution} imports {', '.join(foreign)}; import it where it is used"

    def test_its_hooks_are_known_and_return_registrations(self) -> None:
        """A function of another name is never called, and another result is of no use."""
        package = self._package()
        hooks = [port.hook for port in PORTS]
        for point in package.entry_points:
            for name, value in vars(import_module(point.module)).items():
                if name.startswith("portico_") and inspect.isfunction(value) and name not in hooks:
                    pytest.fail(f"{name} is no hook; is it {' or '.join(nearest(name, hooks, count=1)) or hooks}?")
        for port, returned in package.answers():
            assert isinstance(returned, list | tuple), f"{port.hook} returns {returned!r}, not a list"
            other = [item for item in returned if not isinstance(item, Registration)]
            assert other == [], f"{port.hook} returns what is no Registration: {other}"
            names = [(item.name, item.port_version) for item in returned]
            assert len(set(names)) == len(names), f"{port.hook} registers a name twice: {[name for name, _ in names]}"
        assert package.offers or package.commands, f"{self.distribution} registers nothing"

    def test_it_is_for_the_ports_as_they_are_here(self) -> None:
        """A package for another version of a port is refused."""
        for offered in self._package().offers:
            written, here = offered.registration.port_version, offered.port.version
            assert written == here, f"{offered} is for version {written} of its port; core has {here}"

    def test_factories_and_settings_are_where_it_says(self) -> None:
        """They are imported only when they are chosen."""
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

    def test_every_setting_has_a_type_and_a_description(self) -> None:
        """An editor shows them, and so does the message for a mistake."""
        for offered, cls in self._settings():
            try:
                fields = settings_fields(cls)
            except (TypeError, NameError) as error:
                pytest.fail(f"the settings of {offered}: {error}")
            silent = [field.key for field in fields if not field.doc]
            assert silent == [], f'{cls.__name__}: give metadata={{"doc": "…"}} to {", ".join(silent)}'
            untyped = [field.key for field in fields if field.hint is Any]
            assert untyped == [], f"{cls.__name__}: {', '.join(untyped)} may be anything; give it a type"

    def test_secrets_are_not_shown(self, services: Services) -> None:
        """Settings and services get into logs and errors."""
        for offered, cls in self._settings():
            bare = [field.key for field in settings_fields(cls) if field.looks_secret]
            assert bare == [], f"{cls.__name__}: make it a portico.plugins.Secret: {', '.join(bare)}"
            if any(field.is_secret for field in settings_fields(cls)):
                settings = self._settings_for(offered)
                assert _TOLD not in f"{settings!r} {settings}", f"the repr of {cls.__name__} shows a secret"

    @pytest.mark.asyncio
    async def test_a_service_leaves_nothing_behind_when_it_is_closed(self, services: Services) -> None:
        """A factory starts nothing, and an application that ends does not hang."""
        for offered in self._package().offers:
            tasks, threads = asyncio.all_tasks(), set(threading.enumerate())
            service = self._made(offered, services)
            started = [task.get_name() for task in asyncio.all_tasks() - tasks]
            started += [thread.name for thread in set(threading.enumerate()) - threads]
            assert started == [], f"the factory of {offered} starts {', '.join(started)}"
            assert _TOLD not in f"{service!r} {service}", f"the repr of {offered} shows a secret"
            close = getattr(service, "aclose", None)
            assert close is None or inspect.iscoroutinefunction(close), f"aclose of {offered} is not asynchronous"
            try:
                if close is not None:
                    await close()
            except Exception as error:
                pytest.fail(f"aclose of {offered} raises {type(error).__name__}: {error}")
            await no_tasks_but(tasks)

    def test_a_misspelt_setting_is_refused_with_the_nearest(self, tmp_path: Path) -> None:
        """The host reads the settings; the test is skipped where it is not installed."""
        if find_spec("portico_host") is None:
            pytest.skip("portico-host is not installed")
        host = import_module("portico_host")
        for offered, cls in self._settings():
            port, name = offered.port, offered.registration.name
            keys = [field.key for field in settings_fields(cls)]
            wrong = dict.fromkeys([f"{key}x" for key in keys], 1)
            table: dict[str, Any] = {port.key: name, **({} if port.key != "use" or port.many else {name: wrong})}
            if port.many:
                table = {"mine": {port.key: name, **wrong}}
            elif port.key != "use":
                table = {port.key: name, **wrong}
            file = tmp_path / "portico.toml"
            file.touch()
            application = host.load(file, {"plugins": {"only": [self.distribution]}, port.table: table})
            problems = [problem.cause for problem in application.check(imports=False)]
            for key in keys:
                assert any(re.search(rf"\b{key}x\b.*Nearest: [^.]*\b{key}\b", cause) for cause in problems), (
                    f"{offered}: the host does not say that {key}x is meant to be {key}, but: {'; '.join(problems)}"
                )

    def test_it_imports_only_what_it_declares(self) -> None:
        """What is there by chance here is missing elsewhere."""
        found = self._package().undeclared_imports()
        told = [f"{name} ({where})" for name, where in found.items()]
        assert told == [], f"not among the dependencies of {self.distribution}: {', '.join(told)}"

    def test_its_commands_can_be_loaded(self) -> None:
        """A command that cannot be loaded fails at whoever types it."""
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
            pytest.fail(f"the factory of {offered} is asynchronous; it is called and not awaited")
        return service

    def _settings_for(self, offered: Offered) -> Any:
        """Return settings for a registration, or fail with what to give."""
        cls = offered.settings_class()
        if cls is None:
            return None
        with suppress(TypeError, ValueError):
            return instance_of(cls, self.settings, _TOLD)
        return pytest.fail(f"the kit cannot make settings for {offered}. Give it some: settings = ({cls.__name__}(…),)")
