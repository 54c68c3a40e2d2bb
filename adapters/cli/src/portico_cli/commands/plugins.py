"""`portico plugins`: the installed packages, what they offer, and what is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click
from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

import portico_host
from portico.errors import PorticoError, nearest
from portico_cli.command_table import usable_commands
from portico_cli.failures import Misused, write_traceback
from portico_cli.invocation import Invocation, common_options, json_option, pass_invocation
from portico_cli.show.layout import Hanging, new_table
from portico_cli.show.output import safe_text, show, write_json
from portico_host.packages import fold
from portico_host.schema import offered_schema

if TYPE_CHECKING:
    from portico_host import Application, Command, Offer, Package, Plugins


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
        packages = _find_packages(plugins, name)
        if invocation.json:
            write_json({"packages": [_details_to_json(package, commands) for package in packages]})
        else:
            lines = [line for package in packages for line in (Text(), *_detail_lines(package, commands))]
            show(*lines[1:])
    elif invocation.json:
        write_json(packages_to_json(application))
    else:
        show(*_packages_lines(plugins, commands))
    for package in packages:
        if package.error is not None:
            write_traceback(package.error, invocation)


def packages_to_json(application: Application) -> dict[str, Any]:
    """Return the packages, their commands, and the names of the configuration that no package has, as JSON values."""
    plugins, commands = application.plugins, usable_commands(application.commands)
    return {
        "packages": [_package_to_json(package) for package in plugins.packages],
        "commands": [{"name": found.name, "distribution": found.distribution} for found in commands],
        "unmatched": list(plugins.unmatched),
    }


def _find_packages(plugins: Plugins, name: str) -> tuple[Package, ...]:
    """Return the packages of that entry point or distribution, or else those that register the name.

    Raises ``Misused`` with the nearest names if there is none.
    """
    wanted = fold(name)
    found = [each for each in plugins.packages if wanted in (fold(each.name), fold(each.distribution))]
    found = found or [each for each in plugins.packages if wanted in {fold(offer.name) for offer in each.offers}]
    if not found:
        close = nearest(name, [each.name for each in plugins.packages])
        advice = f"Did you mean {' or '.join(close)}?" if close else "`portico plugins` lists the packages."
        raise Misused(f"No package {name!r} is installed. {advice}")
    return tuple(found)


def _package_to_json(package: Package) -> dict[str, Any]:
    """Return a package as JSON values, without settings."""
    return {
        "name": package.name,
        "distribution": package.distribution,
        "version": package.version,
        "state": package.state,
        "problem": package.problem,
        "mend": package.mend,
        "offers": [_offer_to_json(offer) for offer in package.offers],
    }


def _offer_to_json(offer: Offer) -> dict[str, Any]:
    return {
        "port": offer.port.name,
        "name": offer.name,
        "summary": offer.registration.summary,
        "port_version": offer.registration.port_version,
        "compatible": offer.compatible,
    }


def _details_to_json(package: Package, commands: tuple[Command, ...]) -> dict[str, Any]:
    """Return a package as JSON values; ``settings`` is the JSON Schema of each registration's, null without any."""
    offers = []
    for offer in package.offers:
        schema, problem = _settings(offer)
        offers.append(
            {
                **_offer_to_json(offer),
                "installed_port_version": offer.port.version,
                "hook": offer.port.hook,
                "table": _table(offer),
                "settings": schema,
                "problem": problem,
            }
        )
    names = [found.name for found in commands if found.distribution == package.distribution]
    return {**_package_to_json(package), "offers": offers, "commands": names}


def _packages_lines(plugins: Plugins, commands: tuple[Command, ...]) -> Iterator[RenderableType]:
    """Yield all packages with what they offer, then what is wrong with some, then their commands."""
    table = new_table("package", "version", "state", "offers")
    for package in plugins.packages:
        offers = [
            Text.assemble((f"{offer.port.noun} ", "dim"), safe_text(offer.name, "cyan")) for offer in package.offers
        ]
        version = safe_text(package.version, "dim")
        table.add_row(safe_text(package.distribution), version, _state(package), Text("\n").join(offers))
    yield table
    for package in plugins.packages:
        if package.problem:
            yield Hanging(safe_text(f"{package.distribution}: {package.problem}"), "! ", _style(package))
            if package.mend and package.state != "disabled":
                yield Hanging(safe_text(package.mend), "  → ", "dim")
    for word in plugins.unmatched:
        words = f"{word} is named in [plugins] of portico.toml, and is not installed."
        yield Hanging(safe_text(words), "! ", "yellow")
    yield from _command_lines(commands)


def _detail_lines(package: Package, commands: tuple[Command, ...]) -> Iterator[RenderableType]:
    """Yield one package with every registration and its settings."""
    head = (safe_text(package.distribution, "bold"), " ", safe_text(package.version, "dim"), " ", _state(package))
    yield Text.assemble(*head)
    for each in package.problems:
        yield Hanging(safe_text(each.cause), "! ", _style(package))
        if each.mend:
            yield Hanging(safe_text(each.mend), "  → ", "dim")
    for offer in package.offers:
        yield Text()
        wanted = offer.registration.port_version
        built_for = f"version {wanted}" if offer.compatible else f"version {wanted}; here it is {offer.port.version}"
        yield Text.assemble(
            (f"{offer.port.noun} ", "dim"),
            safe_text(offer.name, "bold cyan"),
            (f"  built for {offer.port.name} {built_for}", "dim" if offer.compatible else "red"),
        )
        yield Hanging(safe_text(offer.registration.summary), "  ")
        schema, problem = _settings(offer)
        if problem is not None:
            yield Hanging(safe_text(problem), "  ! ", "red")
        elif schema is None:
            yield Text("  No settings.", style="dim")
        else:
            yield safe_text(f"  in {_table(offer)} of portico.toml", "dim")
            yield Padding(_settings_table(schema), (0, 0, 0, 2))
    yield from _command_lines(tuple(found for found in commands if found.distribution == package.distribution))


def _command_lines(commands: tuple[Command, ...]) -> Iterator[RenderableType]:
    if commands:
        names = ", ".join(f"{found.name} ({found.distribution})" for found in commands)
        yield Hanging(safe_text(names), "commands: ", "dim")


def _style(package: Package) -> str:
    return {"ok": "green", "empty": "yellow", "disabled": "dim"}.get(package.state, "red")


def _state(package: Package) -> Text:
    return safe_text(package.state, _style(package))


def _settings_table(schema: Mapping[str, Any]) -> RenderableType:
    table = new_table("setting", "default", "meaning")
    for key, member in schema["properties"].items():
        default = safe_text("required", "yellow")
        if key not in schema.get("required", ()):
            value = member.get("default")
            default = safe_text("not set" if value is None else json.dumps(value, ensure_ascii=False)[:40], "dim")
        meaning = safe_text(member.get("description", ""))
        table.add_row(safe_text(key, "cyan"), default, meaning)
    return table


def _table(offer: Offer) -> str:
    port = offer.port
    if port.key != "use":
        return f'[{port.table}] with {port.key} = "{offer.name}"'
    return f'[{port.table}.NAME] with use = "{offer.name}"' if port.many else f"[{port.table}.{offer.name}]"


def _settings(offer: Offer) -> tuple[dict[str, Any] | None, str | None]:
    """Return the schema of the settings of a registration, or why it cannot be read."""
    try:
        return offered_schema(offer), None
    except PorticoError as error:
        return None, str(error)
