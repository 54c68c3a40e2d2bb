"""`portico doctor`: check the installation and say how to mend it."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click
from platformdirs import user_cache_path, user_state_path
from rich.console import RenderableType
from rich.text import Text

import portico
import portico_host
from portico.errors import PluginBroken, PluginNotInstalled, PorticoError, StoreError
from portico.ports import PORTS, ChatService, Planner, RunStore
from portico_cli.command_table import load_command, usable_commands
from portico_cli.failures import FAILED, write_traceback
from portico_cli.invocation import Invocation, common_options, json_option, pass_invocation
from portico_cli.loops import run_async
from portico_cli.namesakes import find_namesakes
from portico_cli.show.layout import Hanging
from portico_cli.show.output import safe_text, show, write_json
from portico_cli.terminal.progress import Progress
from portico_host.problems import problems_of

if TYPE_CHECKING:
    from portico_host import Application, Diagnosis, HostServices, Problem


_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


class Finding(NamedTuple):
    """One line: a state, the subject, what was found, what mends it, and the error of a package."""

    state: Literal["ok", "warn", "fail"]
    subject: str
    message: str
    mend: str = ""
    error: BaseException | None = None


@click.command(name="doctor")
@json_option
@common_options
@pass_invocation
def command(invocation: Invocation) -> None:
    """Check Python, packages, configuration, secrets, folders and services.

    Each line is ok, warn or fail, with what mends it. Exits with 1 when anything failed. With --debug the tracebacks
    of what packages raised follow.
    """
    with Progress("Looking at the packages…") as progress:
        findings = run_async(lambda: examine(invocation.config, progress.say))
    failed = sum(finding.state == "fail" for finding in findings)
    if invocation.json:
        write_json(findings_to_json(findings))
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
        # A wrong setting is the subject; its message names it once more for `--json`.
        message = finding.message.replace(f" {finding.subject}:", "", 1)
        text = safe_text(finding.subject, "bold").append_text(safe_text(f"  {message}"))
        yield Hanging(text, finding.state.ljust(6), _STYLES[finding.state])
        if finding.mend:
            yield Hanging(safe_text(finding.mend), "      → ", "dim")
    warned = sum(finding.state == "warn" for finding in findings)
    yield Text()
    yield Text(f"{failed} failed, {warned} to note.", style="bold red" if failed else "bold green")


def findings_to_json(findings: list[Finding]) -> dict[str, Any]:
    """Return what was found as JSON values, and whether all is well."""
    keys = ("state", "subject", "message")
    checks = [{**{key: getattr(each, key) for key in keys}, "mend": each.mend or None} for each in findings]
    return {"healthy": all(each.state != "fail" for each in findings), "checks": checks}


async def examine(config: Path | None, say: Callable[[str], None]) -> list[Finding]:
    """Examine everything that needs no request to a service; what is found is not raised."""
    diagnosis = portico_host.diagnose(config)
    application = diagnosis.application
    findings = [Finding("ok", "Python", f"{platform.python_version()} in {sys.prefix}")]
    for package in diagnosis.plugins.packages:
        # The others are among the problems.
        if package.state in ("ok", "disabled"):
            offers = ", ".join(f"{offer.port.noun} {offer.name}" for offer in package.offers) or "nothing"
            words = f"{package.version}: {package.problem or offers}"
            findings.append(Finding("ok", package.distribution, words, package.mend or ""))
    findings += map(_of_problem, find_namesakes())
    findings += _commands(diagnosis)
    if application is not None:
        path = application.configuration.path
        used = str(path) if path else "No portico.toml here; the embedded default is used."
        findings.append(Finding("ok", "configuration", used))
    findings += map(_of_problem, diagnosis.problems)
    findings += [_folder("cache", user_cache_path), _folder("state", user_state_path)]
    if application is not None:
        known = {problem.message for problem in diagnosis.problems}
        findings += [each for each in await _services(application, say) if each.message not in known]
        if application.configuration.policy.functions and all(each.state != "fail" for each in findings):
            say("Loading the functions…")
            findings += await _labels(application)
    return findings


def _of_problem(problem: Problem) -> Finding:
    state: Literal["warn", "fail"] = "fail" if problem.severity == "error" else "warn"
    return Finding(state, problem.subject, problem.message, problem.mend, problem.error)


def _of_error(error: PorticoError, subject: str) -> Iterator[Finding]:
    return map(_of_problem, problems_of(error, subject))


def _commands(diagnosis: Diagnosis) -> Iterator[Finding]:
    commands = diagnosis.application.commands if diagnosis.application else portico_host.commands()
    for found in usable_commands(commands):
        try:
            load_command(found)
        except PluginBroken as error:
            yield from _of_error(error, f"command {found.name}")
        else:
            yield Finding("ok", f"command {found.name}", f"from {found.distribution}")


def _folder(kind: str, path_of: Callable[..., Path]) -> Finding:
    folder = path_of("portico", appauthor=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        message = f"{folder} cannot be written: {error.strerror or error}."
        there = next(each for each in (folder, *folder.parents) if os.path.lexists(each))
        mend = f"Make it writable: `chmod u+rwx {there}`."
        if not there.is_dir():
            mend = f"{there} is no folder: move it away."
        return Finding("fail", f"{kind} folder", message, mend)
    return Finding("ok", f"{kind} folder", os.fspath(folder))


async def _services(application: Application, say: Callable[[str], None]) -> list[Finding]:
    """Make each service that is in use, which opens nothing, and close it; one that can be examined is."""
    findings: list[Finding] = []
    services = application.services()
    for info in PORTS:
        port: Any = getattr(portico, info.name)
        names = services.names(port)
        own = [each.name for each in application.configuration.entries(info) if each.use != each.name]
        for name in names if info.many else dict.fromkeys((*names[:1], *own)):
            say(f"Making the {info.noun} {name}…")
            try:
                made = services.get(port, name)
                words = "can be made"
                if (examine := getattr(made, "examine", None)) is not None:
                    say(f"Starting {info.noun} {name}…")
                    words = await examine(name.replace("-", "_"))
            except PorticoError as error:
                found = list(_of_error(error, f"{info.noun} {name}"))
                # A default that waits for packages is no fault where it is not used.
                wanted = application.configuration.use(info) or application.configuration.entry(info, name)
                waits = isinstance(error, PluginNotInstalled) and not wanted
                findings += [each._replace(state="warn") for each in found] if waits else found
            else:
                findings.append(Finding("ok", f"{info.noun} {name}", words))
    findings += _planning(services, application.configuration.budget.max_cost)
    for name in services.names(RunStore)[:1]:
        try:
            # A journal that is damaged or may not be read fails here.
            await services.get(RunStore, name).runs()
        except StoreError as error:
            cause, _, mend = str(error).partition(". ")
            findings.append(Finding("fail", f"journal {name}", f"{cause}.", mend or "Choose another one in [runs]."))
        except PorticoError:
            continue  # shown already
    try:
        await services.aclose()
    except PorticoError as error:
        findings += _of_error(error, "services")
    return findings


async def _labels(application: Application) -> list[Finding]:
    """Load the functions, since only these tell which labels of the configuration are for none of them."""
    try:
        async with application.kernel():
            return []
    except PorticoError as error:
        return list(_of_error(error, "functions"))


def _planning(services: HostServices, max_cost: float | None) -> Iterator[Finding]:
    """Warn of a planner that needs a language model if its chat service is not one, and of a price that is missing."""
    for name in services.names(Planner)[:1]:
        try:
            asks = getattr(services.get(Planner, name), "asks_model", False)
            # By this setting a planner gets another chat service.
            named = getattr(services.prepare(Planner.__name__, name).settings, "chat", None)
            chat = services.get(ChatService, named) if asks or max_cost is not None else None
        except PorticoError:
            continue  # shown already
        if chat is not None and max_cost is not None and getattr(chat, "knows_cost", True) is False:
            cause = f"It is not known what replies of {chat.name!r} cost, so max_cost refuses each run that asks it."
            yield Finding("warn", f"planner {name}", cause, "Set the price of its model, or take max_cost away.")
        if asks and chat is not None and not getattr(chat.capabilities, "language_model", True):
            cause = f"It needs a language model, and the chat service {chat.name!r} is not one: it makes no plan."
            mend = "Name a language model under [chat] of portico.toml, or choose another planner."
            yield Finding("warn", f"planner {name}", cause, mend)
