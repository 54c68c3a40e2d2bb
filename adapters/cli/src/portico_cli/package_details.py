"""One installed package as `portico plugins NAME` shows it: every registration with its settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from portico.errors import PorticoError, nearest
from portico_cli.failures import Misused
from portico_cli.output import safe_text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from portico_host import Command, Offer, Package, Plugins

__all__ = [
    "detail_lines",
    "details_to_json",
    "offer_to_json",
    "package_to_json",
    "packages_named",
    "problem_style",
    "value_words",
]


def packages_named(plugins: Plugins, name: str) -> tuple[Package, ...]:
    """Return the packages of that entry point or distribution, or else those that register the name.

    Raises ``Misused`` with the nearest names when there is none.
    """
    wanted = _folded(name)
    found = [each for each in plugins.packages if wanted in (_folded(each.name), _folded(each.distribution))]
    found = found or [each for each in plugins.packages if wanted in {_folded(offer.name) for offer in each.offers}]
    if not found:
        names = [each.name for each in plugins.packages]
        close = nearest(name, names)
        advice = f"Did you mean {' or '.join(close)}?" if close else "`portico plugins` lists those that are."
        raise Misused(f"No package {name!r} is installed. {advice}")
    return tuple(found)


def package_to_json(package: Package) -> dict[str, Any]:
    """Return a package as JSON values, without settings."""
    return {
        "name": package.name,
        "distribution": package.distribution,
        "version": package.version,
        "state": package.state,
        "problem": package.problem,
        "mend": package.mend,
        "offers": [offer_to_json(offer) for offer in package.offers],
    }


def offer_to_json(offer: Offer) -> dict[str, Any]:
    """Return a registration as JSON values, without settings."""
    return {
        "port": offer.port.name,
        "name": offer.name,
        "summary": offer.registration.summary,
        "port_version": offer.registration.port_version,
        "compatible": offer.compatible,
    }


def details_to_json(package: Package, commands: tuple[Command, ...]) -> dict[str, Any]:
    """Return a package as JSON values; ``settings`` is the JSON Schema of each registration's, null without any."""
    offers = []
    for offer in package.offers:
        schema, problem = _settings(offer)
        offers.append(
            {
                **offer_to_json(offer),
                "installed_port_version": offer.port.version,
                "hook": offer.port.hook,
                "table": _table(offer),
                "settings": schema,
                "problem": problem,
            }
        )
    return {
        **package_to_json(package),
        "offers": offers,
        "commands": [found.name for found in commands if found.distribution == package.distribution],
    }


def detail_lines(package: Package, commands: tuple[Command, ...], state: Text) -> Iterator[RenderableType]:
    """Yield what people are shown of a package."""
    from rich.padding import Padding
    from rich.text import Text

    from portico_cli.answer_text import Hanging

    yield Text.assemble(safe_text(package.distribution, "bold"), " ", safe_text(package.version, "dim"), " ", state)
    for defect in package.defects:
        yield Hanging(safe_text(defect.sentence), "! ", "  ", problem_style(package))
        if defect.mend:
            yield Hanging(safe_text(defect.mend), "  → ", "    ", "dim")
    for offer in package.offers:
        yield Text()
        yield _heading(offer)
        yield Hanging(safe_text(offer.registration.summary), "  ", "  ")
        schema, problem = _settings(offer)
        if problem and problem in map(str, package.defects):
            yield Text("  Its settings cannot be read.", style="red")
        elif problem is not None:
            yield Hanging(safe_text(problem), "  ! ", "    ", "red")
        elif schema is None:
            yield Text("  No settings.", style="dim")
        else:
            yield Text.assemble("  ", ("in ", "dim"), safe_text(f"{_table(offer)} of portico.toml", "dim"))
            yield Padding(_table_of(schema), (0, 0, 0, 2))
    names = ", ".join(found.name for found in commands if found.distribution == package.distribution)
    if names:
        yield Text()
        yield Hanging(safe_text(names), "commands: ", "  ", "dim")


def problem_style(package: Package) -> str:
    """Return the style of what is said to be wrong with a package."""
    return {"disabled": "dim", "empty": "yellow"}.get(package.state, "red")


def _heading(offer: Offer) -> Text:
    from rich.text import Text

    version = offer.registration.port_version
    built_for = f"version {version}" if offer.compatible else f"version {version}; here it is {offer.port.version}"
    return Text.assemble(
        (f"{offer.port.noun} ", "dim"),
        safe_text(offer.name, "bold cyan"),
        (f"  built for {offer.port.name} {built_for}", "dim" if offer.compatible else "red"),
    )


def _table_of(schema: Mapping[str, Any]) -> RenderableType:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("setting", "value", "default"):
        table.add_column(name, overflow="fold")
    table.add_column("meaning")
    required = schema.get("required", ())
    for key, member in schema["properties"].items():
        default = "required" if key in required else _shown(member.get("default"))
        table.add_row(
            safe_text(key, "cyan"),
            safe_text(value_words(member)),
            safe_text(default, "yellow" if key in required else "dim"),
            safe_text(member.get("description", "")),
        )
    return table


def value_words(schema: Mapping[str, Any]) -> str:
    """Say in a few words what a schema takes.

    >>> value_words({"anyOf": [{"type": "integer"}, {"enum": ["auto"]}]})
    'integer or "auto"'
    >>> value_words({"type": "number", "minimum": 0, "maximum": 2})
    'number from 0 to 2'
    """
    if "enum" in schema:
        return " or ".join(json.dumps(option, ensure_ascii=False) for option in schema["enum"])
    if "anyOf" in schema:
        words = [value_words(option) for option in schema["anyOf"]]
        secret = any("env" in option.get("properties", {}) for option in schema["anyOf"])
        return "secret" if secret else " or ".join(dict.fromkeys(words))
    if schema.get("not") == {}:
        return "cannot be set in a file"
    kind = str(schema.get("type", "any value"))
    if kind == "array":
        return f"list of {value_words(schema['items'])}" if isinstance(schema.get("items"), Mapping) else "list"
    return {"object": "table"}.get(kind, kind) + _bounds(schema)


def _bounds(schema: Mapping[str, Any]) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema:
        return f" above {schema['exclusiveMinimum']}"
    if least is not None and most is not None:
        return f" from {least} to {most}"
    return f" from {least}" if least is not None else f" up to {most}" if most is not None else ""


def _shown(default: Any) -> str:
    if default is None:
        return "not set"
    text = json.dumps(default, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:39]}…"


def _table(offer: Offer) -> str:
    port = offer.port
    if port.key != "use":
        return f'[{port.table}] with {port.key} = "{offer.name}"'
    return f'[{port.table}.NAME] with use = "{offer.name}"' if port.many else f"[{port.table}.{offer.name}]"


def _settings(offer: Offer) -> tuple[dict[str, Any] | None, str | None]:
    """Return the schema of a registration's settings, or why there is none to be had."""
    from portico_host.schema import offered_schema

    try:
        return offered_schema(offer), None
    except PorticoError as error:
        return None, str(error)


def _folded(name: str) -> str:
    from portico_host.entry_points import folded

    return folded(name)
