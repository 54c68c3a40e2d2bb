"""Put it all together: the configuration, the plugins, the services and the kernel."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from portico.errors import ConfigurationError, PorticoError
from portico.plugins import JsonSchema, Secret
from portico.ports import PORTS
from portico_host.configuration import (
    Configuration,
    Entry,
    LoopBudget,
    PluginChoice,
    PolicyRules,
    SecretRules,
    default_settings,
    read_configuration,
)
from portico_host.discovery import Command, commands, discover, has_hooks
from portico_host.fields import holds_secret, is_settings_class, json_value, settings_fields
from portico_host.loading import blame, factory_of, fields_of
from portico_host.packages import Plugins, port_named
from portico_host.problems import Problem, SettingsInvalid, problems_of, unknown_word, write_key
from portico_host.schema import configuration_schema, offered_schema
from portico_host.services import HostServices
from portico_host.shapes import SHAPING, SourceShape, shape_functions
from portico_host.tree import NONE, Given

if TYPE_CHECKING:
    from portico import FunctionPlugin, Kernel
    from portico.plans import Budget
    from portico.ports import RunStore, SchemaValidator

P = TypeVar("P")
_MASK = "********"
_ANSWERS = "answers"  # used where there is something to search
_LOG = logging.getLogger("portico_host")


@dataclass(frozen=True, slots=True)
class EffectiveSetting:
    """One setting: dotted key, a value fit for JSON, and the file, variable, "override" or "default" it is from."""

    key: str
    value: Any
    origin: str


class Application:
    """A configuration with the plugins that it lets in; nothing is opened before `services` or `kernel`.

    >>> application = load(overrides={"search": {"docs": {"use": "documents", "path": "docs"}}})
    >>> application.sources
    ('docs',)
    """

    def __init__(self, configuration: Configuration, own: Iterable[object] = ()) -> None:
        self.configuration = configuration
        self._own = tuple(own)

    @cached_property
    def plugins(self) -> Plugins:
        """The installed packages, discovered when first looked at, and what the application has with hooks."""
        choice = self.configuration.plugins
        return discover(disable=choice.disable, only=choice.only, own=self._own)

    @property
    def commands(self) -> tuple[Command, ...]:
        """The commands of installed packages, without those of packages that are switched off."""
        off = [package.distribution for package in self.plugins.packages if package.state == "disabled"]
        return commands(disable=[*self.configuration.plugins.disable, *off])

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the configured text searches, in the order of the file."""
        return tuple(entry.name for entry in self.configuration.entries(port_named("TextSearch")))

    @property
    def asked_sources(self) -> tuple[str, ...]:
        """The sources to ask where none is named: all that no other source stands on, as on parts of a fused one."""
        inner = self.services().inner_sources()
        return tuple(name for name in self.sources if name not in inner) or self.sources

    @property
    def budget(self) -> Budget:
        """The loop's budget as ``[planner]`` has it; the kernel runs within it."""
        from portico.plans import Budget

        own = self.configuration.budget
        return Budget(
            own.max_proposals,
            own.max_steps,
            own.max_refusals,
            own.max_seconds,
            own.step_seconds,
            own.step_attempts,
            own.max_items,
            own.max_cost,
        )

    def services(self, sources: Sequence[str] | None = None, given: Mapping[Any, Any] | None = None) -> HostServices:
        """Return new services; use them as an async context manager.

        ``sources`` are the text searches to use, by the names of the configuration or of installed plugins
        that need no settings; None means all that are configured. ``given`` are instances, as in `open`.
        """
        return HostServices(self.configuration, self.plugins, sources, given)

    @asynccontextmanager
    async def kernel(
        self,
        sources: Sequence[str] | None = None,
        *,
        plugins: Iterable[FunctionPlugin | object] = (),
        services: Mapping[Any, Any] | None = None,
    ) -> AsyncIterator[Kernel]:
        """Open a kernel with a function plugin for each source, those of ``[functions]``, and ``plugins``.

        ``services`` and ``plugins`` are those of `open`.

        Every mistake in what is configured is raised first, all at once, as ``SettingsInvalid``; then any
        ``PluginError``. On leaving, services are closed in reverse order.
        """
        from portico import FunctionPlugin, Kernel
        from portico.ports import FunctionSelector, FunctionSource, Observer, PlanStore, Runner, TextSearch, TypeCodec

        async with self.services(sources, services) as made:
            made.prepare_all()
            made.observers = _active(made, Observer)
            plan_store = _if_chosen(made, PlanStore)
            if self.configuration.budget.reuse and plan_store is None:
                place = self.configuration.place(("planner", "reuse"))
                raise ConfigurationError(f"{place}: planner.reuse needs a store of plans: set `use` in [plans].")
            kernel = Kernel(
                made,
                schema_validator=_schema_validator(made),
                runner=_if_chosen(made, Runner),
                run_store=_run_store(made),
                plan_store=plan_store,
                budget=self.budget,
                policy=self.configuration.policy.policy(),
                reuse=self.configuration.budget.reuse,
                planner_include=self.configuration.budget.include,
                planner_exclude=self.configuration.budget.exclude,
                type_codecs=_active(made, TypeCodec),
                function_selector=_if_chosen(made, FunctionSelector),
            )
            for observer in made.observers:
                observer.observe_kernel(kernel.middleware)
            inner = made.inner_sources() if sources is None else ()
            for name in made.names(TextSearch):
                options = {"codecs": kernel.type_codecs, "asked_by_planners": name not in inner}
                _add(kernel, self._shape(made, name, options), f"search.{name}")
            names = made.names(FunctionSource)
            for name, loaded in zip(names, await _load_all(made, names), strict=True):
                _add(kernel, loaded, f"functions.{name}")
            for plugin in plugins:
                own = (
                    plugin
                    if isinstance(plugin, FunctionPlugin)
                    else FunctionPlugin.of(plugin, codecs=kernel.type_codecs)
                )
                _add(kernel, own, f"the application's {own.name}")
            searching = any(spec.is_search for spec in kernel.specs.values())
            answering = any(spec.is_answer for spec in kernel.specs.values())
            if searching and not answering and _ANSWERS in self.plugins.names(FunctionSource.__name__):
                answers = _if_usable(made, FunctionSource, _ANSWERS)
                if answers is not None:
                    kernel.add_plugin(await answers.load(JsonSchema.free_name(_ANSWERS, kernel.plugins)))
            self._require_used(kernel, {*self.sources} - {*made.names(TextSearch)})
            yield kernel

    def settings(self) -> tuple[EffectiveSetting, ...]:
        """Return every setting of what is chosen or configured, as it takes effect: key, value, origin.

        A setting that may hold a secret shows where the secret comes from, never its value. If the plugin is not at
        hand that knows which settings are secret, every value is masked.
        """
        return tuple(_effective_settings(self.configuration, self.plugins))

    def redacted(self) -> dict[str, Any]:
        """Return the same for JSON: by dotted key, ``{"value": …, "origin": …}``."""
        return {setting.key: {"value": setting.value, "origin": setting.origin} for setting in self.settings()}

    def check(self) -> list[Problem]:
        """Return every problem of the installed packages and of what the configuration chooses, and what mends it.

        Nothing is opened, no network is used. The factories of what is chosen are imported, which finds a vendor's
        library that does not load.
        """
        configuration, plugins, services = self.configuration, self.plugins, self.services()
        problems = plugins.problems
        defaults = [
            (port.name, None)
            for port in PORTS
            if plugins.default_of(port) and configuration.use(port) is None and not configuration.is_off(port)
        ]
        implicit = [(port.name, name) for port in PORTS for name in services.implicit(port.name)]
        for name, service in (*services.list_chosen(), *defaults, *implicit):
            try:
                prepared = services.prepare(name, service)
                offered_schema(prepared.offer)
                factory_of(prepared.offer)
                if prepared.shape != SourceShape():
                    # A factory opens nothing, and only the search knows its filters and functions.
                    self._shape(services, prepared.entry.name, {})
            except PorticoError as error:
                waits = service is not None and (name, service) in implicit and not services.has_settings(name, service)
                if waits and isinstance(error, ConfigurationError):
                    # One that needs settings is active when it has them.
                    continue
                port = port_named(name)
                problems += problems_of(error, f"{port.noun} {service or configuration.use(port) or port.default}")
        return list(dict.fromkeys([*problems, *self._literal_secrets()]))

    def schema(self) -> dict[str, Any]:
        """Return JSON Schema of `portico.toml` for the installed packages."""
        return configuration_schema(self.plugins)

    def _shape(self, services: HostServices, name: str, options: dict[str, Any]) -> FunctionPlugin:
        """Make the functions of a source; a shape that it does not take is a mistake of the configuration."""
        from portico.ports import TextSearch

        search, shape = services.get(TextSearch, name), services.shape(name)
        if name not in services.given(TextSearch.__name__):
            options |= {"summary": services.prepare(TextSearch.__name__, name).offer.registration.summary}
        try:
            return shape_functions(search, _function_name(name), shape, restricted="summary" in options, **options)
        except SettingsInvalid as error:
            entry = self.configuration.entry(port_named(TextSearch.__name__), name)
            raise error if entry is None else self.configuration.locate(entry, error) from error.__cause__

    def _require_used(self, kernel: Kernel, left_out: Collection[str]) -> None:
        """Refuse labels that no function or parameter has, unless they may be for a source that is left out."""
        plugins = [_function_name(each) for each in left_out]
        wrong: list[tuple[tuple[str, ...], str]] = []
        policy = kernel.policy
        for pattern, labels in () if policy is None else policy.functions.items():
            if any(fnmatchcase(each, pattern.partition("-")[0]) for each in plugins):
                continue
            key = ("policy", "functions", pattern)
            named = [spec for name, spec in kernel.specs.items() if policy and policy.fits(name, pattern)]
            if not named:
                what = "the name of a function here, or a pattern of one"
                wrong.append((key, unknown_word(pattern, kernel.specs, what)))
            elif all("properties" in spec.parameters for spec in named):
                known = {name for spec in named for name in spec.parameters["properties"]}
                unknown = sorted({*labels.parameters()} - known)
                wrong += [((*key, "takes", name), unknown_word(name, known, "a parameter here")) for name in unknown]
        problems = [Problem(cause, key=key, place=self.configuration.place(key)) for key, cause in wrong]
        if problems:
            raise SettingsInvalid(problems)

    def _literal_secrets(self) -> Iterator[Problem]:
        for port in PORTS:
            for entry in self.configuration.entries(port):
                fields = fields_of(self.plugins, port.name, entry.use)
                for name, value in entry.settings.items():
                    if name in fields and holds_secret(fields[name].hint) and _has_literal(value):
                        key = (*entry.key, name)
                        cause = "the secret is written into the file, where others may read it."
                        mend = 'Put it in a variable: { env = "NAME" }.'
                        yield Problem(cause, mend, key, self.configuration.place(key), write_key(key), "warning")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is wrong, together with the packages; ``application`` is None when the configuration cannot be used."""

    problems: tuple[Problem, ...]
    plugins: Plugins
    application: Application | None


def load(config: Path | str | None = None, overrides: Mapping[str, Any] | None = None) -> Application:
    """Read the configuration: ``config`` or `portico.toml` of the working directory, or nothing at all.

    ``overrides`` is a nested mapping over file and environment, ``{"planner": {"use": "structured"}}``; its
    paths are relative to the working directory. Raises ``ConfigurationError`` with every mistake that shows
    before a plugin is asked.
    """
    return Application(read_configuration(config, overrides=overrides))


def open(
    config: Path | str | None = None,
    *,
    overrides: Mapping[str, Any] | None = None,
    sources: Sequence[str] | None = None,
    services: Mapping[Any, Any] | None = None,
    plugins: Iterable[FunctionPlugin | object] = (),
) -> AbstractAsyncContextManager[Kernel]:
    """Open a kernel: `load` and `Application.kernel` in one.

    ``services`` are instances of the application, ``{ChatService: chat, (TextSearch, "wiki"): search}``. They take the
    place of what is configured, and stay the application's to close. ``plugins`` are function plugins, or objects,
    classes and modules with marked functions; one with hooks is a plugin package that need not be installed. Raises
    ``TypeError`` for services with another key.
    """
    plugins = tuple(plugins)
    application = Application(read_configuration(config, overrides=overrides), filter(has_hooks, plugins))
    functions = (each for each in plugins if not has_hooks(each))
    return application.kernel(sources, plugins=functions, services=services)


def diagnose(config: Path | str | None = None, overrides: Mapping[str, Any] | None = None) -> Diagnosis:
    """Check everything; if the configuration is wrong, only the configuration and the packages that it allows."""
    mistakes: list[Problem] = []
    try:
        application = Application(read_configuration(config, overrides=overrides, problems=mistakes))
    except PorticoError as error:
        plugins = discover()
        return Diagnosis((*problems_of(error), *plugins.problems), plugins, None)
    if mistakes:
        plugins = application.plugins
        return Diagnosis((*problems_of(SettingsInvalid(mistakes)), *plugins.problems), plugins, None)
    return Diagnosis(tuple(application.check()), application.plugins, application)


def _has_literal(value: object) -> bool:
    """Tell whether a secret, or one in a table of secrets, is written out in the file."""
    if isinstance(value, Mapping):
        return not value.keys() & {"env", "file"} and any(map(_has_literal, value.values()))
    return isinstance(value, str) and not isinstance(value, Given)


def _if_chosen(services: HostServices, port: Callable[..., P]) -> P | None:
    return services.get(port) if services.names(port) else None


def _if_usable(services: HostServices, port: Callable[..., P], name: str) -> P | None:
    """Make a service that is active without being configured; None, and a warning in the log, where it is broken.

    One that needs settings is not active until it has them.
    """
    try:
        return services.get(port, name)
    except ConfigurationError:
        if services.has_settings(port.__name__, name):
            raise
        return None
    except PorticoError as error:
        _LOG.warning("%s It is left out; `portico doctor` says what mends it.", error)
        return None


def _active(services: HostServices, port: Callable[..., P]) -> list[P]:
    """Make every service of a port: the configured ones in the order of the file, then all others that are active."""
    implicit = services.implicit(port.__name__)
    made = (
        _if_usable(services, port, name) if name in implicit else services.get(port, name)
        for name in services.names(port)
    )
    return [service for service in made if service is not None]


def _schema_validator(services: HostServices) -> SchemaValidator | None:
    """Make the chosen schema validator, or the only one that is installed; None leaves core its own."""
    from portico.ports import SchemaValidator

    implicit = services.implicit(SchemaValidator.__name__)
    return _if_usable(services, SchemaValidator, implicit[0]) if implicit else _if_chosen(services, SchemaValidator)


def _run_store(services: HostServices) -> RunStore | None:
    """Make the chosen journal, or the default one where it is installed."""
    from portico.ports import RunStore

    if (RunStore.__name__, None) in services.list_chosen() or not services.names(RunStore):
        return _if_chosen(services, RunStore)
    return _if_usable(services, RunStore, services.names(RunStore)[0])


async def _load_all(services: HostServices, names: Sequence[str]) -> list[FunctionPlugin]:
    """Load function sources side by side, since some start a program or ask a server; the first error ends all."""
    import asyncio

    loads = [asyncio.ensure_future(_load(services, name)) for name in names]
    try:
        return await asyncio.gather(*loads)
    finally:
        for load in loads:
            load.cancel()
        await asyncio.gather(*loads, return_exceptions=True)


async def _load(services: HostServices, name: str) -> FunctionPlugin:
    """Load a function source. Raises ``PluginBroken`` where it fails in another way than by an error of Portico."""
    from portico.ports import FunctionSource

    try:
        return await services.get(FunctionSource, name).load(_function_name(name))
    except PorticoError:
        raise
    except Exception as error:
        if name in services.given(FunctionSource.__name__):
            raise
        offer = services.prepare(FunctionSource.__name__, name).offer
        raise blame(offer, f"functions.{name} could not be loaded", error) from error


def _function_name(name: str) -> str:
    """Names of functions know no hyphen."""
    return name.replace("-", "_")


def _add(kernel: Kernel, plugin: FunctionPlugin, key: str) -> None:
    if plugin.name in kernel.plugins:
        raise ConfigurationError(f"{key}: there is a function plugin {plugin.name!r} already; give it another name.")
    kernel.add_plugin(plugin)


def _effective_settings(configuration: Configuration, plugins: Plugins) -> Iterator[EffectiveSetting]:
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
            if port.many or entry.use != entry.name:
                key = (*entry.key, "use")
                yield EffectiveSetting(write_key(key), entry.use, configuration.place(key))
            yield from _of_entry(configuration, plugins, entry)
    yield from _own(configuration, PluginChoice, configuration.plugins, ("plugins",))
    yield from _own(configuration, SecretRules, configuration.secrets, ("secrets",))
    yield from _own(configuration, PolicyRules, configuration.policy, ("policy",))


def _own(configuration: Configuration, cls: type[Any], made: Any, key: tuple[str, ...]) -> Iterator[EffectiveSetting]:
    for member in settings_fields(cls):
        inside = (*key, member.key)
        given = any(known[: len(inside)] == inside for known in configuration.origins)
        origin = configuration.place(inside) if given else "default"
        yield EffectiveSetting(write_key(inside), _plain(getattr(made, member.key)), origin)


def _of_entry(configuration: Configuration, plugins: Plugins, entry: Entry) -> Iterator[EffectiveSetting]:
    fields = fields_of(plugins, entry.port.name, entry.use)
    for name, value in entry.settings.items():
        key = (*entry.key, name)
        member = fields.get(name)
        shapes = member is None and entry.port.name == "TextSearch" and name in SHAPING
        visible = _plain(value) if shapes or (member and not holds_secret(member.hint)) else _mask(value)
        yield EffectiveSetting(write_key(key), visible, configuration.place(key))
    unchosen = configuration.use(entry.port) is None and entry.use == entry.port.default
    embedded = default_settings(entry.port.name, entry.use) if unchosen else {}
    for name, member in fields.items():
        if name not in entry.settings and not member.required:
            value = _plain(embedded.get(name, member.default))
            yield EffectiveSetting(write_key((*entry.key, name)), value, "default")


def _mask(value: Any) -> Any:
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
