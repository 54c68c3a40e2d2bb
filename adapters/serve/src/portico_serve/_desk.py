"""What the routes of the server work with: the application, its kernel, the runs and the conversations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from portico_serve._chats import Chats
from portico_serve._runs.runs import Runs

if TYPE_CHECKING:
    from portico import Kernel
    from portico_host import Application


@dataclass(slots=True)
class Desk:
    """One kernel for the life of the server, and what is done with it; ``trace`` is the file of spans, if one is."""

    application: Application
    kernel: Kernel
    runs: Runs
    chats: Chats
    sources: tuple[str, ...]
    trace: Path | None


@asynccontextmanager
async def open_desk(
    application: Application, kernel: Kernel, sources: Sequence[str], trace: Path | None = None
) -> AsyncIterator[Desk]:
    """Make the runs and the conversations of a kernel; at the end those are cancelled that are under way.

    Without a ``trace``, that of the configuration counts.
    """
    trace = trace or _configured_trace(application)
    runs = Runs(kernel, sources, trace)
    chats = Chats(kernel, sources)
    try:
        yield Desk(application, kernel, runs, chats, tuple(sources), trace)
    finally:
        try:
            await chats.aclose()
        finally:
            await runs.aclose()


def _configured_trace(application: Application) -> Path | None:
    found = [each.value for each in application.settings() if each.key == "observers.opentelemetry.file"]
    return application.configuration.folder / found[0] if found and isinstance(found[0], str) else None
