"""What `portico doctor` looks at."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import portico_host
from portico.errors import PluginBroken
from portico_cli.command_table import loaded, reached, unreached
from portico_cli.findings import Finding
from portico_cli.service_checks import checked_services
from portico_host.checking import problems_of
from portico_host.mending import mend_by_authors
from portico_host.typed_words import quoted

if TYPE_CHECKING:
    from portico_host import Diagnosis

__all__ = ["examine"]


async def examine(config: Path | None) -> list[Finding]:
    """Look at everything that can be looked at without asking a service; nothing is raised for what is found."""
    diagnosis = portico_host.diagnose(config)
    findings = [_python(), *_packages(diagnosis), *_commands(diagnosis), *_configuration(diagnosis)]
    findings += [
        Finding(
            "fail" if problem.severity == "error" else "warn",
            problem.subject,
            problem.cause,
            problem.mend,
            problem.error,
        )
        for problem in diagnosis.problems
    ]
    findings.append(_cache_folder())
    if diagnosis.application is not None:
        known = {problem.cause for problem in diagnosis.problems}
        findings += [finding async for finding in checked_services(diagnosis.application, diagnosis.plugins, known)]
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
    commands = diagnosis.application.commands if diagnosis.application else portico_host.commands()
    for found in reached(commands):
        try:
            loaded(found)
        except PluginBroken as error:
            for problem in problems_of(error):
                yield Finding("fail", f"command {found.name}", problem.cause, problem.mend, problem.error)
        else:
            yield Finding("ok", f"command {found.name}", f"from {found.distribution}")
    for found, instead in unreached(commands):
        mine = found.distribution
        cause = f"That of {mine} is never run: {instead} has a command of the same name."
        mend = mend_by_authors(mine, mine.removeprefix("portico-"))
        if instead != "portico":
            mend = f"Run `pip uninstall {instead}` or `pip uninstall {mine}`."
        yield Finding("warn", f"command {found.name}", cause, mend)


def _configuration(diagnosis: Diagnosis) -> Iterator[Finding]:
    # What is wrong with it is among the problems, with what mends it.
    if diagnosis.application is not None:
        path = diagnosis.application.configuration.path
        yield Finding(
            "ok", "configuration", str(path) if path else "No portico.toml here; the embedded default is used."
        )


def _cache_folder() -> Finding:
    from platformdirs import user_cache_path

    folder = user_cache_path("portico", appauthor=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        place = quoted(str(folder))
        mend = f"Make it writable: `mkdir -p {place} && chmod u+rwx {place}`."
        return Finding("fail", "cache folder", f"{folder} cannot be written: {error.strerror or error}.", mend)
    return Finding("ok", "cache folder", os.fspath(folder))
