"""`portico plugins`: the installed packages, what they offer, and what is wrong with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.text import Text

import portico_host
from portico.errors import nearest
from portico_cli.command_table import usable_commands
from portico_cli.failures import Misused, write_traceback
from portico_cli.invocation import Invocation, common_options, json_option, pass_invocation
from portico_cli.show.output import show, write_json
from portico_cli.show.packages import detail_lines, details_to_json, package_to_json, packages_lines
from portico_host.packages import folded

if TYPE_CHECKING:
    from portico_host import Package, Plugins


@click.command(name="plugins")
@click.argument("name", required=False)
@json_option
@common_options
@pass_invocation
def command(invocation: Invocation, name: str | None) -> None:
    """List the installed packages and what they offer, by port.

    With NAME, a package or a name that a package registers, show that package with every setting. A package that is
    broken, in conflict, incompatible, empty or disabled is listed with the reason and what mends it; with --debug,
    with the traceback too.
    """
    application = portico_host.load(invocation.config)
    plugins, commands = application.plugins, usable_commands(application.commands)
    packages = plugins.packages
    if name is not None:
        packages = _named(plugins, name)
        if invocation.json:
            write_json({"packages": [details_to_json(package, commands) for package in packages]})
        else:
            lines = [line for package in packages for line in (Text(), *detail_lines(package, commands))]
            show(*lines[1:])
    elif invocation.json:
        write_json(
            {
                "packages": [package_to_json(package) for package in packages],
                "commands": [{"name": found.name, "distribution": found.distribution} for found in commands],
                "unmatched": list(plugins.unmatched),
            }
        )
    else:
        show(*packages_lines(plugins, commands))
    for package in packages:
        if package.error is not None:
            write_traceback(package.error, invocation)


def _named(plugins: Plugins, name: str) -> tuple[Package, ...]:
    """Return the packages of that entry point or distribution, or else those that register the name.

    Raises ``Misused`` with the nearest names if there is none.
    """
    wanted = folded(name)
    found = [each for each in plugins.packages if wanted in (folded(each.name), folded(each.distribution))]
    found = found or [each for each in plugins.packages if wanted in {folded(offer.name) for offer in each.offers}]
    if not found:
        close = nearest(name, [each.name for each in plugins.packages])
        advice = f"Did you mean {' or '.join(close)}?" if close else "`portico plugins` lists the packages."
        raise Misused(f"No package {name!r} is installed. {advice}")
    return tuple(found)
