"""What `portico doctor` says of the services: whether each can be made, and whether it is what its port asks for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from portico.errors import ConfigurationError, PluginBroken, PluginError, PluginNotInstalled, PorticoError, StoreError
from portico.ports import PORTS, PortInfo
from portico_cli.findings import Finding
from portico_cli.machine_checks import on_one_machine
from portico_host.checking import problems_of
from portico_host.loading import factory_of
from portico_host.mending import mend_by_authors, where_it_is_worked_on
from portico_host.mistakes import SettingsInvalid
from portico_host.schema import offered_schema

if TYPE_CHECKING:
    from portico_host import Application, HostServices, Package, Plugins

__all__ = ["checked_services", "faults_of"]

_Failure: TypeAlias = tuple[str, str]
_PATIENCE = 10.0
"""Seconds for closing what was made."""
_LAST_PATIENCE = 1.0
"""Seconds for what is cancelled to end."""


async def checked_services(application: Application, plugins: Plugins, known: set[str]) -> AsyncIterator[Finding]:
    """Make each service, which opens nothing; those whose problem is told already (``known``) are left out.

    A service that has settings and is not the chosen one stops nobody, and neither does one that is installed and
    not configured: of these, only what is wrong is told. It is to note, unless the package is worked on where it lies:
    to its author it is what failed. Each of those is closed before the next is made.
    """
    failures: list[_Failure] = []
    async with _closing(application.services(), failures) as services:
        for info in PORTS:
            configured = services.names(_port(info))
            for number, name in enumerate(configured):
                entry = application.configuration.entry(info, name)
                mine = _is_worked_on(plugins, info, entry.use if entry else name)
                for finding in _made(services, info, name, chosen=info.many or number == 0, mine=mine):
                    if finding.message not in known:
                        yield finding
            used = {*configured, *(entry.use for entry in application.configuration.entries(info))}
            for name in plugins.names(info.name):
                if name not in used:
                    mine = _is_worked_on(plugins, info, name)
                    async for finding in _idle(application, plugins, info, name):
                        yield finding if mine else replace(finding, state="warn")
        for finding in (*_planning(services), *on_one_machine(services)):
            yield finding
        async for finding in _journal(services):
            yield finding
    for cause, mend in failures:
        yield Finding("fail", "services", cause, mend or "Run `pip install --upgrade` on the package that it is of.")


async def faults_of(application: Application, package: Package) -> list[Finding]:
    """Return what is wrong with what a package registers: each is made, configured or not, and closed again."""
    found: list[Finding] = []
    for offer in package.offers:
        names = [entry.name for entry in application.configuration.entries(offer.port) if entry.use == offer.name]
        for name in names:
            async with _closing(application.services(), []) as services:
                found += _made(services, offer.port, name, chosen=False, mine=True)
        if not names:
            found += [finding async for finding in _idle(application, application.plugins, offer.port, offer.name)]
    return [finding for finding in found if finding.state == "fail"]


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


def _is_worked_on(plugins: Plugins, info: PortInfo, name: str) -> bool:
    return any(where_it_is_worked_on(offer.distribution) for offer in plugins.offers(info.name) if offer.name == name)


def _made(services: HostServices, info: PortInfo, name: str, *, chosen: bool, mine: bool) -> Iterator[Finding]:
    """Make a configured service; whose package is worked on where it lies, it is ``mine``."""
    try:
        services.get(_port(info), name)
    except PorticoError as error:
        if chosen or not isinstance(error, PluginNotInstalled):
            grave = chosen or (mine and isinstance(error, PluginBroken))
            for problem in problems_of(error, info.name, name):
                yield Finding("fail" if grave else "warn", problem.subject, problem.cause, problem.mend, problem.error)
        return
    yield Finding("ok", f"{info.noun} {name}", "can be made")


async def _idle(application: Application, plugins: Plugins, info: PortInfo, name: str) -> AsyncIterator[Finding]:
    """Make and close one that is installed and not configured: a mistake shows before somebody chooses it.

    What fails is the package's own fault, what is to note that of another.
    """
    failures: list[_Failure] = []
    async with _closing(application.services(), failures) as services:
        for finding in _made_idle(services, plugins, info, name):
            yield finding
    for cause, mend in failures:
        yield Finding("fail", f"{info.noun} {name}", cause, mend or _mend(plugins, info, name))


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
                yield Finding("fail", f"{info.noun} {name}", cause, _mend(plugins, info, name))
            return
        services.get(_port(info), name)
    except ConfigurationError:
        return  # it stands on something that is not configured
    except PorticoError as error:
        state: Literal["fail", "warn"] = "fail" if isinstance(error, PluginBroken) else "warn"
        for problem in problems_of(error, info.name, name):
            yield Finding(state, problem.subject, problem.cause, problem.mend, problem.error)


def _mend(plugins: Plugins, info: PortInfo, name: str) -> str:
    offer = plugins.offer(info.name, name)
    return mend_by_authors(offer.distribution, offer.package)


def _planning(services: HostServices) -> Iterator[Finding]:
    """Note a planner whose plans a model writes, where the chat service that it asks is none: no plan would come."""
    from portico.ports.chat_service import ChatService
    from portico.ports.planner import Planner

    for name in services.names(Planner)[:1]:
        try:
            asks = getattr(services.get(Planner, name), "asks_model", False)
            # By this setting our planners, and those written after them, are given another chat service.
            named = getattr(services.prepare(Planner.__name__, name).settings, "chat", None)
            chat = services.get(ChatService, named) if asks else None
        except PorticoError:
            continue  # that one cannot be made is told already
        if chat is not None and not getattr(chat.capabilities, "language_model", True):
            cause = f"A language model writes its plans, and the chat service {chat.name!r} is none: it makes no plan."
            mend = "Name a language model under [chat] of portico.toml, or choose another planner."
            yield Finding("warn", f"planner {name}", cause, mend)


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
