"""`portico eval`: run cases by the configured application, and report what came of them."""

from __future__ import annotations

import json
import math
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from portico_cli.arguments import write_text
from portico_cli.failures import DONE, FAILED, Misused, write_error
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
    trace_option,
)
from portico_cli.loops import run_async
from portico_cli.runs import origin_of
from portico_cli.show.output import show, write_json
from portico_cli.sources import choose_sources, refuse_mistakes, refuse_nothing
from portico_cli.terminal.progress import update_sources

if TYPE_CHECKING:
    from portico import Kernel, PlanReview

_count_option = partial(click.option, metavar="N", type=click.IntRange(1), show_default=True)


@click.command(name="eval")
@click.argument("cases")
@docs_option
@source_option
@planner_option
@chat_option
@_count_option("--jobs", default=4, help="Run N cases at a time.")
@_count_option("--repeat", "repeats", default=1, help="Run each case N times, for means with a standard deviation.")
@click.option("--judge", "judged", is_flag=True, help="Let a model judge whether answers state the facts.")
@click.option("--judge-chat", metavar="NAME", help="Let this chat service judge, instead of the one that answers.")
@file_option("--against", help="Compare with this earlier report; a case that failed there may fail.")
@click.option(
    "--tolerance", metavar="SHARE", type=click.FloatRange(0, 1), help="With --against: let no share fall by more."
)
@file_option("--save", help="Write the report to this file, and each result beside it.")
@click.option(
    "--resume", is_flag=True, help="With --save: keep results while case, documents and settings are the same."
)
@file_option("--junit", help="Write the report to this file as JUnit's XML.")
@file_option("--plot", help="Draw the figures into this file, as SVG.")
@click.option("--yes", is_flag=True, help="Let plans with effects run; otherwise they wait, and count as a question.")
@trace_option
@json_option
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    *,
    cases: str,
    docs: tuple[Path, ...],
    names: tuple[str, ...],
    planner: str | None,
    chat: str | None,
    jobs: int,
    repeats: int,
    judged: bool,
    judge_chat: str | None,
    against: Path | None,
    tolerance: float | None,
    save: Path | None,
    resume: bool,
    junit: Path | None,
    plot: Path | None,
    yes: bool,
    trace: Path | None,
) -> None:
    """Run the cases in the file CASES by your application, and report what came of them.

    CASES is JSON lines, a list in JSON, or a file .toml; `-` reads JSON from standard input. A case has a question,
    and what must come of it: sources, facts, a plan, limits, or that there is no answer. The exit code is 1 if a case
    failed; with --against, if a case failed that did not fail before.
    """
    from portico_eval import drawing
    from portico_eval.cases import read_cases
    from portico_eval.judging import make_judge, require_extra
    from portico_eval.report import compare, is_worse, make_report, read_report
    from portico_eval.running import Evaluation
    from portico_eval.showing import report_lines

    if resume and save is None:
        raise click.UsageError("--resume goes with --save FILE: the results are beside it.")
    if tolerance is not None and (against is None or math.isnan(tolerance)):
        raise click.UsageError("--tolerance is a number, and goes with --against FILE.")
    judged = judged or judge_chat is not None
    if judged:
        require_extra()
    read = read_cases(cases)
    results = None if save is None else save.with_suffix(".runs.jsonl")
    for file in filter(None, (save, results, junit, plot)):
        _refuse_file(file, Path(cases))
    earlier = None if against is None else read_report(against)
    chosen = choose_sources(invocation, docs, names, overrides_of(planner, chat, trace))
    refuse_mistakes(chosen.application)
    refuse_nothing(chosen, "eval CASES")
    settings = [chosen.application.configuration.values, chosen.sources, yes, judged, judge_chat]
    evaluation = Evaluation(read, repeats, jobs, settings)

    async def work() -> None:
        async with chosen.application.kernel(chosen.sources) as kernel:
            assert kernel.services is not None  # noqa: S101 - a kernel of the host has services
            kernel.origin = origin_of(docs, names, chat)
            judge = make_judge(kernel, judge_chat) if judged else None
            reports = await update_sources(invocation, kernel.services, chosen)
            settings.append({name: report.revision for name, report in reports.items()})
            if results is not None:
                evaluation.keep_in(results, resume=resume)
            if not yes:
                _hold_effects(kernel)
            await evaluation.run(kernel, judge)

    try:
        run_async(work)
    except KeyboardInterrupt:
        if evaluation.results and not invocation.json:
            show(*report_lines(make_report(read, evaluation.results, repeats)))
        if evaluation.file is not None:
            write_error(f"The results so far are in {evaluation.file}: the same command with --resume continues.")
        raise
    report = make_report(read, evaluation.results, repeats)
    if earlier is not None:
        report["against"] = compare(report, earlier)
    if save is not None:
        write_text(save, json.dumps(report, indent=1))
    if junit is not None:
        write_text(junit, drawing.junit(report, Path(cases).stem))
    if plot is not None:
        write_text(plot, drawing.plot(report))
    if invocation.json:
        write_json(report)
    else:
        show(*report_lines(report))
    click.get_current_context().exit(FAILED if is_worse(report, tolerance) else DONE)


def _refuse_file(file: Path, cases: Path) -> None:
    """Raise ``Misused`` for a file that cannot be written, before the results are there."""
    if file.resolve() == cases.resolve():
        raise Misused(f"{file} has the cases, and would be overwritten. Name another file.")
    if not (os.access(file, os.W_OK) or os.access(file.resolve().parent, os.W_OK)):
        raise Misused(f"{file} cannot be written: its folder takes no files. Name another file.")


def _hold_effects(kernel: Kernel) -> None:
    async def decide(review: PlanReview) -> bool | str:
        return "its plan may have effects; --yes lets it run" if kernel.may_have_effects(review.plan) else True

    kernel.approve_plans(decide)
