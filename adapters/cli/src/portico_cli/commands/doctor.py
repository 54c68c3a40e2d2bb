"""`portico doctor`: check the installation and say how to mend it."""

from __future__ import annotations

import asyncio
import os
import platform
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from platformdirs import user_cache_path
from rich.console import RenderableType
from rich.text import Text

import portico_host
from portico.errors import ConfigurationError, PluginBroken, PluginError, PluginNotInstalled, PorticoError, StoreError
from portico.ports import PORTS, ChatService, Planner, PortInfo, RunStore
from portico_cli.command_table import load_command, usable_commands
from portico_cli.failures import FAILED, write_traceback
from portico_cli.invocation import Invocation, common_options, json_option, pass_invocation
from portico_cli.loops import run_async
from portico_cli.show.layout import Hanging
from portico_cli.show.output import safe_text, show, write_json
from portico_host.checking import problems_of
from portico_host.loading import factory_of

if TYPE_CHECKING:
    from portico_host import Application, Diagnosis, HostServices


_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}
# Seconds for closing the services that were made.
_PATIENCE = 10.0
_State = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: a state, the subject, what was found, what mends it, and the error of a package."""

    state: _State
    subject: str
    message: str = ""
    mend: str = ""
    error: BaseException | None = field(default=None, compare=False, repr=False)


@click.command(name="doctor")
@json_option
@common_options
@pass_invocation
def command(invocation: Invocation) -> None:
    """Check Python, packages, configuration, secrets, folders and services.

    Each line is ok, warn or fail, with what mends it. Exits with 1 when anything failed. With --debug the tracebacks
    of what packages raised follow.
    """
    findings = run_async(lambda: _examine(invocation.config))
    failed = sum(finding.state == "fail" for finding in findings)
    if invocation.json:
        keys = ("state", "subject", "message")
        checks = [{**{key: getattr(each, key) for key in keys}, "mend": each.mend or None} for each in findings]
        write_json({"healthy": not failed, "checks": checks})
    else:
        show(*_lines(findings, failed))
    # A service fails because its package failed.
    for error in {id(finding.error): finding.error for finding in findings}.values():
        if error is not None:
            write_traceback(error, invocation)
    if failed:
        click.get_current_context().exit(FAILED)


def _lines(findings: list[Finding], failed: int) -> Iterator[RenderableType]:
    for finding in findings:
        text = safe_text(finding.subject, "bold")
        if finding.message:
            text.append_text(safe_text(f"  {finding.message}"))
        yield Hanging(text, finding.state.ljust(6), _STYLES[finding.state])
        if finding.mend:
            yield Hanging(safe_text(finding.mend), "      → ", "dim")
    warned = sum(finding.state == "warn" for finding in findings)
    yield Text()
    yield Text(f"{failed} failed, {warned} to note.", style="bold red" if failed else "bold green")


async def _examine(config: Path | None) -> list[Finding]:
    """Examine everything that needs no request to a service; nothing is raised for what is found."""
    diagnosis = portico_host.diagnose(config)
    application = diagnosis.application
    findings = [Finding("ok", "Python", f"{platform.python_version()} in {sys.prefix}")]
    for package in diagnosis.plugins.packages:
        # The others are among the problems.
        if package.state in ("ok", "disabled"):
            offers = ", ".join(f"{offer.port.noun} {offer.name}" for offer in package.offers) or "nothing"
            words = f"{package.version}: {package.problem or offers}"
            findings.append(Finding("ok", package.distribution, words, package.mend or ""))
    findings += _commands(diagnosis)
    if application is not None:
        path = application.configuration.path
        used = str(path) if path else "No portico.toml here; the embedded default is used."
        findings.append(Finding("ok", "configuration", used))
    findings += [
        Finding("fail" if each.severity == "error" else "warn", each.subject, each.cause, each.mend, each.error)
        for each in diagnosis.problems
    ]
    findings.append(_cache_folder())
    if application is not None:
        known = {problem.cause for problem in diagnosis.problems}
        findings += [each for each in await _services(application) if each.message not in known]
    return findings


def _of_error(error: PorticoError, state: _State, *names: str, subject: str = "") -> Iterator[Finding]:
    for problem in problems_of(error, *names):
        yield Finding(state, subject or problem.subject, problem.cause, problem.mend, problem.error)


def _commands(diagnosis: Diagnosis) -> Iterator[Finding]:
    commands = diagnosis.application.commands if diagnosis.application else portico_host.commands()
    for found in usable_commands(commands):
        try:
            load_command(found)
        except PluginBroken as error:
            yield from _of_error(error, "fail", subject=f"command {found.name}")
        else:
            yield Finding("ok", f"command {found.name}", f"from {found.distribution}")


def _cache_folder() -> Finding:
    folder = user_cache_path("portico", appauthor=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        message = f"{folder} cannot be written: {error.strerror or error}."
        return Finding("fail", "cache folder", message, f"Make it writable: `chmod u+rwx {folder}`.")
    return Finding("ok", "cache folder", os.fspath(folder))


async def _services(application: Application) -> list[Finding]:
    """Make each service, which opens nothing, and close it.

    For a service that is not the chosen one, or not configured, only its mistakes are shown, as warnings.
    """
    findings: list[Finding] = []
    async with _open(application, findings, "services", "fail") as services:
        for info in PORTS:
            configured = services.names(_port(info))
            for number, name in enumerate(configured):
                chosen = info.many or number == 0
                try:
                    services.get(_port(info), name)
                except PorticoError as error:
                    if chosen or not isinstance(error, PluginNotInstalled):
                        findings += _of_error(error, "fail" if chosen else "warn", info.name, name)
                else:
                    findings.append(Finding("ok", f"{info.noun} {name}", "can be made"))
            used = {*configured, *(entry.use for entry in application.configuration.entries(info))}
            for name in application.plugins.names(info.name):
                if name not in used:
                    findings += await _make_idle(application, info, name)
        findings += _planning(services)
        for name in services.names(RunStore)[:1]:
            try:
                # A journal that is damaged or may not be read fails here.
                await services.get(RunStore, name).runs()
            except StoreError as error:
                cause, _, mend = str(error).partition(". ")
                findings.append(
                    Finding("fail", f"journal {name}", f"{cause}.", mend or "Choose another one in [runs].")
                )
            except PorticoError:
                continue  # shown already
    return findings


@asynccontextmanager
async def _open(
    application: Application, findings: list[Finding], subject: str, state: _State
) -> AsyncIterator[HostServices]:
    """Open services, and close them at the end; ``findings`` gets what fails then, with that state."""
    services = application.services()
    try:
        yield services
    finally:
        try:
            async with asyncio.timeout(_PATIENCE):
                await services.aclose()
        except TimeoutError:
            message = f"It could not be closed within {_PATIENCE:.0f} seconds."
            findings.append(Finding(state, subject, message, "Run `pip install --upgrade` on its package."))
        except (PorticoError, ExceptionGroup) as raised:
            for error in raised.exceptions if isinstance(raised, ExceptionGroup) else (raised,):
                if isinstance(error, PorticoError):
                    findings += _of_error(error, state, subject=subject)


def _port(info: PortInfo) -> Any:
    import portico

    return getattr(portico, info.name)


async def _make_idle(application: Application, info: PortInfo, name: str) -> list[Finding]:
    """Make and close a service that is installed and not configured: a mistake shows before somebody chooses it."""
    findings: list[Finding] = []
    try:
        offer = application.plugins.offer(info.name, name)
    except PluginError:
        return []  # its package shows why it cannot be chosen
    async with _open(application, findings, f"{info.noun} {name}", "warn") as services:
        try:
            factory_of(offer)
            services.get(_port(info), name)
        except ConfigurationError:
            pass  # it needs settings, or stands on something that is not configured
        except PorticoError as error:
            findings += _of_error(error, "warn", info.name, name)
    return findings


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
            cause = f"It needs a language model, and the chat service {chat.name!r} is none: it makes no plan."
            mend = "Name a language model under [chat] of portico.toml, or choose another planner."
            yield Finding("warn", f"planner {name}", cause, mend)
