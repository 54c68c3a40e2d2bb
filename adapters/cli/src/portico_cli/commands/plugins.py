"""`portico plugins`: what is installed, what it offers, what is wrong with it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from portico_cli.command_table import reached
from portico_cli.failures import write_traceback
from portico_cli.invocation import Invocation, common_options, json_option, pass_invocation
from portico_cli.output import console_for, safe_text, show, write_json
from portico_cli.package_details import detail_lines, details_to_json, package_to_json, packages_named, problem_style
from portico_cli.sources import run

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from portico_host import Application, Command, Package, Plugins

__all__ = ["command"]

_STYLES = {"ok": "green", "empty": "yellow", "disabled": "dim"}
_NARROW = 90


@click.command(name="plugins")
@click.argument("name", required=False)
@json_option
@common_options
@pass_invocation
def command(invocation: Invocation, name: str | None) -> None:
    """List the installed packages and what they offer, by port.

    With NAME, a package or what one registers, show that one with every setting, and broken too where its settings
    cannot be read or its services not be made. A package that is broken, in conflict, incompatible, empty or disabled
    is listed with the reason and what mends it; with --debug, with the traceback too.
    """
    import portico_host

    application = portico_host.load(invocation.config)
    plugins, commands = application.plugins, reached(application.commands)
    listed = plugins.packages
    if name is not None:
        listed = tuple(_looked_into(application, package) for package in packages_named(plugins, name))
        _show_some(listed, commands, as_json=invocation.json)
    elif invocation.json:
        write_json(
            {
                "packages": [package_to_json(package) for package in plugins.packages],
                "commands": [{"name": found.name, "distribution": found.distribution} for found in commands],
                "unmatched": list(plugins.unmatched),
            }
        )
    else:
        show(*_lines(plugins, commands))
    for package in listed:
        if package.cause is not None:
            write_traceback(package.cause, invocation)


def _looked_into(application: Application, package: Package) -> Package:
    """Return a package with what shows only when its settings are read and its services made."""
    if package.state == "disabled":
        return package
    from portico_cli.service_checks import faults_of
    from portico_host.packages import Defect

    faults = run(lambda: faults_of(application, package))
    if not faults:
        return package
    defects = (*package.defects, *(Defect(fault.message, fault.mend) for fault in faults))
    cause = package.cause or next((fault.error for fault in faults if fault.error is not None), None)
    return replace(package, state="broken", defects=defects, cause=cause)


def _show_some(packages: tuple[Package, ...], commands: tuple[Command, ...], *, as_json: bool) -> None:
    from rich.text import Text

    if as_json:
        write_json({"packages": [details_to_json(package, commands) for package in packages]})
        return
    lines: list[RenderableType] = []
    for package in packages:
        lines += [Text()] if lines else []
        lines += detail_lines(package, commands, _state(package))
    show(*lines)


def _lines(plugins: Plugins, commands: tuple[Command, ...]) -> Iterator[RenderableType]:
    from rich.table import Table
    from rich.text import Text

    from portico_cli.answer_text import Hanging

    if not plugins.packages:
        yield Text("No plugin packages are installed.")
        return
    if console_for(sys.stdout).width < _NARROW:
        for package in plugins.packages:
            yield Text.assemble(
                safe_text(package.distribution, "bold"), " ", safe_text(package.version, "dim"), " ", _state(package)
            )
            for offered in _offers(package):
                yield Hanging(offered, "  ", "    ")
    else:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("package", no_wrap=True)
        table.add_column("version", no_wrap=True)
        table.add_column("state", no_wrap=True)
        table.add_column("offers")
        for package in plugins.packages:
            table.add_row(
                safe_text(package.distribution),
                safe_text(package.version, "dim"),
                _state(package),
                Text("\n").join(_offers(package)),
            )
        yield table
    troubled = [package for package in plugins.packages if package.problem]
    if troubled:
        yield Text()
    for package in troubled:
        head = Text.assemble(safe_text(package.distribution, "bold"), ": ", safe_text(package.problem or ""))
        yield Hanging(head, "! ", "  ", problem_style(package))
        if package.mend and package.state != "disabled":
            yield Hanging(safe_text(package.mend), "  → ", "    ", "dim")
    for word in plugins.unmatched:
        yield Hanging(safe_text(f"{word} is to be disabled or used alone, and is not installed."), "! ", "  ", "yellow")
    if commands:
        yield Text()
        names = ", ".join(f"{found.name} ({found.distribution})" for found in commands)
        yield Hanging(safe_text(names), "commands: ", "  ", "dim")


def _state(package: Package) -> Text:
    return safe_text(package.state, _STYLES.get(package.state, "red"))


def _offers(package: Package) -> list[Text]:
    from rich.text import Text

    return [Text.assemble((f"{offer.port.noun} ", "dim"), safe_text(offer.name, "cyan")) for offer in package.offers]
