"""Writes `docs/reference/settings.md` from the settings classes: `python tests/architecture/settings_page.py`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from portico.ports import PORTS, PortInfo
from portico_host.configuration import LabelledFunction, LoopBudget, PluginChoice, PolicyRules, SecretRules
from portico_host.discovery import discover
from portico_host.loading import settings_class_of
from portico_host.schema import settings_schema
from portico_host.shapes import FunctionShape, ParameterShape, SourceShape

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"

INTRODUCTION = """# Settings

What may stand in `portico.toml`, from the settings classes of the packages that come with `portico-ai`.
[Configure an application](../how-to/configure.md) says how the file is read. Each setting can also be given by an
environment variable: `PORTICO_`, then its keys in upper case, joined with two underscores.
"""


def page() -> str:
    """Return the whole page."""
    plugins = discover()
    parts = [INTRODUCTION]
    for port in PORTS:
        offers = [(name, plugins.offer(port.name, name)) for name in sorted(plugins.names(port.name))]
        parts.append("\n".join(_port(port, offers)))
    parts.append("\n".join(_table("[plugins]", "Which installed packages are imported at all.", PluginChoice)))
    parts.append("\n".join(_table("[secrets]", "Where secrets may come from.", SecretRules)))
    parts.append("\n".join(_table("[policy]", "Which values may reach which functions.", PolicyRules)))
    about = (
        "The labels of a function, or of all whose names fit a pattern, in place of those that they have themselves."
    )
    parts.append("\n".join(_table("[policy.functions.NAME]", about, LabelledFunction, "###")))
    return "\n".join(parts)


def _port(port: PortInfo, offers: list[tuple[str, Any]]) -> Iterator[str]:
    beside = port.key != "use"
    table = f"{port.table}.NAME" if port.many else port.table
    names = ", ".join(f"`{name}`" for name, _ in offers) or "none comes with `portico-ai`"
    default = f" The default is `{port.default}`." if port.default else ""
    yield f"## {port.name}: `[{table}]`\n"
    told = " Its settings stand beside that." if beside else ""
    yield f"`{port.key}` names the {port.noun}: {names}.{default}{told}\n"
    if port.table == "planner":
        yield from _rows(settings_schema(LoopBudget))
    if port.name == "TextSearch":
        yield "The functions of each source have these keys too. A package's own setting of the same name wins.\n"
        yield from _rows(settings_schema(SourceShape))
        about = "A function in place of the usual ones. What it leaves out is as the source says; both filters apply."
        yield from _table("[search.NAME.functions.FUNCTION]", about, FunctionShape, "###")
        about = "One parameter that becomes a filter."
        yield from _table("[search.NAME.parameters.PARAMETER]", about, ParameterShape, "###")
    for name, offer in offers:
        cls = settings_class_of(offer)
        if cls is not None:
            heading = f"`[{port.table}.{name}]`"
            if port.many or beside:
                heading = f'`[{table}]` with `{port.key} = "{name}"`'
            yield f"### {heading}\n"
            yield f"{offer.registration.summary}\n"
            yield from _rows(settings_schema(cls))


def _table(heading: str, about: str, cls: type[Any], level: str = "##") -> Iterator[str]:
    yield f"{level} `{heading}`\n"
    yield f"{about}\n"
    yield from _rows(settings_schema(cls))


def _rows(schema: Mapping[str, Any]) -> Iterator[str]:
    required = schema.get("required", ())
    yield "| key | value | default | meaning |"
    yield "| --- | --- | --- | --- |"
    for key, member in schema["properties"].items():
        default = "required" if key in required else _shown(member.get("default"))
        yield f"| `{key}` | {_kind(member)} | {default} | {member.get('description', '')} |"
    yield ""


def _shown(default: Any) -> str:
    if default is None:
        return "not set"
    return f"`{json.dumps(default)}`" if len(json.dumps(default)) <= 40 else "see the package's page"


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(option)}`" for option in schema["enum"])
    if "anyOf" in schema:
        kinds = [_kind(option) for option in schema["anyOf"] if option.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return str(schema.get("type", "any value"))


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
