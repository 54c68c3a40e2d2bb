"""`portico run`: check a plan of a file, and run it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from portico_cli.failures import FAILED, Misused
from portico_cli.invocation import Invocation, common_options, json_option, pass_invocation
from portico_cli.options import approval_options, chat_option, overrides_of
from portico_cli.output import show, write_json
from portico_cli.sources import Chosen, choose_sources, docs_option, run, source_option

if TYPE_CHECKING:
    from portico.kernel import Kernel
    from portico.plans.plan import Plan
    from portico.plans.task import Emit
    from portico.pursuit import Pursuit
    from portico.pursuits.journal import StartedStep
    from portico_cli.person import Person
    from portico_cli.plan_check import Placed
    from portico_cli.plan_files import PlanFile

__all__ = ["command"]


@click.command(name="run")
@click.argument("plan", metavar="PLAN")
@click.option("--input", "given", metavar="JSON|@FILE|-", help="What the plan is given: JSON, a file of it, or words.")
@click.option("--yes", is_flag=True, help="Do not ask before a plan with effects runs.")
@docs_option
@source_option
@chat_option
@approval_options
@json_option
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    *,
    plan: str,
    given: str | None,
    yes: bool,
    docs: tuple[Path, ...],
    names: tuple[str, ...],
    chat: str | None,
    approve: bool,
    approve_effects: bool,
) -> None:
    """Check the plan in the file PLAN and run it.

    PLAN is JSON or XML; `-` reads it from standard input. At a terminal a plan that has effects is shown first.
    """
    from portico_cli.given_values import given_value

    if plan == "-" and given == "-":
        raise Misused("The plan and --input cannot both be read from standard input.")
    value = None if given is None else given_value(given, "--input")
    chosen = choose_sources(invocation, docs, names, overrides_of(None, chat))
    work = _Work(invocation, plan, value, approve=approve, approve_effects=approve_effects, yes=yes)
    ran = run(lambda: _run(work, chosen))
    if isinstance(ran, _Refused):
        _tell_refused(invocation, ran)
        click.get_current_context().exit(FAILED)
    from portico_cli.pursuits import exit_code, pursuit_to_json, show_pursuit

    if invocation.json:
        write_json(pursuit_to_json(ran.pursuit, ran.uncertain))
    else:
        show_pursuit(ran.pursuit, {}, ran.uncertain, resumable=ran.resumable)
    click.get_current_context().exit(exit_code(ran.pursuit))


@dataclass(frozen=True, slots=True)
class _Work:
    invocation: Invocation
    name: str
    input: Any
    approve: bool
    approve_effects: bool
    yes: bool


@dataclass(frozen=True, slots=True)
class _Ran:
    pursuit: Pursuit
    uncertain: Mapping[str, StartedStep]
    resumable: bool


@dataclass(frozen=True, slots=True)
class _Refused:
    file: PlanFile
    findings: list[Placed]


async def _run(work: _Work, chosen: Chosen) -> _Ran | _Refused:
    from portico.pursuits.checking import checked
    from portico_cli.approvals import add_approvals, while_held
    from portico_cli.plan_check import finding_lines, placed
    from portico_cli.plan_files import read_plan_file
    from portico_cli.pursuits import pursuing, uncertain_steps
    from portico_cli.step_progress import StepProgress

    async with chosen.application.kernel(chosen.sources) as kernel:
        file = read_plan_file(work.name, kernel.manuals)
        findings = placed(file, checked(kernel, file.plan, input=work.input))
        if any(each.finding.severity == "error" for each in findings):
            return _Refused(file, findings)
        with StepProgress("Running…") as progress:
            # Whoever runs a plan by hand is asked once where it does something in the world.
            effects = not work.yes and _has_effects(kernel, file.plan)
            person = add_approvals(
                kernel,
                work.invocation,
                progress.quiet,
                plans=work.approve,
                effects=work.approve_effects,
            )
            if person is not None:
                with progress.quiet():
                    for line in finding_lines(file.name, findings):
                        person.show(line)
                if effects and not work.approve and not work.approve_effects:
                    _ask_once(kernel, person)

            async def pursue(emit: Emit) -> Pursuit:
                pursuit = await kernel.run_plan(file.plan, input=work.input, emit=emit)
                return await while_held(kernel, person, pursuit, emit)

            pursuit = await pursuing(work.invocation, kernel, progress, pursue)
        return _Ran(pursuit, await uncertain_steps(kernel, pursuit), resumable=kernel.run_store is not None)


def _ask_once(kernel: Kernel, person: Person) -> None:
    from portico.approval import approve_plans

    kernel.filters.plan.append(approve_plans(person.about_plan))


def _has_effects(kernel: Kernel, plan: Plan) -> bool:
    from portico.plans.plan import functions_used

    return any(kernel.manuals[name].effects for name in functions_used(plan) if name in kernel.manuals)


def _tell_refused(invocation: Invocation, refused: _Refused) -> None:
    from portico_cli.plan_check import finding_lines, placed_to_json

    errors = sum(each.finding.severity == "error" for each in refused.findings)
    words = f"{refused.file.name} cannot run: {errors} error{'' if errors == 1 else 's'}."
    if invocation.json:
        findings = [placed_to_json(each) for each in refused.findings]
        write_json({"error": {"type": "PlanInvalid", "message": words, "findings": findings}})
        return
    from portico_cli.output import safe_text

    show(*finding_lines(refused.file.name, refused.findings), safe_text(words, "bold"))
