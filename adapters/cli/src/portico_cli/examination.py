"""What `portico doctor` looks at."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import portico_host
from portico.errors import PluginBroken, PluginNotInstalled, PorticoError, StoreError
from portico.ports import PORTS
from portico_cli.command_table import loaded
from portico_host.checking import problems_of

if TYPE_CHECKING:
    from portico_host import Application, Diagnosis, HostServices

__all__ = ["Finding", "examine"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: a state, what it is about, what was found, and what mends it."""

    state: Literal["ok", "warn", "fail"]
    subject: str
    message: str = ""
    mend: str = ""


async def examine(config: Path | None) -> list[Finding]:
    """Look at everything that can be looked at without asking a service; nothing is raised for what is found."""
    diagnosis = portico_host.diagnose(config)
    findings = [_python(), *_packages(diagnosis), *_commands(diagnosis), _configuration(diagnosis, config)]
    findings += [
        Finding("fail" if problem.severity == "error" else "warn", problem.subject, problem.cause, problem.mend)
        for problem in diagnosis.problems
    ]
    findings.append(_cache_folder())
    if diagnosis.application is not None:
        known = {problem.cause for problem in diagnosis.problems}
        findings += [finding async for finding in _services(diagnosis.application, known)]
    return findings


def _python() -> Finding:
    return Finding("ok", "Python", f"{platform.python_version()} in {sys.prefix}")


def _packages(diagnosis: Diagnosis) -> Iterator[Finding]:
    for package in diagnosis.plugins.packages:
        offers = ", ".join(f"{offer.port.noun} {offer.name}" for offer in package.offers)
        if package.state == "ok":
            yield Finding("ok", package.distribution, f"{package.version}: {offers or 'nothing'}")
        elif package.state == "disabled":
            yield Finding(
                "ok", package.distribution, f"{package.version}: not used. {package.problem}", package.mend or ""
            )
        # The others are among the problems, with what mends them.


def _commands(diagnosis: Diagnosis) -> Iterator[Finding]:
    for found in diagnosis.application.commands if diagnosis.application else portico_host.commands():
        try:
            loaded(found)
        except PluginBroken as error:
            yield Finding(
                "fail",
                f"command {found.name}",
                # The message's own advice is the same as the one beside it.
                str(error).partition(" Run `pip")[0],
                f"Run `pip install --upgrade {found.distribution}`, or `pip uninstall {found.distribution}`.",
            )
        else:
            yield Finding("ok", f"command {found.name}", f"from {found.distribution}")


def _configuration(diagnosis: Diagnosis, config: Path | None) -> Finding:
    if diagnosis.application is None:
        return Finding("fail", "configuration", f"{config or 'portico.toml'} cannot be used.", "See below.")
    path = diagnosis.application.configuration.path
    if path is None:
        return Finding("ok", "configuration", "No portico.toml here; the embedded default is used.")
    return Finding("ok", "configuration", str(path))


def _cache_folder() -> Finding:
    from platformdirs import user_cache_path

    folder = user_cache_path("portico", appauthor=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        mend = f"Make it writable: `mkdir -p {folder} && chmod u+rwx {folder}`."
        return Finding("fail", "cache folder", f"{folder} cannot be written: {error.strerror or error}.", mend)
    return Finding("ok", "cache folder", os.fspath(folder))


async def _services(application: Application, known: set[str]) -> AsyncIterator[Finding]:
    """Make each configured service, which opens nothing; those whose problem is told already are left out.

    A service that has settings and is not the chosen one stops nobody.
    """
    import portico

    async with application.services() as services:
        for info in PORTS:
            port = getattr(portico, info.name)
            for number, name in enumerate(services.names(port)):
                chosen = info.many or number == 0
                try:
                    services.get(port, name)
                except PorticoError as error:
                    if not chosen and isinstance(error, PluginNotInstalled):
                        continue
                    for problem in problems_of(error, info.name, name):
                        if problem.cause not in known:
                            yield Finding("fail" if chosen else "warn", problem.subject, problem.cause, problem.mend)
                else:
                    yield Finding("ok", f"{info.noun} {name}", "can be made")
        async for finding in _journal(services):
            yield finding


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
