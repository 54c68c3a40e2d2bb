"""Carry out a run in this process: show its events, and ask the person what is to be asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from portico.errors import PorticoError, StepFailed
from portico.plans import Emit, Event, RunEvent
from portico.plugins import RunState
from portico_cli.show.output import show_errors
from portico_cli.terminal.person import add_approvals
from portico_cli.terminal.progress import Progress

if TYPE_CHECKING:
    from portico import FlowReview, Kernel, Run
    from portico_cli.invocation import Invocation, RunOptions


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that ended; ``uncertain`` has its steps of which it is not known whether they happened, by id.

    ``measured`` is false if the token usage is not known, because the run was read from the journal. ``asks`` says that
    the run waits for a person to agree to a flow, and none could be asked.
    """

    run: Run
    uncertain: Mapping[str, Any]
    resumable: bool
    measured: bool = True
    asks: bool = False


async def carry_out(
    invocation: Invocation,
    kernel: Kernel,
    options: RunOptions,
    start: Callable[[Emit], Awaitable[Run]],
    *,
    idle: str = "Thinking…",
    remarks: Iterable[RenderableType] = (),
) -> Ended:
    """Await the run that ``start`` begins, show its events, and ask the person as the options say.

    ``remarks`` are shown to the person first. If the run breaks off, ``invocation`` gets what resumes it.
    """
    from portico import Paused

    store, name = kernel.run_store, ""
    with Progress(idle) as progress:
        person = add_approvals(kernel, invocation, options, progress.quiet)
        asks = False

        async def absent(review: FlowReview) -> bool:
            nonlocal asks
            asks = True
            return False

        if person is None:
            kernel.approve_flows(absent)
        if person is not None:
            person.knows_flows = bool(remarks)
            with progress.quiet():
                show_errors(*remarks)

        def emit(event: RunEvent) -> None:
            nonlocal name
            if isinstance(event, Event.RunStarted):
                name = event.run
            progress(event)

        try:
            run = await start(emit)
        except BaseException as error:
            if name and store is not None:
                with suppress(PorticoError):
                    entries = await store.read(name)
                    invocation.run = name if entries else None
                    invocation.resumable = bool(entries) and RunState.of(entries).resumable
                invocation.failed = error.step if isinstance(error, StepFailed) else None
            raise
    uncertain: Mapping[str, Any] = {}
    if store is not None and isinstance(run.outcome, Paused) and run.outcome.uncertain:
        state = RunState.of(await store.read(run.name))
        uncertain = {step: state.started[step] for step in state.uncertain}
    return Ended(run, uncertain, resumable=store is not None, asks=asks)
