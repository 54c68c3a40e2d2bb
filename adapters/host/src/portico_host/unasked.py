"""Optional services of a kernel: some are used without being configured, some are made late."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from portico.errors import ConfigurationError, PorticoError, StoreBusy, StoreError
from portico.ports import FunctionSelector, Lease, RunStore, SchemaValidator, TypeCodec
from portico_host.services import HostServices

if TYPE_CHECKING:
    from portico import FunctionSpec, Selection
    from portico.plugins import Compiled
    from portico_host.services import HostServices

__all__ = ["LateSelector", "function_selector", "run_store", "schema_validator", "type_codecs"]

P = TypeVar("P")
_LOG = logging.getLogger("portico_host")


def type_codecs(services: HostServices) -> list[TypeCodec]:
    """Make the type codecs: the configured ones in the order of the file, then all others that are installed.

    Raises what `HostServices.get` does for a configured one. One of the others that cannot be made is left out,
    with a warning in the log: only a function with a type of its kind needs it.
    """
    unasked = services.unasked(TypeCodec.__name__)
    made: list[TypeCodec] = []
    for name in services.names(TypeCodec):
        if name not in unasked:
            made.append(services.get(TypeCodec, name))
            continue
        codec = _spared(services, TypeCodec, name)
        if codec is not None:
            made.append(_Spared(codec))
    return made


def schema_validator(services: HostServices) -> SchemaValidator | None:
    """Make the chosen schema validator, or the only one that is installed; None leaves core its own."""
    unasked = services.unasked(SchemaValidator.__name__)
    if unasked:
        return _spared(services, SchemaValidator, unasked[0])
    return services.get(SchemaValidator) if services.names(SchemaValidator) else None


def run_store(services: HostServices) -> RunStore | None:
    """Make the chosen journal, or the default one where it is installed; None where there is none.

    The default that no one chose is no reason to refuse a question: where it cannot be written, a run goes on
    without a journal, with a warning in the log.
    """
    if not services.names(RunStore):
        return None
    if services.is_configured(RunStore.__name__):
        return services.get(RunStore)
    store = _spared(services, RunStore, services.names(RunStore)[0])
    return None if store is None else _SparedJournal(store)


def _spared(services: HostServices, port: Callable[..., P], name: str) -> P | None:
    try:
        return services.get(port, name)
    except ConfigurationError:
        if services.has_settings(port.__name__, name):
            raise
        # One that needs settings is active when it has them.
        return None
    except PorticoError as error:
        _LOG.warning("%s It is left out; `portico doctor` says what mends it.", error)
        return None


class _Spared:
    """A codec that no one asked for: its own failure is no reason to refuse a type that others know."""

    def __init__(self, codec: TypeCodec) -> None:
        self.name = codec.name
        self._codec = codec
        self._told = False

    def compile(self, hint: object, inner: Callable[[object], Compiled]) -> Compiled | None:
        """Compile a hint; None, and a warning the first time, where the codec fails."""
        try:
            return self._codec.compile(hint, inner)
        except (PorticoError, RecursionError):
            raise
        except Exception as error:  # noqa: BLE001 - it may raise anything
            if not self._told:
                self._told = True
                shown = f"{type(error).__name__}: {error}"
                _LOG.warning("Type codec %r failed on %r, and is passed by: %s", self.name, hint, shown)
            return None


class _SparedJournal(RunStore):
    """A journal that no one chose: a new run does without it where it cannot be opened."""

    def __init__(self, store: RunStore) -> None:
        self.name = store.name
        self._store = store
        self._known: set[str] = set()
        self._without: set[str] = set()

    async def acquire(self, run: str, *, owner: str, seconds: float) -> Lease:
        """Take the run; a new one goes on without a journal where there can be none."""
        try:
            return await self._store.acquire(run, owner=owner, seconds=seconds)
        except StoreBusy:
            raise
        except StoreError as error:
            # What has been read is to be continued, and what has happened in it must not happen twice.
            if run in self._known:
                raise
            _LOG.warning("%s This run is not recorded and cannot be resumed.", error)
            self._without.add(run)
            return Lease(run, owner, 0)

    async def renew(self, lease: Lease, *, seconds: float) -> None:
        """Lengthen a lease."""
        if lease.run not in self._without:
            await self._store.renew(lease, seconds=seconds)

    async def release(self, lease: Lease) -> None:
        """Give the run back."""
        if lease.run in self._without:
            self._without.discard(lease.run)
        else:
            await self._store.release(lease)

    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        """Add entries at the end of the run."""
        if lease.run not in self._without:
            await self._store.append(lease, entries)

    async def read(self, run: str) -> list[Mapping[str, Any]]:
        """Return a run's entries in order."""
        entries = await self._store.read(run)
        if entries:
            self._known.add(run)
        return entries

    async def held(self, run: str) -> bool:
        """Tell whether a process is at work on the run."""
        return await self._store.held(run)

    async def runs(self) -> list[str]:
        """Return the names of all runs, the oldest first."""
        return await self._store.runs()


class LateSelector:
    """Stands for the chosen selector until it is asked.

    What a selector stands on, vectors and a store of them, takes a second to import, and most that is done with a
    kernel asks no model. The settings were structured when the kernel opened; what else is wrong is raised by the first
    turn, as it is of a chat service.
    """

    def __init__(self, services: HostServices, name: str) -> None:
        self.name = name
        self._services = services

    @property
    def limit(self) -> int:
        """How many functions are offered where a caller does not say."""
        return self._services.get(FunctionSelector).limit

    async def select(
        self, functions: Sequence[FunctionSpec], context: Sequence[str], *, limit: int | None = None
    ) -> Selection:
        """Choose; raises what making the selector does, and what it does itself."""
        return await self._services.get(FunctionSelector).select(functions, context, limit=limit)


def function_selector(services: HostServices) -> LateSelector | None:
    """Return the chosen selector, None where none is chosen."""
    names = services.names(FunctionSelector)
    return LateSelector(services, names[0]) if names else None
