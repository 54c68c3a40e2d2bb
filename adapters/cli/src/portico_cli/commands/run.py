"""`portico run`: check a plan of a file, and run it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from portico_cli.carrying_out import Ended, carry_out, tell_and_exit
from portico_cli.failures import FAILED, Misused
from portico_cli.invocation import Invocation, pass_invocation
from portico_cli.options import PursuitOptions, overrides_of, pursuit_options
from portico_cli.origins import origin_of
from portico_cli.output import show, write_json
from portico_cli.sources import Chosen, choose_sources, run

if TYPE_CHECKING:
    from portico_cli.plan_check import Placed
    from portico_cli.plan_files import PlanFile

__all__ = ["command"]


@click.command(name="run")
@click.argument("plan", metavar="PLAN")
@click.option("--input", "given", metavar="JSON|@FILE|-", help="What the plan is given: JSON, a file of it, or words.")
@pursuit_options()
@pass_invocation
def command(invocation: Invocation, *, plan: str, given: str | None, options: PursuitOptions) -> None:
    """Check the plan in the file PLAN and run it.

    PLAN is JSON or XML; `-` reads it from standard input. At a terminal a plan that has effects is shown first.
    """
    from portico_cli.given_values import given_value

    if plan == "-" and given == "-":
        raise Misused("The plan and --input cannot both be read from standard input.")
    value = None if given is None else given_value(given, "--input")
    chosen = choose_sources(invocation, options.docs, options.names, overrides_of(None, options.chat))
    work = _Work(invocation, plan, value, options)
    ran = run(lambda: _run(work, chosen))
    if isinstance(ran, _Refused):
        _tell_refused(invocation, ran)
        click.get_current_context().exit(FAILED)
    tell_and_exit(invocation, ran)


@dataclass(frozen=True, slots=True)
class _Work:
    invocation: Invocation
    name: str
    input: Any
    options: PursuitOptions


@dataclass(frozen=True, slots=True)
class _Refused:
    file: PlanFile
    findings: list[Placed]
    input: Any


async def _run(work: _Work, chosen: Chosen) -> Ended | _Refused:
    from portico.pursuits.checking import checked
    from portico_cli.plan_check import finding_lines, placed
    from portico_cli.plan_files import read_plan_file
    from portico_cli.step_progress import StepProgress

    async with chosen.application.kernel(chosen.sources) as kernel:
        file = read_plan_file(work.name, kernel.manuals)
        findings = placed(file, checked(kernel, file.plan, input=work.input))
        if any(each.finding.severity == "error" for each in findings):
            return _Refused(file, findings, work.input)
        kernel.origin = origin_of(work.options.docs, work.options.names, work.options.chat)
        return await carry_out(
            work.invocation,
            kernel,
            work.options,
            StepProgress("Running…"),
            lambda emit: kernel.run_plan(file.plan, input=work.input, emit=emit),
            remarks=finding_lines(file.name, findings),
        )


def _tell_refused(invocation: Invocation, refused: _Refused) -> None:
    from portico_cli.plan_check import finding_lines, placed_to_json

    errors = sum(each.finding.severity == "error" for each in refused.findings)
    words = f"{refused.file.name} cannot run: {errors} error{'' if errors == 1 else 's'}.{_input_wanted(refused)}"
    if invocation.json:
        findings = [placed_to_json(each) for each in refused.findings]
        write_json({"error": {"type": "PlanInvalid", "message": words, "findings": findings}})
        return
    from portico_cli.output import safe_text

    show(*finding_lines(refused.file.name, refused.findings), safe_text(words, "bold"))


def _input_wanted(refused: _Refused) -> str:
    """Say what the plan wants to be given, where it was given something else or nothing."""
    from portico.plans.plan import INPUT, references
    from portico.plans.text_form import input_in_words

    plan, none = refused.file.plan, refused.input is None
    if plan.input is None:
        by_result = () if plan.result is None else references(plan.result)
        used = {each.step for each in by_result}.union(*(step.depends_on() for step in plan.steps))
        return " It refers to its input, which --input gives it." if none and INPUT in used else ""
    if not any(each.finding.severity == "error" and each.finding.place == INPUT for each in refused.findings):
        return ""
    advice = "Give it its input with --input" if none else "What it takes with --input"
    return f" {advice}: {input_in_words(plan.input)}."
