"""What `portico doctor` says of the services: whether each can be made, and whether it is what its port asks for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from portico.errors import ConfigurationError, PluginError, PluginNotInstalled, PorticoError, StoreError
from portico.ports import PORTS, PortInfo
from portico_cli.findings import Finding
from portico_host.checking import problems_of
from portico_host.loading import factory_of
from portico_host.mending import mend_by_authors
from portico_host.mistakes import SettingsInvalid
from portico_host.schema import offered_schema

if TYPE_CHECKING:
    from portico_host import Application, HostServices, Plugins

__all__ = ["checked_services"]

_Failure: TypeAlias = tuple[str, str]
_PATIENCE = 10.0
"""Seconds for closing what was made."""
_LAST_PATIENCE = 1.0
"""Seconds for what is cancelled to end."""


async def checked_services(application: Application, plugins: Plugins, known: set[str]) -> AsyncIterator[Finding]:
    """Make each service, which opens nothing; those whose problem is told already (``known``) are left out.

    A service that has settings and is not the chosen one stops nobody, and neither does one that is installed and
    not configured: of these, only what is wrong is told. Each of those is closed before the next is made.
    """
    failures: list[_Failure] = []
    async with _closing(application.services(), failures) as services:
        for info in PORTS:
            configured = services.names(_port(info))
            for number, name in enumerate(configured):
                for finding in _made(services, info, name, chosen=info.many or number == 0):
                    if finding.message not in known:
                        yield finding
            used = {*configured, *(entry.use for entry in application.configuration.entries(info))}
            for name in plugins.names(info.name):
                if name not in used:
                    async for finding in _idle(application, plugins, info, name):
                        yield finding
        async for finding in _journal(services):
            yield finding
    for cause, mend in failures:
        yield Finding("fail", "services", cause, mend or "Run `pip install --upgrade` on the package that it is of.")


@asynccontextmanager
async def _closing(services: HostServices, failures: list[_Failure]) -> AsyncIterator[HostServices]:
    """Close the services however it ends; ``failures`` gets what that raised, and what mends it."""
    try:
        yield services
    finally:
        failures += await _closed(services)


async def _closed(services: HostServices) -> list[_Failure]:
    """Close services in a task, which is left where it is when it does not end though it is cancelled."""
    closing = asyncio.create_task(services.aclose())
    try:
        await asyncio.wait([closing], timeout=_PATIENCE)
    finally:
        in_time = closing.done()
        closing.cancel()
    if not in_time:
        await asyncio.wait([closing], timeout=_LAST_PATIENCE)
    raised = closing.exception() if closing.done() and not closing.cancelled() else None
    if not in_time:
        return [(f"It could not be closed within {_PATIENCE:.0f} seconds.", "")]
    errors = raised.exceptions if isinstance(raised, ExceptionGroup) else (raised,)
    problems = [problem for error in errors if isinstance(error, PorticoError) for problem in problems_of(error)]
    return [(problem.cause, problem.mend) for problem in problems]


def _port(info: PortInfo) -> Any:
    import portico

    return getattr(portico, info.name)


def _made(services: HostServices, info: PortInfo, name: str, *, chosen: bool) -> Iterator[Finding]:
    """Make a configured service."""
    try:
        services.get(_port(info), name)
    except PorticoError as error:
        if chosen or not isinstance(error, PluginNotInstalled):
            for problem in problems_of(error, info.name, name):
                yield Finding("fail" if chosen else "warn", problem.subject, problem.cause, problem.mend, problem.error)
        return
    yield Finding("ok", f"{info.noun} {name}", "can be made")


async def _idle(application: Application, plugins: Plugins, info: PortInfo, name: str) -> AsyncIterator[Finding]:
    """Make and close one that is installed and not configured: a mistake shows before somebody chooses it."""
    failures: list[_Failure] = []
    async with _closing(application.services(), failures) as services:
        for finding in _made_idle(services, plugins, info, name):
            yield finding
    for cause, mend in failures:
        yield Finding("warn", f"{info.noun} {name}", cause, mend or _mend(plugins, info, name))


def _made_idle(services: HostServices, plugins: Plugins, info: PortInfo, name: str) -> Iterator[Finding]:
    try:
        offer = plugins.offer(info.name, name)
    except PluginError:
        return  # that it cannot be chosen is told with its package
    try:
        schema = offered_schema(offer) or {}
        factory_of(offer)
        try:
            services.prepare(info.name, name)
        except SettingsInvalid as error:
            if not schema.get("required"):
                said = " ".join(mistake.message for mistake in error.mistakes)
                cause = f"None of its settings is required, and without any they do not fit: {said}"
                yield Finding("warn", f"{info.noun} {name}", cause, _mend(plugins, info, name))
            return
        services.get(_port(info), name)
    except ConfigurationError:
        return  # it stands on something that is not configured
    except PorticoError as error:
        for problem in problems_of(error, info.name, name):
            yield Finding("warn", problem.subject, problem.cause, problem.mend, problem.error)


def _mend(plugins: Plugins, info: PortInfo, name: str) -> str:
    offer = plugins.offer(info.name, name)
    return mend_by_authors(offer.distribution, offer.package)


async def _journal(services: HostServices) -> AsyncIterator[Finding]:
    """Read the journal's list of runs, which finds a file that is damaged or may not be read.

    An index needs no look: the next update makes a damaged one anew.
    """
    from portico.ports.run_store import RunStore

    for name in services.names(RunStore)[:1]:
        try:
            await services.get(RunStore, name).runs()
        except StoreError as error:
            cause, _, mend = str(error).partition(". ")
            yield Finding("fail", f"journal {name}", f"{cause}.", mend or "Choose another one in [runs].")
        except PorticoError:
            continue  # that it cannot be made is told already
