"""A package as it is installed: its metadata, its entry points, what it registers, its settings."""

from __future__ import annotations

import ast
import asyncio
import dataclasses
import inspect
import json
import re
import subprocess
import sys
import threading
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest
from packaging.requirements import Requirement

from portico.errors import PluginNotInstalled, nearest
from portico.plugins import Registration, Secret, Services
from portico.ports import PORTS, PortInfo
from portico_testkit._failing import require_port
from portico_testkit.tasks import no_tasks_but

__all__ = [
    "InstalledPackage",
    "Offered",
    "P",
    "PackageKit",
    "SettingsField",
    "StandIns",
    "folded",
    "instance_of",
    "settings_fields",
]

P = TypeVar("P")

_SECRET_NAME = re.compile(r"(^|_)(api_?key|access_?key|secret(_?key)?|token|password|passwd|credentials?)$")
_PROBE = """
import importlib, json, sys
task = json.loads(sys.stdin.read())
sys.path[:] = task["path"]
from portico.ports import PORTS
from portico.plugins import Registration
before = set(sys.modules)
for name in task["modules"]:
    module = importlib.import_module(name)
    for port in PORTS:
        hook = vars(module).get(port.hook)
        if callable(hook):
            hook()
print("\\n" + json.dumps(sorted({name.partition(".")[0] for name in set(sys.modules) - before})))
"""
_FAKES: dict[str, tuple[str, tuple[Any, ...]]] = {
    "ChatService": ("portico_testkit.fakes.chat_service:ScriptedChat", ("Noon.",)),
    "EmbeddingGenerator": ("portico_testkit.fakes.embedding_generator:HashingEmbeddings", ()),
    "FunctionSelector": ("portico_testkit.fakes.function_selector:WordSelector", ()),
    "HttpClient": ("portico_testkit.fakes.http_client:RecordedHttpClient", ({},)),
    "PageReader": ("portico_testkit.fakes.page_reader:ShelfReader", ({},)),
    "PlanStore": ("portico_testkit.fakes.plan_store:MemoryPlanStore", ()),
    "Planner": ("portico_testkit.fakes.planner:ScriptedPlanner", ()),
    "RunStore": ("portico_testkit.fakes.run_store:MemoryRunStore", ()),
    "SchemaValidator": ("portico.plugins:PlainSchemaValidator", ()),
    "TextSearch": ("portico_testkit.fakes.text_search:ListSearch", ([],)),
    "VectorStore": ("portico_testkit.fakes.vector_store:DictVectorStore", ()),
}


class StandIns:
    """Services that have a fake for each port, under every name.

    >>> from portico.ports import ChatService
    >>> StandIns().get(ChatService, "any").name
    'scripted'
    """

    def get(self, port: Callable[..., P], name: str | None = None) -> P:
        """Return the fake; ``PluginNotInstalled`` where there is none for the port."""
        wanted = getattr(port, "__name__", str(port))
        if wanted not in _FAKES:
            raise PluginNotInstalled(f"The kit has no stand-in for a {wanted}. Give it by the fixture `services`.")
        reference, arguments = _FAKES[wanted]
        made: P = _imported(reference)(*arguments)
        return made

    def names(self, port: Callable[..., object]) -> tuple[str, ...]:
        """Return one name for a port that has a fake."""
        return ("stand-in",) if getattr(port, "__name__", "") in _FAKES else ()


@dataclass(frozen=True, slots=True)
class Offered:
    """One registration, and the port that it is for."""

    port: PortInfo
    registration: Registration

    def __str__(self) -> str:
        return f"the {self.port.noun} {self.registration.name!r}"

    def factory(self) -> Any:
        """Import the factory, or fail the test."""
        return self._imported("factory", self.registration.factory)

    def settings_class(self) -> Any:
        """Import the settings class, or fail the test; None where there is nothing to set."""
        settings = self.registration.settings
        return self._imported("settings", settings) if isinstance(settings, str) else settings

    def _imported(self, what: str, reference: str) -> Any:
        try:
            return _imported(reference)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            pytest.fail(f"the {what} of {self} is {reference!r}, which is not there: {why}. Correct it in its hook.")


class InstalledPackage:
    """The package of an installed distribution.

    >>> package = InstalledPackage("portico-testkit")
    >>> package.distribution.metadata["Name"], package.entry_points
    ('portico-testkit', [])
    """

    def __init__(self, name: str) -> None:
        self.name = name
        try:
            self.distribution = distribution(name)
        except PackageNotFoundError:
            pytest.fail(f"{name} is not installed in this environment. Run `pip install --editable .`.", pytrace=False)
        self.entry_points = [*self.distribution.entry_points.select(group="portico")]
        self.commands = [*self.distribution.entry_points.select(group="portico.commands")]

    @cached_property
    def import_name(self) -> str:
        """The name of the import package."""
        points = [*self.entry_points, *self.commands]
        if not points:
            pytest.fail(
                f"{self.name} has no entry point of the group `portico`. Add [project.entry-points.portico] to its "
                "pyproject.toml, and install it again.",
                pytrace=False,
            )
        name: str = points[0].module.partition(".")[0]
        return name

    @cached_property
    def folder(self) -> Path:
        """The folder of the import package."""
        spec = find_spec(self.import_name)
        if spec is None or not spec.submodule_search_locations:
            pytest.fail(f"{self.name}: there is no package {self.import_name}, or it is a single module", pytrace=False)
        return Path(next(iter(spec.submodule_search_locations)))

    @cached_property
    def offers(self) -> list[Offered]:
        """The registrations of its hooks."""
        return [
            Offered(port, registration)
            for port, returned in self.answers()
            for registration in (returned if isinstance(returned, list | tuple) else ())
            if isinstance(registration, Registration)
        ]

    def modules(self) -> Iterator[types.ModuleType]:
        """Import the modules of its entry points, or fail the test."""
        for point in self.entry_points:
            try:
                yield import_module(point.module)
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
                pytest.fail(
                    f"{point.module!r} raises {why}. Correct it in pyproject.toml, and install the package again."
                )

    def answers(self) -> Iterator[tuple[PortInfo, Any]]:
        """Yield what each of its hooks returns."""
        for module in self.modules():
            for port in PORTS:
                hook: Any = vars(module).get(port.hook)
                if callable(hook):
                    yield port, hook()

    def brought_by_listing(self) -> list[str]:
        """Return the packages, standard library excluded, that a fresh process imports to list this one.

        Fails the test with the traceback where the import or a hook raises.
        """
        task = json.dumps({"path": sys.path, "modules": [module.__name__ for module in self.modules()]})
        known = {*sys.stdlib_module_names, "attr", "attrs", "portico", self.import_name}
        return [name for name in _listed(task) if name not in known]

    def undeclared_imports(self) -> dict[str, str]:
        """Return the packages that its modules import and its metadata does not declare, with a place each.

        A command runs in `portico`, which brings what commands are made with: they stand in the folder `commands`.
        """
        wanted = {folded(Requirement(line).name) for line in self.distribution.requires or ()}
        known = {self.import_name, "portico", "_typeshed", *sys.stdlib_module_names}
        known |= {name.replace("-", "_") for name in wanted}
        known |= {top for top, owners in packages_distributions().items() if wanted & {folded(one) for one in owners}}
        brought = {"click", "rich", "portico_cli", "portico_host"}
        found: dict[str, str] = {}
        for file in sorted(self.folder.rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_bytes(), str(file))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and not node.level and node.module:
                    names = [node.module]
                known_here = known | brought if "commands" in file.parts else known
                for top in {name.partition(".")[0] for name in names} - known_here:
                    found.setdefault(top, f"{file.relative_to(self.folder.parent).as_posix()}:{node.lineno}")  # type: ignore[attr-defined]
        return found


@cache
def _listed(task: str) -> list[str]:
    run = subprocess.run(
        [sys.executable, "-B", "-P", "-c", _PROBE], input=task, capture_output=True, text=True, timeout=120, check=False
    )
    lines = run.stdout.strip().split("\n")
    if run.returncode:
        pytest.fail(f"its entry point or a hook of it raises:\n{run.stderr[-2000:]}", pytrace=False)
    if len(lines) > 1:
        pytest.fail(f"listing it prints {lines[0]!r}", pytrace=False)
    found: list[str] = json.loads(lines[-1])
    return found


@dataclass(frozen=True, slots=True)
class SettingsField:
    """One setting: the key it has in a file, its type, whether it has to be given, and its description."""

    key: str
    attribute: str
    hint: Any
    required: bool
    doc: str

    @property
    def is_secret(self) -> bool:
        """Whether the setting is a ``Secret``, or may be one."""
        return Secret in _members(self.hint)

    @property
    def looks_secret(self) -> bool:
        """Whether it is text with the name of a secret: ``api_key``, ``access_token``, ``password``."""
        return bool(_SECRET_NAME.search(self.key)) and str in _members(self.hint)


def settings_fields(cls: Any) -> list[SettingsField]:
    """Return the fields that the constructor of an attrs class or a dataclass takes.

    >>> @dataclass
    ... class AcmeSettings:
    ...     api_key: Secret = dataclasses.field(metadata={"doc": "The key."})
    ...     language: str = "en"
    >>> [(field.key, field.required, field.doc) for field in settings_fields(AcmeSettings)]
    [('api_key', True, 'The key.'), ('language', False, '')]

    Raises ``TypeError`` for any other class, and ``NameError`` for a type that is not there at run time.
    """
    attrs = sys.modules.get("attr")
    fields: Iterable[Any]
    if hasattr(cls, "__attrs_attrs__") and attrs is not None:
        fields, nothing = attrs.fields(cls), attrs.NOTHING
    elif isinstance(cls, type) and dataclasses.is_dataclass(cls):
        fields, nothing = dataclasses.fields(cls), dataclasses.MISSING
    else:
        raise TypeError(f"{cls!r} is neither an attrs class nor a dataclass")
    hints = typing.get_type_hints(cls, include_extras=True)
    return [
        SettingsField(
            getattr(field, "alias", None) or field.name,
            field.name,
            hints.get(field.name, Any),
            field.default is nothing and getattr(field, "default_factory", nothing) is nothing,
            str(field.metadata.get("doc", "")).strip(),
        )
        for field in fields
        if field.init
    ]


def instance_of(cls: Any, given: Iterable[object], secret: str) -> Any:
    """Return settings to try, with ``secret`` in each ``Secret``: like those ``given``, or with made-up values.

    Raises ``ValueError`` or ``TypeError`` where the class takes no such values.
    """
    example = next((one for one in given if type(one) is cls), None)
    values: dict[str, Any] = {}
    for field in settings_fields(cls):
        value = None if example is None else getattr(example, field.attribute)
        if field.is_secret and (field.required or value is not None):
            values[field.key] = Secret(secret, origin="the kit")
        elif example is not None:
            values[field.key] = value
        elif field.required:
            values[field.key] = _made_up(field)
    try:
        return cls(**values)
    except (TypeError, ValueError):
        if example is None:
            raise
        return example  # a secret of a certain form, such as a URI


def folded(name: str) -> str:
    """Normalise a distribution's name after the packaging specification.

    >>> folded("Portico_Acme")
    'portico-acme'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def _made_up(field: SettingsField) -> Any:
    for kind, value in ((str, "made-up"), (Path, Path("made-up")), (bool, False), (int, 1), (float, 1.0)):
        if kind in _members(field.hint):
            return value
    raise ValueError(f"{field.key} is a {field.hint}, for which nothing can be made up")


def _members(hint: Any) -> Iterator[Any]:
    """Yield the type itself, or those of a union, without annotations."""
    if typing.get_origin(hint) is typing.Annotated:
        hint = typing.get_args(hint)[0]
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        for member in typing.get_args(hint):
            yield from _members(member)
    else:
        yield hint


def _imported(reference: str) -> Any:
    module, _, attribute = reference.partition(":")
    value: Any = sys.modules.get(module) or import_module(module)
    for part in attribute.split("."):
        value = getattr(value, part)
    return value


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
        lines = [Requirement(line) for line in self._package().distribution.requires or ()]
        required = {folded(one.name): one for one in lines if "extra" not in str(one.marker or "")}
        assert "portico-core" in required, "it does not require portico-core: add it to its dependencies"
        bounds = [str(one) for one in required["portico-core"].specifier if one.operator not in {">=", ">", "!="}]
        assert bounds == [], f"it requires portico-core{','.join(bounds)}: give a lower bound or none"
        application = [name for name in ("portico-host", "portico-ai") if name in required]
        assert application == [], f"it requires {', '.join(application)}, which is the application"

    def test_its_entry_point_is_named_for_it(self) -> None:
        package = self._package()
        assert package.import_name != "portico", "the import name portico is core's; yours is portico_<name>"
        expected = folded(self.distribution).removeprefix("portico-")
        assert len(package.entry_points) <= 1, f"{self.distribution} has several entry points of the group `portico`"
        for point in package.entry_points:
            assert folded(point.name) == expected, f"the entry point is named {point.name!r}, not {expected!r}"
            assert not point.attr, f"the entry point is to be a module, not {point.value!r}"

    def test_listing_it_imports_no_vendor(self) -> None:
        foreign = self._package().brought_by_listing()
        assert foreign == [], f"listing {self.distribution} imports {', '.join(foreign)}; import it where it is used"

    def test_its_hooks_are_known_and_return_registrations(self) -> None:
        package = self._package()
        hooks = [port.hook for port in PORTS]
        for module in package.modules():
            for name, value in vars(module).items():
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
        for offered in self._package().offers:
            written, here = offered.registration.port_version, offered.port.version
            assert written == here, f"{offered} is for version {written} of its port; core has {here}"

    @pytest.mark.asyncio
    async def test_factories_and_settings_are_where_it_says(self, services: Services) -> None:
        for offered in self._package().offers:
            require_port(offered.port, self._made(offered, services))

    def test_every_setting_has_a_type_and_a_description(self) -> None:
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
        for offered, cls in self._settings():
            bare = [field.key for field in settings_fields(cls) if field.looks_secret]
            assert bare == [], f"{cls.__name__}: make it a portico.plugins.Secret: {', '.join(bare)}"
            if any(field.is_secret for field in settings_fields(cls)):
                settings = self._settings_for(offered)
                assert _TOLD not in f"{settings!r} {settings}", f"the repr of {cls.__name__} shows a secret"

    @pytest.mark.asyncio
    async def test_a_service_leaves_nothing_behind_when_it_is_closed(self, services: Services) -> None:
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

    def test_it_imports_only_what_it_declares(self) -> None:
        found = self._package().undeclared_imports()
        told = [f"{name} ({where})" for name, where in found.items()]
        assert told == [], f"not among the dependencies of {self.distribution}: {', '.join(told)}"

    def test_its_commands_can_be_loaded(self) -> None:
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
        try:
            service = offered.factory()(self._settings_for(offered), services)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            words = f"{offered.registration.factory} must take (settings, services): {error}"
            raise TypeError(words) from None
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
