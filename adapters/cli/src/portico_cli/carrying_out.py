"""Carrying something out as every command does: shown while it goes on, asked about first, told at its end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import click

from portico_cli.output import write_json

if TYPE_CHECKING:
    from rich.console import RenderableType

    from portico.kernel import Kernel
    from portico.plans.task import Emit
    from portico.ports.search_index import IndexReport
    from portico.pursuit import Pursuit
    from portico.pursuits.journal import StartedStep
    from portico_cli.invocation import Invocation
    from portico_cli.options import PursuitOptions
    from portico_cli.status_line import StatusLine

__all__ = ["Ended", "carry_out", "tell_and_exit"]


@dataclass(frozen=True, slots=True)
class Ended:
    """A pursuit that came to its end, with what there is to say of it that the kernel knows no more once closed."""

    pursuit: Pursuit
    uncertain: Mapping[str, StartedStep]
    """The steps of which nobody knows whether they happened, by id."""
    resumable: bool
    measured: bool = True
    """Whether the pursuit knows what it used; a journal does not tell."""


async def carry_out(
    invocation: Invocation,
    kernel: Kernel,
    options: PursuitOptions,
    line: StatusLine,
    pursue: Callable[[Emit], Awaitable[Pursuit]],
    *,
    remarks: Iterable[RenderableType] = (),
) -> Ended:
    """Await what ``pursue`` makes, show its events, and ask who is there before what the options say.

    ``remarks`` are shown first, where somebody is there.
    """
    from portico_cli.approvals import add_approvals

    with line:
        person = add_approvals(
            kernel,
            invocation,
            line.quiet,
            plans=options.approve,
            effects=options.approve_effects,
            yes=options.yes,
        )
        if person is not None:
            with line.quiet():
                for remark in remarks:
                    person.show(remark)
        pursuit = await _noted(invocation, kernel, line, pursue)
    return Ended(pursuit, await _uncertain_steps(kernel, pursuit), resumable=kernel.run_store is not None)


def tell_and_exit(invocation: Invocation, ended: Ended, reports: Mapping[str, IndexReport] | None = None) -> NoReturn:
    """Tell people or programs how a pursuit ended, with the ``reports`` of what was indexed for it, and exit."""
    from portico_cli.pursuits import exit_code, pursuit_to_json, show_pursuit

    if invocation.json:
        from portico_cli.reports import report_to_json

        made = pursuit_to_json(ended.pursuit, ended.uncertain)
        made |= {} if ended.measured else {"usage": None}
        if reports is not None:
            made["indexes"] = {name: report_to_json(report) for name, report in reports.items()}
        write_json(made)
    else:
        show_pursuit(ended.pursuit, reports or {}, ended.uncertain, resumable=ended.resumable)
    click.get_current_context().exit(exit_code(ended.pursuit))


async def _noted(
    invocation: Invocation, kernel: Kernel, emit: Emit, pursue: Callable[[Emit], Awaitable[Pursuit]]
) -> Pursuit:
    """Await a pursuit, and take note of its run for whoever has to say how it is gone on with, when it breaks off."""
    from contextlib import suppress

    from portico.errors import PorticoError, StepFailed
    from portico.plans.task import Event, Resumed, Started

    run: str | None = None

    def heard(event: Event) -> None:
        nonlocal run
        if isinstance(event, Started | Resumed):
            run = event.run
        emit(event)

    try:
        return await pursue(heard)
    except BaseException as error:
        if run is not None and kernel.run_store is not None:
            with suppress(PorticoError):
                if await kernel.run_store.read(run):
                    invocation.run = run
            if isinstance(error, StepFailed):
                invocation.failed = error.step
        raise


async def _uncertain_steps(kernel: Kernel, pursuit: Pursuit) -> Mapping[str, StartedStep]:
    """Return the steps of which nobody knows whether they happened, by id; none where the pursuit ended otherwise."""
    from portico.pursuit import Held
    from portico.pursuits.journal import RunState

    if kernel.run_store is None or not (isinstance(pursuit.outcome, Held) and pursuit.outcome.uncertain):
        return {}
    state = RunState.of(await kernel.run_store.read(pursuit.run))
    return {step: state.started[step] for step in state.uncertain}
