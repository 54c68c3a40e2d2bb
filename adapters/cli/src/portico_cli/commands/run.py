"""`portico run`: check a plan of a file, and run it."""

from __future__ import annotations

import json
from typing import Any

import click

from portico_cli.arguments import given_value
from portico_cli.execution import Ended, carry_out
from portico_cli.failures import FAILED, Misused
from portico_cli.invocation import Invocation, RunOptions, overrides_of, pass_invocation, run_options
from portico_cli.plan_files import Placed, PlanFile, finding_lines, placed, placed_to_json, read_plan_file
from portico_cli.runs import origin_of
from portico_cli.show.answer import show_and_exit
from portico_cli.show.layout import count_words
from portico_cli.show.output import safe_text, show, write_json
from portico_cli.sources import choose_sources, run as run_to_end


@click.command(name="run")
@click.argument("plan", metavar="PLAN")
@click.option("--input", "given", metavar="JSON|@FILE|-", help="The input of the plan: JSON, a file of it, or words.")
@run_options()
@pass_invocation
def command(invocation: Invocation, *, plan: str, given: str | None, options: RunOptions) -> None:
    """Check the plan in the file PLAN and run it.

    PLAN is JSON or XML; `-` reads it from standard input. At a terminal a plan that has effects is shown first.
    """
    if plan == "-" and given == "-":
        raise Misused("The plan and --input cannot both be read from standard input.")
    value = None if given is None else given_value(given, "--input")
    chosen = choose_sources(invocation, options.docs, options.names, overrides_of(None, options.chat))

    async def run() -> Ended | tuple[PlanFile, list[Placed]]:
        async with chosen.application.kernel(chosen.sources) as kernel:
            file = read_plan_file(plan, kernel.specs)
            findings = placed(file, kernel.check_plan(file.plan, input=value))
            if any(each.finding.severity == "error" for each in findings):
                return file, findings
            kernel.origin = origin_of(options.docs, options.names, options.chat)
            return await carry_out(
                invocation,
                kernel,
                options,
                lambda emit: kernel.run_plan(file.plan, input=value, emit=emit),
                idle="Running…",
                remarks=finding_lines(file.name, findings),
            )

    ran = run_to_end(run)
    if isinstance(ran, Ended):
        show_and_exit(invocation, ran)
    _show_refused(invocation, *ran, value)
    click.get_current_context().exit(FAILED)


def _show_refused(invocation: Invocation, file: PlanFile, findings: list[Placed], value: Any) -> None:
    errors = count_words(sum(each.finding.severity == "error" for each in findings), "error")
    words = f"{file.name} cannot run: {errors}.{_input_words(file, findings, value)}"
    if invocation.json:
        listed = [placed_to_json(each) for each in findings]
        write_json({"error": {"type": "PlanInvalid", "message": words, "findings": listed}})
    else:
        show(*finding_lines(file.name, findings), safe_text(words, "bold"))


def _input_words(file: PlanFile, findings: list[Placed], value: Any) -> str:
    """Return which input the plan needs, if its input is wrong or missing."""
    from portico.plans import INPUT, references

    plan = file.plan
    if plan.input is None:
        by_result = () if plan.result is None else references(plan.result)
        used = {each.step for each in by_result}.union(*(step.depends_on() for step in plan.steps))
        return " It refers to its input: give it with --input." if value is None and INPUT in used else ""
    if not any(each.finding.severity == "error" and each.finding.place == INPUT for each in findings):
        return ""
    advice = "Give it its input with --input" if value is None else "What it takes with --input"
    required = plan.input.get("required", ())
    names = [name if name in required else f"{name} (optional)" for name in plan.input.get("properties", ())]
    return f" {advice}: {', '.join(names) or json.dumps(plan.input, ensure_ascii=False)}."
