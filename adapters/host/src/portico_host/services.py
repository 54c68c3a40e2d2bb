"""Make services when they are first asked for, share them, and close them in reverse order."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from portico.errors import (
    ConfigurationError,
    PluginBroken,
    PluginError,
    PluginNotInstalled,
    PorticoError,
    UnsupportedOption,
    nearest,
)
from portico.plugins import Services
from portico.ports import PORTS, PortInfo
from portico_host.configuration import FILE_NAME, Configuration, Entry, default_settings
from portico_host.fields import settings_fields
from portico_host.loading import blame, factory_of, settings_class_of
from portico_host.packages import Offer, Plugins, port_named
from portico_host.problems import Problem, SettingsInvalid
from portico_host.shapes import SHAPING, SourceShape
from portico_host.tree import NONE

if TYPE_CHECKING:
    from portico.ports import Observer

P = TypeVar("P")
_SOURCES = "TextSearch"


@dataclass(frozen=True, slots=True)
class Prepared:
    """An entry with its plugin and its structured settings: all but made. ``shape`` is that of a source's functions."""

    entry: Entry
    offer: Offer
    settings: Any = field(repr=False)
    shape: SourceShape


class HostServices:
    """The services of one application, as `portico.plugins.Services` has it.

    ``sources`` limits the text searches that `names` lists, in that order; None lists all that are configured.
    ``given`` are instances of the application, as `portico.Kernel` takes them. They take the place of what is
    configured for the same port and name, or for the port where it has one service. They stay the application's to
    close. Use it as an async context manager, or call `aclose`. `get` may be called from any thread.
    """

    def __init__(
        self,
        configuration: Configuration,
        plugins: Plugins,
        sources: Sequence[str] | None = None,
        given: Mapping[Any, Any] | None = None,
    ) -> None:
        self._given: Services | None = None
        self._given_names: dict[str, tuple[str, ...]] = {}
        if given:
            from portico import Kernel

            self._given = instances = Kernel(given).services
            ports = [key[0] if isinstance(key, tuple) else key for key in given]
            self._given_names = {port.__name__: instances.names(port) for port in ports if instances is not None}
        self._configuration = configuration
        self._plugins = plugins
        self._sources = None if sources is None else tuple(dict.fromkeys(sources))
        self._structurer = configuration.structurer()
        self._lock = threading.RLock()
        self._prepared: dict[tuple[str, str], Prepared] = {}
        self._made: dict[tuple[str, str], Any] = {}
        self._making: list[Prepared] = []
        self._observed: dict[tuple[str, int], Any] = {}
        self.observers: Sequence[Observer] = ()
        """They watch every service that is asked for from now on."""
        self._closed = False

    async def __aenter__(self) -> HostServices:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self.aclose()
        except Exception as closing:
            if error is None:
                raise
            error.add_note(f"Closing the services failed too: {closing}")

    def get(self, port: Callable[..., P], name: str | None = None) -> P:
        """Return the service configured for ``port``, or the one of that name, made when first asked for.

        Raises ``ConfigurationError`` for settings that do not fit, or for a circle of services that stand on
        each other; a ``PluginError`` when the plugin cannot be used; ``RuntimeError`` after closing.
        """
        own = self.given(port.__name__)
        if self._given is not None and own and (name is None or name in own):
            return self._observe(port.__name__, self._given.get(port, name))
        with self._lock:
            prepared = self.prepare(port.__name__, name)
            key = (prepared.entry.port.name, prepared.entry.name)
            if key not in self._made:
                self._made[key] = self._restrict(prepared, self._make(prepared))
            return self._observe(port.__name__, cast("P", self._made[key]))

    def _observe(self, port: str, service: P) -> P:
        """Return a service with the observers around it, each time the same."""
        if not self.observers:
            return service
        with self._lock:
            # One object may be the service of two ports.
            key = (port, id(service))
            if key not in self._observed:
                around = service
                for observer in self.observers:
                    around = observer.observe_service(port, around)
                self._observed[key] = around
            return cast("P", self._observed[key])

    def names(self, port: Callable[..., object]) -> tuple[str, ...]:
        """Return the names of what was given and configured for ``port``: given ones, then the chosen or default one.

        Those that are active without being configured follow.
        """
        own, info = self.given(port.__name__), port_named(port.__name__)
        if info.name == _SOURCES and self._sources is not None:
            return self._sources
        if self._configuration.is_off(info):
            return own
        configured = [entry.name for entry in self._configuration.entries(info)]
        default = self._plugins.default_of(info) if self._configuration.use(info) is None else None
        return tuple(dict.fromkeys([*own, *([default] if default else []), *configured, *self.implicit(info.name)]))

    def given(self, port: str) -> tuple[str, ...]:
        """Return the names of the instances that the application gave for a port ("TextSearch")."""
        return self._given_names.get(port, ())

    def inner_sources(self) -> frozenset[str]:
        """Return the configured text searches that another configured one stands on.

        A setting says so by ``metadata={"service": "TextSearch"}``. What cannot be prepared stands on nothing.
        """
        info = port_named(_SOURCES)
        inner: set[str] = set()
        for entry in self._not_given(info):
            try:
                settings = self.prepare(info.name, entry.name).settings
            except PorticoError:
                continue
            inner.update(_sources_named(settings))
        return frozenset(inner)

    def implicit(self, port: str) -> tuple[str, ...]:
        """Return what is active of a port without being configured, sorted by name.

        Every installed type codec is: a type is of one kind only, so that they do not conflict. So is every observer,
        which changes nothing. A schema validator is, when no other is installed and none is chosen.
        """
        info = port_named(port)
        installed = self._plugins.names(info.name)
        if info.name in ("TypeCodec", "Observer"):
            entries = self._configuration.entries(info)
            configured = {*self.given(port), *(name for entry in entries for name in (entry.use, entry.name))}
            return tuple(name for name in installed if name not in configured)
        if (
            info.name == "SchemaValidator"
            and not self.given(port)
            and len(installed) == 1
            and self._configuration.use(info) is None
        ):
            return () if self._configuration.is_off(info) else installed
        return ()

    def has_settings(self, port: str, name: str) -> bool:
        """Tell whether the configuration has settings of that name for a port."""
        entry = self._configuration.entry(port_named(port), name)
        return entry is not None and bool(entry.settings)

    def shape(self, name: str) -> SourceShape:
        """Return how the functions of a source are shaped, also where an instance takes the place of that source."""
        if name not in self.given(_SOURCES):
            return self.prepare(_SOURCES, name).shape
        entry = self._configuration.entry(port_named(_SOURCES), name)
        if entry is None:
            return SourceShape()
        try:
            values = {key: value for key, value in entry.settings.items() if key in SHAPING}
            shape: SourceShape = self._structurer.structure(SourceShape, values)
        except SettingsInvalid as error:
            raise self._configuration.locate(entry, error) from None
        return shape

    def prepare(self, port: str, name: str | None = None) -> Prepared:
        """Find the plugin and structure the settings, making nothing; the errors are those of `get`."""
        with self._lock:
            if self._closed:
                raise RuntimeError("the services are closed: use the kernel while portico_host.open() is entered")
            info = port_named(port)
            entry = self._many(info, name) if info.many else self._single(info, name)
            key = (info.name, entry.name)
            if key not in self._prepared:
                offer = self._offer(entry)
                self._prepared[key] = Prepared(entry, offer, *self._settings(entry, offer))
            return self._prepared[key]

    def prepare_all(self) -> None:
        """Prepare everything that is configured, so that all mistakes are reported at once.

        Of the text searches only the selected ones; of single ports only what is chosen. Raises
        ``SettingsInvalid`` with every mistake, or else the first ``PluginError``.
        """
        problems: list[Problem] = []
        first: PorticoError | None = None
        for port, name in self.list_chosen():
            try:
                self.prepare(port, name)
            except SettingsInvalid as error:
                problems += error.problems
            except (ConfigurationError, PluginError) as error:
                first = first or error
        if problems:
            raise SettingsInvalid(list(dict.fromkeys(problems)))
        if first is not None:
            raise first

    def list_chosen(self) -> tuple[tuple[str, str | None], ...]:
        """Return port and name of everything that is configured to be used, and was not given."""
        wanted: list[tuple[str, str | None]] = []
        for info in PORTS:
            if info.name == _SOURCES and self._sources is not None:
                wanted += [(info.name, source) for source in self._sources if source not in self.given(info.name)]
            elif info.many:
                wanted += [(info.name, entry.name) for entry in self._not_given(info)]
            elif self._configuration.use(info) is not None and not self.given(info.name):
                wanted.append((info.name, None))
        return tuple(wanted)

    def _not_given(self, info: PortInfo) -> list[Entry]:
        return [entry for entry in self._configuration.entries(info) if entry.name not in self.given(info.name)]

    async def aclose(self) -> None:
        """Close every service that was made, the latest first; a second call does nothing.

        All are closed whatever happens. Of several errors the last comes out, as ``PluginBroken`` if it is not one of
        Portico's.
        """
        with self._lock:
            self._closed = True
            made = [(self._prepared[key].offer, service) for key, service in self._made.items()]
            self._made.clear()
        async with AsyncExitStack() as stack:
            for offer, service in made:
                if hasattr(service, "aclose"):
                    stack.push_async_callback(self._close, offer, service)

    async def _close(self, offer: Offer, service: Any) -> None:
        try:
            await service.aclose()
            return
        except PorticoError:
            raise
        except Exception as error:  # noqa: BLE001 - as in `_make`
            failure = self._fault(offer, "it could not be closed", error)
        raise failure

    def _single(self, info: PortInfo, name: str | None) -> Entry:
        chosen = self._configuration.use(info)
        off = self._configuration.is_off(info)
        wanted = name or chosen or (None if off else info.default) or next(iter(self.implicit(info.name)), None)
        if wanted is None and off:
            place = self._configuration.place((info.table, info.key))
            raise ConfigurationError(f'{place}: {info.table}.{info.key} is "{NONE}", so there is no {info.noun}.')
        if wanted is None:
            installed = ", ".join(self._plugins.names(info.name)) or "none"
            raise ConfigurationError(
                f"No {info.noun} is configured: set `{info.key}` in [{info.table}] of {FILE_NAME}. "
                f"Installed: {installed}."
            )
        self._refuse_misspelt(info, wanted)
        return self._configuration.single(info, wanted)

    def _refuse_misspelt(self, info: PortInfo, wanted: str) -> None:
        """Refuse a table ``[chat.opnai]`` beside ``use = "openai"``: its settings would be passed over."""
        for entry in self._configuration.entries(info):
            if entry.name != wanted and entry.use == entry.name not in self._plugins.names(info.name):
                written = entry.name.replace("_", "-") == wanted.replace("_", "-")
                if not written and entry.settings and nearest(entry.name, [wanted]):
                    cause = f"is not an installed {info.noun}. Nearest: {wanted}."
                    raise SettingsInvalid([Problem(cause, "", entry.key, self._configuration.place(entry.key))])

    def _many(self, info: PortInfo, name: str | None) -> Entry:
        if name is None:
            names = self._sources if info.name == _SOURCES and self._sources is not None else None
            names = names if names is not None else tuple(entry.name for entry in self._configuration.entries(info))
            if len(names) != 1:
                raise ConfigurationError(
                    f"No {info.noun} is configured: add a table [{info.table}.NAME] to {FILE_NAME}."
                    if not names
                    else f"Several of the kind {info.noun} are configured, so one must be named: {', '.join(names)}."
                )
            name = names[0]
        entry = self._configuration.entry(info, name)
        # What is installed but not configured goes by its own name, for those who ask for it.
        return entry or Entry(info, name, name, (info.table, name))

    def _offer(self, entry: Entry) -> Offer:
        info = entry.port
        try:
            return self._plugins.offer(info.name, entry.use)
        except PluginError as error:
            entries = self._configuration.entries(info)
            problem: Any = error.args[0]
            configured = entry.key in [known.key for known in entries]
            names = [known.name for known in entries if info.many or known.use != known.name]
            named = not configured if info.many else entry.use == entry.name
            if names and named and isinstance(error, PluginNotInstalled):
                close = nearest(entry.name, names)
                mend = f"Did you mean {' or '.join(close)}?" if close else problem.mend
                problem = replace(problem, cause=f"{problem.cause} Configured: {', '.join(names)}.", mend=mend)
            if configured:
                key = entry.key
                if info.many or entry.use != entry.name:
                    key = (*entry.key, "use")
                elif entry.name == self._configuration.use(info):
                    key = (info.table, info.key)
                place = self._configuration.place(key)
                if place != "override":
                    problem = replace(problem, key=key, place=place)
            raise type(error)(problem) from error.__cause__

    def _settings(self, entry: Entry, offer: Offer) -> tuple[Any, SourceShape]:
        """Structure a plugin's settings, and what `[search.NAME]` says of functions beside them."""
        cls = settings_class_of(offer)
        raw: dict[str, Any] = dict(entry.settings)
        own = {member.key for member in settings_fields(cls)} if cls else set()
        keys = SHAPING - own if entry.port.name == _SOURCES else frozenset()
        shaping = {key: raw.pop(key) for key in keys & raw.keys()}
        if self._configuration.use(entry.port) is None and entry.use == entry.port.default:
            raw = default_settings(entry.port.name, entry.use) | raw
        made: list[Any] = []
        problems: list[Problem] = []
        for kind, values in ((cls, raw), (SourceShape, shaping)):
            try:
                made.append(self._structurer.structure(kind, values, keys) if kind else None)
            except SettingsInvalid as error:
                problems += error.problems
        if cls is None:
            problems += [Problem(f"is not known: {entry.use!r} has no settings.", key=(key,)) for key in raw]
        if problems:
            raise self._configuration.locate(entry, SettingsInvalid(problems))
        return made[0], made[1]

    def _make(self, prepared: Prepared) -> Any:
        if prepared in self._making:
            circle = [*self._making[self._making.index(prepared) :], prepared]
            words = " → ".join(f"{part.entry.port.noun} {part.entry.name!r}" for part in circle)
            raise ConfigurationError(f"These services stand on each other in a circle: {words}.")
        factory = factory_of(prepared.offer)
        self._making.append(prepared)
        try:
            service = factory(prepared.settings, self)
        except PorticoError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a factory of another package raises what it likes
            failure = self._fault(prepared.offer, "it could not be made", error)
        else:
            if service is not None and not inspect.iscoroutine(service):
                return service
            if service is not None:
                service.close()  # it is never awaited, and Python would warn of that
            failure = blame(prepared.offer, f"its factory returned {service!r}, not a service")
        finally:
            self._making.pop()
        raise failure

    def _restrict(self, prepared: Prepared, service: Any) -> Any:
        """Apply the filter of `[search.NAME]` to the search itself, so that it holds wherever the source is reached.

        A `SearchConnector` also takes over the name, for its errors.
        """
        if hasattr(service, "use_filter"):
            service.name = prepared.entry.name
        try:
            if (fixed := prepared.shape.fixed()) is None:
                return service
            if hasattr(service, "use_filter"):
                return service.use_filter(fixed)
            why = f"{prepared.entry.use!r} has no `use_filter`, which a SearchConnector has, so it cannot be restricted"
        except (ValueError, UnsupportedOption) as error:
            why = str(error)
        raise self._configuration.locate(prepared.entry, SettingsInvalid([Problem(why, key=("filter",))]))

    def _fault(self, offer: Offer, what: str, error: BaseException) -> PluginBroken:
        """Return the error for a package that raised, without the secrets that were made for its settings."""
        failure = blame(offer, what, error)
        problem = failure.args[0]
        scrubbed = replace(problem, cause=self._structurer.secrets.scrub(problem.cause))
        if scrubbed != problem:
            # The cause would show the secret in a traceback.
            return PluginBroken(scrubbed)
        failure.__cause__ = error
        return failure


def _sources_named(settings: Any) -> Iterator[str]:
    """Yield the text searches that settings stand on."""
    for member in () if settings is None else settings_fields(type(settings)):
        if member.service == _SOURCES:
            named = getattr(settings, member.key)
            yield from (named,) if isinstance(named, str) else named or ()
