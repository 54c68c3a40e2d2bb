"""Examine the installation for `portico doctor`."""

from __future__ import annotations

import asyncio
import os
import platform
import shlex
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import portico_host
from portico.errors import ConfigurationError, PluginBroken, PluginError, PluginNotInstalled, PorticoError, StoreError
from portico.ports import PORTS, ChatService, Planner, PortInfo, RunStore, TextSearch, VectorStore
from portico_cli.command_table import loaded, reached, unreached
from portico_cli.runs import queue_of
from portico_host.checking import problems_of
from portico_host.loading import factory_of
from portico_host.mistakes import SettingsInvalid
from portico_host.packages import mend_of, port_named, source_folder
from portico_host.schema import offered_schema

if TYPE_CHECKING:
    from portico_host import Application, Diagnosis, HostServices, Package, Plugins


# Seconds for closing the services that were made, and for cancelled tasks to end.
_PATIENCE = 10.0
_LAST_PATIENCE = 1.0
_ONE_MACHINE = {
    RunStore: "a worker on another machine writes its own journal, and does not see the runs of this one.",
    VectorStore: "`portico index` does not find the vectors that a worker on another machine embeds.",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: a state, the subject, what was found, what mends it, and the error of a package."""

    state: Literal["ok", "warn", "fail"]
    subject: str
    message: str = ""
    mend: str = ""
    error: BaseException | None = field(default=None, compare=False, repr=False)


def _findings(error: PorticoError, state: Literal["warn", "fail"], *names: str, subject: str = "") -> Iterator[Finding]:
    for problem in problems_of(error, *names):
        yield Finding(state, subject or problem.subject, problem.cause, problem.mend, problem.error)


async def examine(config: Path | None) -> list[Finding]:
    """Examine everything that needs no request to a service; nothing is raised for what is found."""
    diagnosis = portico_host.diagnose(config)
    findings = [
        Finding("ok", "Python", f"{platform.python_version()} in {sys.prefix}"),
        *_packages(diagnosis.plugins),
        *_commands(diagnosis),
    ]
    if diagnosis.application is not None:
        path = diagnosis.application.configuration.path
        used = str(path) if path else "No portico.toml here; the embedded default is used."
        findings.append(Finding("ok", "configuration", used))
    findings += [
        Finding("fail" if each.severity == "error" else "warn", each.subject, each.cause, each.mend, each.error)
        for each in diagnosis.problems
    ]
    findings.append(_cache_folder())
    if diagnosis.application is not None:
        known = {problem.cause for problem in diagnosis.problems}
        findings += [finding async for finding in _services(diagnosis.application, diagnosis.plugins, known)]
    return findings


def _packages(plugins: Plugins) -> Iterator[Finding]:
    """Yield the packages that work or are disabled; the others are among the problems."""
    for package in plugins.packages:
        if package.state == "ok":
            offers = ", ".join(f"{offer.port.noun} {offer.name}" for offer in package.offers)
            yield Finding("ok", package.distribution, f"{package.version}: {offers or 'nothing'}")
        elif package.state == "disabled":
            words = f"{package.version}: not used. {package.problem}"
            yield Finding("ok", package.distribution, words, package.mend or "")


def _commands(diagnosis: Diagnosis) -> Iterator[Finding]:
    commands = diagnosis.application.commands if diagnosis.application else portico_host.commands()
    for found in reached(commands):
        try:
            loaded(found)
        except PluginBroken as error:
            yield from _findings(error, "fail", subject=f"command {found.name}")
        else:
            yield Finding("ok", f"command {found.name}", f"from {found.distribution}")
    for found, instead in unreached(commands):
        mine = found.distribution
        cause = f"That of {mine} is never run: {instead} has a command of the same name."
        mend = found.mend
        if instead != "portico":
            mend = f"Run `pip uninstall {instead}` or `pip uninstall {mine}`."
        yield Finding("warn", f"command {found.name}", cause, mend)


def _cache_folder() -> Finding:
    from platformdirs import user_cache_path

    folder = user_cache_path("portico", appauthor=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        place = shlex.quote(str(folder))
        mend = f"Make it writable: `mkdir -p {place} && chmod u+rwx {place}`."
        return Finding("fail", "cache folder", f"{folder} cannot be written: {error.strerror or error}.", mend)
    return Finding("ok", "cache folder", os.fspath(folder))


async def _services(application: Application, plugins: Plugins, known: set[str]) -> AsyncIterator[Finding]:
    """Make each service, which opens nothing, and close it; messages in ``known`` are left out.

    For a service that is not the chosen one, or not configured, only its mistakes are shown, as a warning. They are
    failures if the package is installed from its source folder: then its author reads them.
    """
    failures: list[tuple[str, str]] = []
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
        for finding in (*_planning(services), *_on_one_machine(services)):
            yield finding
        for name in services.names(RunStore)[:1]:
            try:
                # A journal that is damaged or may not be read fails here.
                await services.get(RunStore, name).runs()
            except StoreError as error:
                cause, _, mend = str(error).partition(". ")
                yield Finding("fail", f"journal {name}", f"{cause}.", mend or "Choose another one in [runs].")
            except PorticoError:
                continue  # shown already
    for cause, mend in failures:
        yield Finding("fail", "services", cause, mend or "Run `pip install --upgrade` on its package.")


async def faults_of(application: Application, package: Package) -> list[Finding]:
    """Return what is wrong with the services of a package: each is made, configured or not, and closed again."""
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
async def _closing(services: HostServices, failures: list[tuple[str, str]]) -> AsyncIterator[HostServices]:
    """Close the services at the end; ``failures`` gets what that raised, and what mends it.

    A task closes them. If it does not end though it is cancelled, it is left behind.
    """
    try:
        yield services
    finally:
        closing = asyncio.create_task(services.aclose())
        try:
            await asyncio.wait([closing], timeout=_PATIENCE)
        finally:
            in_time = closing.done()
            closing.cancel()
        if not in_time:
            await asyncio.wait([closing], timeout=_LAST_PATIENCE)
            failures.append((f"It could not be closed within {_PATIENCE:.0f} seconds.", ""))
        elif not closing.cancelled() and (raised := closing.exception()) is not None:
            for error in raised.exceptions if isinstance(raised, ExceptionGroup) else (raised,):
                if isinstance(error, PorticoError):
                    failures += [(problem.cause, problem.mend) for problem in problems_of(error)]


def _port(info: PortInfo) -> Any:
    import portico

    return getattr(portico, info.name)


def _is_worked_on(plugins: Plugins, info: PortInfo, name: str) -> bool:
    return any(source_folder(offer.distribution) for offer in plugins.offers(info.name) if offer.name == name)


def _made(services: HostServices, info: PortInfo, name: str, *, chosen: bool, mine: bool) -> Iterator[Finding]:
    """Make a configured service; ``mine`` if its package is installed from its source folder."""
    try:
        services.get(_port(info), name)
    except PorticoError as error:
        if chosen or not isinstance(error, PluginNotInstalled):
            grave = chosen or (mine and isinstance(error, PluginBroken))
            yield from _findings(error, "fail" if grave else "warn", info.name, name)
    else:
        yield Finding("ok", f"{info.noun} {name}", "can be made")


async def _idle(application: Application, plugins: Plugins, info: PortInfo, name: str) -> AsyncIterator[Finding]:
    """Make and close a service that is installed and not configured: a mistake shows before somebody chooses it.

    A failure is the fault of the package itself, a warning the fault of another.
    """
    try:
        offer = plugins.offer(info.name, name)
    except PluginError:
        return  # its package shows why it cannot be chosen
    failures: list[tuple[str, str]] = []
    mends = mend_of(offer.distribution, offer.package)
    async with _closing(application.services(), failures) as services:
        try:
            schema = offered_schema(offer) or {}
            factory_of(offer)
            services.prepare(info.name, name)
            services.get(_port(info), name)
        except SettingsInvalid as error:
            if not schema.get("required"):
                said = " ".join(mistake.message for mistake in error.mistakes)
                cause = f"None of its settings is required, and without any they do not fit: {said}"
                yield Finding("fail", f"{info.noun} {name}", cause, mends)
        except ConfigurationError:
            pass  # it stands on something that is not configured
        except PorticoError as error:
            for finding in _findings(error, "fail" if isinstance(error, PluginBroken) else "warn", info.name, name):
                yield finding
    for cause, mend in failures:
        yield Finding("fail", f"{info.noun} {name}", cause, mend or mends)


def _planning(services: HostServices) -> Iterator[Finding]:
    """Warn of a planner that asks a language model if its chat service is none: no plan would come."""
    for name in services.names(Planner)[:1]:
        try:
            asks = getattr(services.get(Planner, name), "asks_model", False)
            # By this setting a planner gets another chat service.
            named = getattr(services.prepare(Planner.__name__, name).settings, "chat", None)
            chat = services.get(ChatService, named) if asks else None
        except PorticoError:
            continue  # shown already
        if chat is not None and not getattr(chat.capabilities, "language_model", True):
            cause = f"A language model writes its plans, and the chat service {chat.name!r} is none: it makes no plan."
            mend = "Name a language model under [chat] of portico.toml, or choose another planner."
            yield Finding("warn", f"planner {name}", cause, mend)


def _on_one_machine(services: HostServices) -> Iterator[Finding]:
    """Warn of a journal and of vectors on one machine if workers on several machines reach the queue.

    Each says so by an attribute ``one_machine``; a queue that says nothing counts as one of this machine.
    """
    try:
        queue = queue_of(services)
        if queue is None or getattr(queue, "one_machine", True):
            return
        indexes = any(services.get(TextSearch, name).index is not None for name in services.names(TextSearch))
    except PorticoError:
        return  # shown already
    for port, effect in _ONE_MACHINE.items():
        info = port_named(port.__name__)
        for name in services.names(port)[:1]:
            service: Any = services.get(port, name)
            # Vectors in memory belong to each process, wherever it is.
            kept = getattr(service, "one_machine", False) and getattr(service, "persistent", True)
            if kept and (port is RunStore or indexes):
                cause = f"It is on this machine only, and workers on any machine reach the queue of {queue.name!r}: "
                mend = (
                    f'Choose one that all machines reach: `pip install portico-postgres`, and `use = "postgres"` under '
                    f"[{info.table}]. If all workers are on this machine, leave it."
                )
                yield Finding("warn", f"{info.noun} {name}", cause + effect, mend)
