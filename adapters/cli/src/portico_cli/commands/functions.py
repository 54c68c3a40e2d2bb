"""`portico functions`: what planners and models can call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from portico.manuals import schema_manual, text_manual, tool
from portico_cli.arguments import read_goal
from portico_cli.invocation import Invocation, common_options, docs_option, json_option, pass_invocation, source_option
from portico_cli.show.functions import selection_lines, selection_to_json
from portico_cli.show.output import plain, safe_text, show, write_json
from portico_cli.sources import choose_sources, run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rich.console import RenderableType

    from portico.functions import Function, FunctionManual
    from portico.kernel import Kernel
    from portico.selection.selection import Selection

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
@click.option(
    "--for",
    "question",
    metavar="TEXT",
    help="Show which functions a model is told of for this question or goal, with scores and reasons; `-` reads it "
    "from standard input. It needs a function selector: `select` in [functions].",
)
@json_option
@common_options
@pass_invocation
def command(
    invocation: Invocation, docs: tuple[Path, ...], names: tuple[str, ...], manual: str | None, question: str | None
) -> None:
    """List the functions of the kernel, by plugin."""
    question = None if question is None else read_goal(question)
    chosen = choose_sources(invocation, docs, names)

    async def collect() -> tuple[dict[str, Function], Selection | None]:
        async with chosen.application.kernel(chosen.sources) as kernel:
            return await _offered(kernel, question)

    functions, selection = run(collect)
    manuals = [function.manual for function in functions.values()]
    if manual == "schema":
        write_json({"functions": [schema_manual(each) for each in manuals]})
    elif manual == "tools":
        write_json({"tools": [_tool_as_json(each) for each in manuals]})
    elif invocation.json:
        listed = [_as_json(function) for function in functions.values()]
        told: dict[str, Any] = {"manual": text_manual(manuals)} if manual else {"functions": listed}
        write_json(told if selection is None else {**told, "selection": selection_to_json(selection)})
    elif selection is not None and not manual:
        show(*selection_lines(selection))
    elif not functions and selection is None:
        show(safe_text(_NONE))
    elif manual:
        show(safe_text(text_manual(manuals)))
    else:
        show(*_listed(functions))


async def _offered(kernel: Kernel, question: str | None) -> tuple[dict[str, Function], Selection | None]:
    """Return all functions, or those that are offered for a question, the best first, and how they were chosen."""
    if question is None:
        return dict(kernel.functions), None
    from portico.ports.function_selector import FunctionSelector

    selection = await kernel.service(FunctionSelector).select(tuple(kernel.manuals.values()), (question,))
    for name in selection.absent:
        kernel.function(name)
    return {name: kernel.functions[name] for name in selection.names}, selection


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

    from portico_cli.show.layout import Hanging

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
