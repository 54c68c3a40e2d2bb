"""`portico functions`: what planners and models can call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from portico import FunctionSpec
from portico.ports import FunctionSelector
from portico_cli.arguments import read_goal
from portico_cli.invocation import Invocation, common_options, docs_option, json_option, pass_invocation, source_option
from portico_cli.loops import run_async
from portico_cli.show.functions import function_lines, selection_lines, selection_to_json
from portico_cli.show.output import safe_text, show, write_json
from portico_cli.sources import choose_sources

if TYPE_CHECKING:
    from pathlib import Path

    from portico import Function, Selection


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
    help="Show which functions a model reads of for this question or goal, with scores and reasons; `-` reads it "
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

    async def collect() -> tuple[list[Function], Selection | None]:
        async with chosen.application.kernel(chosen.sources) as kernel:
            if question is None:
                return list(kernel.functions.values()), None
            selector = kernel.service(FunctionSelector)
            selection = await selector.select(tuple(kernel.specs.values()), (question,))
            tuple(FunctionSpec.find_names(selection.absent, kernel.specs))
            return [kernel.functions[name] for name in selection.names], selection

    functions, selection = run_async(collect)
    specs = [function.spec for function in functions]
    if manual == "schema":
        write_json({"functions": [each.to_openapi() for each in specs]})
    elif manual == "tools":
        tools = [each.tool() for each in specs]
        listed = [{"name": x.name, "description": x.description, "parameters": x.parameters} for x in tools]
        write_json({"tools": listed})
    elif invocation.json:
        body: dict[str, Any] = {"manual": FunctionSpec.write_text(specs)}
        if not manual:
            body = {"functions": [_to_json(function) for function in functions]}
        write_json(body if selection is None else {**body, "selection": selection_to_json(selection)})
    elif manual and functions:
        show(safe_text(FunctionSpec.write_text(specs)))
    elif selection is not None:
        show(*selection_lines(selection))
    else:
        show(*function_lines(functions) if functions else [safe_text(_NONE)])


def _to_json(function: Function) -> dict[str, Any]:
    spec = function.spec
    return {
        "name": spec.name,
        "plugin": function.plugin,
        "description": spec.description,
        "parameters": dict(spec.parameters),
        "returns": dict(spec.returns),
        "effects": spec.effects,
        "tags": sorted(spec.tags),
    }
