"""`portico functions`: what planners and models can call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from portico.manuals import schema_manual, text_manual, tool
from portico_cli.invocation import Invocation, common_options, json_option, pass_invocation
from portico_cli.output import plain, safe_text, show, write_json
from portico_cli.sources import choose_sources, docs_option, run, source_option

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rich.console import RenderableType

    from portico.functions import Function, FunctionManual

__all__ = ["command"]

_NONE = (
    "There are no functions. Name sources or function plugins in portico.toml (`portico config init` begins one), "
    "or give a folder with --docs."
)


@click.command(name="functions")
@docs_option
@source_option
@click.option(
    "--manual",
    type=click.Choice(["text", "schema", "tools"]),
    is_flag=False,
    flag_value="text",
    help="Print the manual that a planner or a model reads: as text (also without a word), as JSON Schema, or as the "
    "list of tools for a chat service.",
)
@json_option
@common_options
@pass_invocation
def command(invocation: Invocation, docs: tuple[Path, ...], names: tuple[str, ...], manual: str | None) -> None:
    """List the functions of the kernel, by plugin."""
    chosen = choose_sources(invocation, docs, names)

    async def collect() -> dict[str, Function]:
        async with chosen.application.kernel(chosen.sources) as kernel:
            return dict(kernel.functions)

    functions = run(collect)
    manuals = [function.manual for function in functions.values()]
    if manual == "schema":
        write_json({"functions": [schema_manual(each) for each in manuals]})
    elif manual == "tools":
        write_json({"tools": [_tool_as_json(each) for each in manuals]})
    elif invocation.json:
        write_json(
            {"manual": text_manual(manuals)}
            if manual
            else {"functions": [_as_json(function) for function in functions.values()]}
        )
    elif not functions:
        show(safe_text(_NONE))
    elif manual:
        show(safe_text(text_manual(manuals)))
    else:
        show(*_listed(functions))


def _tool_as_json(manual: FunctionManual) -> dict[str, Any]:
    made = tool(manual)
    return {"name": made.name, "description": made.description, "parameters": made.parameters}


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
