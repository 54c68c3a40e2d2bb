"""`portico plan`: propose a plan without running it, check one, compare two."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from portico import Proposal
from portico.errors import PlanFormatError
from portico.plans import Answer, Finding, Plan, XmlPlan, plan_difference
from portico_cli.arguments import read_goal, write_text
from portico_cli.failures import DONE, FAILED, Misused
from portico_cli.invocation import (
    Invocation,
    chat_option,
    common_options,
    docs_option,
    file_option,
    json_option,
    overrides_of,
    pass_invocation,
    planner_option,
    source_option,
)
from portico_cli.loops import run_async
from portico_cli.plan_files import (
    FORMS,
    PlanFile,
    form_of,
    parse_plan,
    place_findings,
    read_plan_file,
    read_plan_text,
    shown_name,
    write_plan,
)
from portico_cli.show.answer import proposal_code, proposal_to_json, show_proposal
from portico_cli.show.layout import count_words
from portico_cli.show.output import safe_text, show, show_errors, write_as_it_is, write_json
from portico_cli.show.plans import Placed, finding_lines, finding_to_json
from portico_cli.sources import Chosen, choose_sources
from portico_cli.terminal.progress import Progress

if TYPE_CHECKING:
    from portico import FunctionSpec, Kernel


@click.command(name="plan")
@click.argument("goal", required=False)
@click.option("--check", "checked", metavar="FILE", help="Check the plan in FILE, `-` for standard input.")
@click.option("--fix", is_flag=True, help="With --check: write what can be mended for certain into the file.")
@click.option("--diff", "compared", metavar="FILE FILE", nargs=2, help="Show what changed from one plan to another.")
@planner_option
@chat_option
@click.option("--format", "form", type=click.Choice(list(FORMS)), help="How the plan is written; text by default.")
@file_option("--output", help="Write the plan to this file; as JSON, or as its ending .xml, .mmd or .txt says.")
@docs_option
@source_option
@json_option
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    *,
    goal: str | None,
    checked: str | None,
    fix: bool,
    compared: tuple[str, str] | None,
    planner: str | None,
    chat: str | None,
    form: str | None,
    output: Path | None,
    docs: tuple[Path, ...],
    names: tuple[str, ...],
) -> None:
    """Propose a plan for GOAL and print it; nothing runs.

    GOAL is in words; `-` reads it from standard input.
    """
    if sum(each is not None for each in (goal, checked, compared)) != 1:
        raise click.UsageError("Give one of GOAL, --check FILE and --diff FILE FILE.")
    if fix and checked is None:
        raise click.UsageError("--fix goes with --check FILE.")
    if output is not None and (compared is not None or (checked is not None and not fix)):
        raise click.UsageError("--output goes with GOAL, and with --check FILE --fix.")
    if compared is not None:
        _compare(invocation, *compared)
        return
    chosen = choose_sources(invocation, docs, names, overrides_of(planner, chat))
    if checked is not None:
        code = _check(invocation, chosen, checked, output, fix=fix)
    else:
        goal = read_goal(cast("str", goal))
        proposal, catalogue = run_async(lambda: _propose(goal, chosen))
        form = form or ("text" if output is None else form_of(output))
        code = _show(invocation, goal, proposal, output, catalogue=catalogue, form=form, enforced=chosen.enforced)
    click.get_current_context().exit(code)


async def _propose(goal: str, chosen: Chosen) -> tuple[Proposal, dict[str, FunctionSpec]]:
    async with chosen.application.kernel(chosen.sources) as kernel:
        with Progress() as progress:
            proposal = await kernel.propose(goal, emit=progress)
        return proposal, dict(kernel.specs)


def _show(
    invocation: Invocation,
    goal: str,
    proposal: Proposal,
    output: Path | None,
    *,
    catalogue: dict[str, FunctionSpec],
    form: str,
    enforced: bool,
) -> int:
    """Show what the planner proposed, write it to ``output``, and return the exit code."""
    outcome = proposal.outcome
    body = proposal_to_json(goal, proposal)
    if isinstance(outcome, Plan):
        # Before anything is printed: XML cannot hold every plan.
        text = write_plan(outcome, form, catalogue, proposal.findings)
        body["text"] = None if form == "json" else text
        if output is not None:
            write_text(output, text)
    if invocation.json:
        write_json(body)
    elif not isinstance(outcome, Plan):
        show_proposal(proposal)
    elif output is not None:
        show(safe_text(f"Wrote {output}."))
    else:
        write_as_it_is(text)
    if isinstance(outcome, Answer) and output is not None:
        raise Misused(f"There is no plan to write to {output}.")
    code = proposal_code(proposal)
    if proposal.findings and not invocation.json:
        show_errors(*finding_lines("", [Placed(each) for each in proposal.findings], enforced=enforced))
        if code == FAILED:
            show_errors(safe_text("This plan cannot run. A run would send the findings back to its planner."))
    return code


def _check(invocation: Invocation, chosen: Chosen, name: str, output: Path | None, *, fix: bool) -> int:
    """Check the plan in a file, show the findings, and return the exit code; with ``fix`` mend the file."""
    file, findings, mended = run_async(lambda: _check_file(chosen, name, fix=fix))
    written = (output or (None if name == "-" else Path(name))) if mended else None
    if written is not None:
        write_text(written, file.text)
    errors = sum(each.finding.severity == "error" for each in findings)
    if invocation.json:
        write_json(
            {
                "file": file.name,
                "ok": not errors,
                "findings": [finding_to_json(each) for each in findings],
                "fixed": mended,
                "written": None if written is None else str(written),
                "text": file.text if mended and written is None else None,
            }
        )
    elif mended and written is None:
        # Read from standard input: the mended plan goes to standard output, the findings beside it.
        write_as_it_is(file.text)
        show_errors(*finding_lines(file.name, findings, enforced=chosen.enforced))
    else:
        show(*(safe_text(f"mended: {words}", "green") for words in mended))
        if written is not None:
            show(safe_text(f"Wrote {written}.", "dim"))
        kinds = Counter((chosen.enforced and each.finding.verdict) or each.finding.severity for each in findings)
        words = f"{count_words(kinds['error'], 'error')}, {count_words(kinds['warning'], 'warning')}"
        flows = {"ask": "to ask about", "refuse": "to refuse"}
        words += "".join(f", {count_words(kinds[each], 'flow')} {what}" for each, what in flows.items() if kinds[each])
        shown = finding_lines(file.name, findings, enforced=chosen.enforced)
        show(*shown, safe_text(f"{file.name}: {words}.", "bold"))
    return FAILED if errors else DONE


async def _check_file(chosen: Chosen, name: str, *, fix: bool) -> tuple[PlanFile, list[Placed], list[str]]:
    """Return the plan in a file, its findings, and what was mended; then both are those of the mended plan."""
    async with chosen.application.kernel(chosen.sources) as kernel:
        text, shown = read_plan_text(name), shown_name(name)
        mended: list[str] = []
        try:
            file = parse_plan(text, shown, kernel.specs)
        except PlanFormatError as error:
            if not fix or "<" not in text:
                raise
            try:
                # The text may be nearly an XML plan.
                found = XmlPlan.read(text, kernel.specs, recover=True)
            except PlanFormatError:
                raise error from None
            mended = [str(mend) for mend in found.recovered]
            file = PlanFile(found.plan, text, shown, found)
        findings = _find(kernel, file)
        certain = [each.finding for each in findings if each.finding.fix is not None]
        mended += map(str, certain)
        if not fix or not mended:
            return file, findings, []
        if file.edited is not None:
            raise Misused(f"{shown} is a saved plan. Write its `plan` into another file, and mend that one.")
        # The mended plan may show more findings: it is checked again, as it will be written.
        xml = file.xml is not None
        text = write_plan(Finding.fix_plan(file.plan, certain), "xml" if xml else "json", kernel.specs)
        file = parse_plan(text, shown, kernel.specs, xml=xml)
        return file, _find(kernel, file), mended


def _find(kernel: Kernel, file: PlanFile) -> list[Placed]:
    doubts = file.xml.findings if file.xml is not None else ()
    return place_findings(file, [*doubts, *kernel.check_plan(file.plan)])


def _compare(invocation: Invocation, before: str, after: str) -> None:
    if before == after == "-":
        raise Misused("Only one of the two plans can be read from standard input.")
    difference = plan_difference(read_plan_file(before).plan, read_plan_file(after).plan)
    if invocation.json:
        write_json(difference.to_json())
    else:
        show(safe_text(str(difference)))
