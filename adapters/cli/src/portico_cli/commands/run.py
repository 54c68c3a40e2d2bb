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
from portico_cli.origins import origin_of
from portico_cli.output import show, write_json
from portico_cli.sources import Chosen, choose_sources, docs_option, run, source_option

if TYPE_CHECKING:
    from portico.pursuit import Pursuit
    from portico.pursuits.journal import StartedStep
    from portico_cli.plan_check import Placed
    from portico_cli.plan_files import PlanFile

__all__ = ["command"]


@click.command(name="run")
@click.argument("plan", metavar="PLAN")
@click.option("--input", "given", metavar="JSON|@FILE|-", help="What the plan is given: JSON, a file of it, or words.")
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
    docs: tuple[Path, ...],
    names: tuple[str, ...],
    chat: str | None,
    approve: bool,
    approve_effects: bool,
    yes: bool,
) -> None:
    """Check the plan in the file PLAN and run it.

    PLAN is JSON or XML; `-` reads it from standard input. At a terminal a plan that has effects is shown first.
    """
    from portico_cli.given_values import given_value

    if plan == "-" and given == "-":
        raise Misused("The plan and --input cannot both be read from standard input.")
    value = None if given is None else given_value(given, "--input")
    chosen = choose_sources(invocation, docs, names, overrides_of(None, chat))
    origin = origin_of(docs, names, chat)
    work = _Work(invocation, plan, value, origin, plans=approve, effects=approve_effects, yes=yes)
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
    origin: Mapping[str, Any]
    plans: bool
    effects: bool
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
    no_input: bool
    """Whether the plan wants an input and was given none."""


async def _run(work: _Work, chosen: Chosen) -> _Ran | _Refused:
    from portico.pursuits.checking import checked
    from portico_cli.approvals import add_approvals
    from portico_cli.plan_check import finding_lines, placed
    from portico_cli.plan_files import read_plan_file
    from portico_cli.pursuits import pursuing, uncertain_steps
    from portico_cli.step_progress import StepProgress

    async with chosen.application.kernel(chosen.sources) as kernel:
        file = read_plan_file(work.name, kernel.manuals)
        findings = placed(file, checked(kernel, file.plan, input=work.input))
        if any(each.finding.severity == "error" for each in findings):
            return _Refused(file, findings, no_input=work.input is None and file.plan.input is not None)
        kernel.origin = work.origin
        with StepProgress("Running…") as progress:
            person = add_approvals(
                kernel,
                work.invocation,
                progress.quiet,
                plans=work.plans,
                effects=work.effects,
                yes=work.yes,
            )
            if person is not None:
                with progress.quiet():
                    for line in finding_lines(file.name, findings):
                        person.show(line)
            pursuit = await pursuing(
                work.invocation,
                kernel,
                progress,
                lambda emit: kernel.run_plan(file.plan, input=work.input, emit=emit),
            )
        return _Ran(pursuit, await uncertain_steps(kernel, pursuit), resumable=kernel.run_store is not None)


def _tell_refused(invocation: Invocation, refused: _Refused) -> None:
    from portico_cli.plan_check import finding_lines, placed_to_json

    errors = sum(each.finding.severity == "error" for each in refused.findings)
    words = f"{refused.file.name} cannot run: {errors} error{'' if errors == 1 else 's'}."
    if refused.no_input:
        words += " Give it its input with --input."
    if invocation.json:
        findings = [placed_to_json(each) for each in refused.findings]
        write_json({"error": {"type": "PlanInvalid", "message": words, "findings": findings}})
        return
    from portico_cli.output import safe_text

    show(*finding_lines(refused.file.name, refused.findings), safe_text(words, "bold"))
