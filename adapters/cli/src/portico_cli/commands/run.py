"""`portico run`: check a plan of a file, and run it."""

from __future__ import annotations

import click

from portico.plans import INPUT
from portico_cli.arguments import read_value
from portico_cli.execution import Ended, carry_out
from portico_cli.failures import FAILED, Misused
from portico_cli.invocation import Invocation, RunOptions, input_option, overrides_of, pass_invocation, run_options
from portico_cli.loops import run_async
from portico_cli.plan_files import place_findings, read_plan_file
from portico_cli.runs import origin_of
from portico_cli.show.answer import show_and_exit
from portico_cli.show.output import safe_text, show, write_json
from portico_cli.show.plans import Placed, finding_lines, finding_to_json
from portico_cli.sources import choose_sources


@click.command(name="run")
@click.argument("plan", metavar="PLAN")
@input_option
@run_options()
@pass_invocation
def command(invocation: Invocation, *, plan: str, given: str | None, options: RunOptions) -> None:
    """Check the plan in the file PLAN and run it.

    PLAN is JSON or XML; `-` reads it from standard input. At a terminal a plan that has effects is shown first.
    """
    if plan == "-" and given == "-":
        raise Misused("The plan and --input cannot both be read from standard input.")
    value = None if given is None else read_value(given, "--input")
    chosen = choose_sources(invocation, options.docs, options.names, overrides_of(None, options.chat, options.trace))

    async def run() -> Ended | tuple[str, list[Placed]]:
        async with chosen.application.kernel(chosen.sources) as kernel:
            file = read_plan_file(plan, kernel.specs, input=value)
            findings = place_findings(file, kernel.check_plan(file.plan, input=value))
            if any(each.finding.severity == "error" for each in findings):
                return file.name, findings
            kernel.origin = origin_of(options.docs, options.names, options.chat)
            return await carry_out(
                invocation,
                kernel,
                options,
                lambda emit: kernel.run_plan(file.plan, input=value, emit=emit),
                idle="Running…",
                remarks=finding_lines(file.name, findings, enforced=chosen.enforced),
            )

    ran = run_async(run)
    if isinstance(ran, Ended):
        show_and_exit(invocation, ran)
    _show_refused(invocation, *ran, enforced=chosen.enforced)
    click.get_current_context().exit(FAILED)


def _show_refused(invocation: Invocation, name: str, findings: list[Placed], *, enforced: bool) -> None:
    words = f"{name} cannot run: its check found errors."
    if any(INPUT in f"{each.finding}" for each in findings):
        words += " Give the input of the plan with --input."
    if invocation.json:
        listed = [finding_to_json(each) for each in findings]
        write_json({"error": {"type": "PlanInvalid", "message": words, "findings": listed}})
    else:
        show(*finding_lines(name, findings, enforced=enforced), safe_text(words, "bold"))
