"""`portico functions`: what planners and models can call."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from portico_cli.invocation import Invocation, common_options, json_option, pass_invocation
from portico_cli.output import plain, safe_text, show, write_json
from portico_cli.sources import choose_sources, docs_option, run, source_option

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rich.console import RenderableType

    from portico.functions import Function

__all__ = ["command"]

_NONE = (
    "There are no functions. Name sources or function plugins in portico.toml (`portico config init` begins one), "
    "or give a folder with --docs."
)


@click.command(name="functions")
@docs_option
@source_option
@click.option("--manual", is_flag=True, help="Print the manual that a model reads.")
@json_option
@common_options
@pass_invocation
def command(invocation: Invocation, docs: tuple[Path, ...], names: tuple[str, ...], manual: bool) -> None:
    """List the functions of the kernel, by plugin."""
    chosen = choose_sources(invocation, docs, names)

    async def collect() -> dict[str, Function]:
        async with chosen.application.kernel(chosen.sources) as kernel:
            return dict(kernel.functions)

    functions = run(collect)
    if invocation.json:
        write_json({"functions": [_as_json(function) for function in functions.values()]})
    elif not functions:
        show(safe_text(_NONE))
    elif manual:
        show(*(safe_text(_manual(function)) for function in functions.values()))
    else:
        show(*_listed(functions))


def _as_json(function: Function) -> dict[str, Any]:
    manual = function.manual
    return {
        "name": manual.name,
        "plugin": function.plugin,
        "description": manual.description,
        "parameters": dict(manual.parameters),
        "returns": dict(manual.returns),
        "effects": manual.effects,
        "tags": sorted(manual.tags),
    }


def _manual(function: Function) -> str:
    """Write the indented text manual: name, description, inputs."""
    lines = [f"{f'{function.plugin}.' if function.plugin else ''}{function.name}:"]
    lines.append(f"  description: {_one_line(function.description)}")
    lines.append("  inputs:" if function.parameters else "  inputs: none")
    for parameter in function.parameters:
        default = "" if parameter.required else f" (default: {json.dumps(parameter.default, default=str)})"
        lines.append(f"  - {parameter.name}: {_one_line(parameter.description)}{default}")
    return "\n".join(lines) + "\n"


def _listed(functions: Mapping[str, Function]) -> Iterator[RenderableType]:
    from rich.text import Text

    from portico_cli.answer_text import Hanging

    plugin: object = ...
    for function in functions.values():
        if function.plugin != plugin:
            if plugin is not ...:
                yield Text()
            plugin = function.plugin
            yield safe_text(plugin or "(no plugin)", "bold")
        names = [parameter.name if parameter.required else f"[{parameter.name}]" for parameter in function.parameters]
        yield Hanging(Text.assemble((function.name, "cyan"), (f"({', '.join(names)})", "dim")), "  ", "    ")
        yield Hanging(safe_text(_one_line(function.description)), "    ", "    ")


def _one_line(text: str) -> str:
    return " ".join(plain(text).split())
