"""What a run was begun with: the journal has it, so that nobody needs to say it again to go on."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from portico_cli.failures import Misused
from portico_host.typed_words import quoted

if TYPE_CHECKING:
    from portico_cli.invocation import Invocation

__all__ = ["Begun", "begun_with", "origin_of", "run_words"]


@dataclass(frozen=True, slots=True)
class Begun:
    """A run's name, the folder that it was begun in, and the options that it was begun with."""

    run: str
    folder: str = ""
    docs: tuple[Path, ...] = ()
    names: tuple[str, ...] = ()
    chat: str | None = None


def origin_of(docs: Sequence[Path], names: Sequence[str], chat: str | None) -> dict[str, Any]:
    """Return what a run is begun with as JSON values; paths are absolute, for the next may be called elsewhere."""
    given = {"docs": [str(path.resolve()) for path in docs], "sources": list(names), "chat": chat}
    return {"folder": os.getcwd(), **{name: value for name, value in given.items() if value}}  # noqa: PTH109 - a text


def run_words(file: Path, origin: Mapping[str, Any]) -> str:
    """Return the command that runs the plan of a file with what it was made for: its functions are of those sources.

    >>> run_words(Path("plan.json"), {"sources": ["wiki", "my notes"]})
    'portico run plan.json --source wiki --source "my notes"'
    """
    begun = _begun("", origin)
    words = ["portico", "run", str(file)]
    for path in begun.docs:
        words += ["--docs", str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)]
    for name in begun.names:
        words += ["--source", name]
    if begun.chat is not None:
        words += ["--chat", begun.chat]
    return " ".join(map(quoted, words))


async def begun_with(invocation: Invocation, wanted: str) -> Begun:
    """Find a run and what it was begun with. Raises ``Misused`` where there is no such run, or no journal."""
    import portico_host
    from portico.ports.run_store import RunStore
    from portico_cli.job_places import queue_of
    from portico_cli.run_listing import find_any
    from portico_cli.run_names import find_run, no_journal

    application = portico_host.load(invocation.config)
    async with application.services(()) as services:
        if not services.names(RunStore):
            raise no_journal(application)
        store = services.get(RunStore)
        try:
            run = await find_run(store, wanted)
        except Misused:
            submitted = await find_any(store, queue_of(services), wanted)
            raise Misused(
                f"The run {submitted} was submitted and has not begun, so there is nothing to go on with. "
                f"`portico runs {submitted}` shows how it is."
            ) from None
        entries = await store.read(run)
    origin = entries[0].get("origin") if entries else None
    # Another application wrote it, perhaps: what is not of our form says nothing.
    return _begun(run, origin) if isinstance(origin, Mapping) else Begun(run)


def _begun(run: str, origin: Mapping[str, Any]) -> Begun:
    folder, chat = origin.get("folder"), origin.get("chat")
    return Begun(
        run,
        folder if isinstance(folder, str) else "",
        tuple(map(Path, _texts(origin.get("docs")))),
        _texts(origin.get("sources")),
        chat if isinstance(chat, str) else None,
    )


def _texts(value: object) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()
