"""One run of `portico chat`: everything is opened, the conversation is had, everything is closed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from portico_cli.loop_runs import KeptOpen, run_on

if TYPE_CHECKING:
    from portico.agents.thread import Thread
    from portico.kernel import Kernel
    from portico.ports.search_index import IndexReport
    from portico_cli.chat_screens import Screen
    from portico_cli.grounded import Grounds
    from portico_cli.invocation import Invocation
    from portico_cli.line_reader import LineReader
    from portico_cli.sources import Chosen
    from portico_cli.thread_files import ThreadFile

__all__ = ["ChatSession"]

_NAME = "portico"


@dataclass(frozen=True, slots=True)
class ChatSession:
    """One run of the command: what it was given, and the conversation that it has."""

    invocation: Invocation
    chosen: Chosen
    instructions: str
    file: ThreadFile | None
    yes: bool

    def run(self, thread: Thread | None) -> int:
        """Open the kernel, bring the indexes up to date, talk, and close it all; return the exit code."""
        from portico.agents.thread import Thread

        thread = Thread() if thread is None else thread
        person_types = not self.invocation.json and sys.stdin.isatty() and sys.stdout.isatty()
        with ExitStack() as stack:
            runner = stack.enter_context(asyncio.Runner())
            kernel = stack.enter_context(KeptOpen(runner, self.chosen.application.kernel(self.chosen.sources)))
            reports = run_on(runner, lambda: self._update(kernel))
            return self._talk(runner, kernel, thread, reports, person_types=person_types)

    async def _update(self, kernel: Kernel) -> Mapping[str, IndexReport]:
        from portico_cli.progress import update_sources

        assert kernel.services is not None  # noqa: S101 - a kernel of the host has services
        return await update_sources(self.invocation, kernel.services, self.chosen)

    def _talk(
        self,
        runner: asyncio.Runner,
        kernel: Kernel,
        thread: Thread,
        reports: Mapping[str, IndexReport],
        *,
        person_types: bool,
    ) -> int:
        from portico.agents.agent import ChatAgent
        from portico_cli.conversation import Conversation
        from portico_cli.grounded import Grounds

        grounds = Grounds(kernel, self.chosen.sources)
        screen, lines = self._ends(kernel, thread, person_types=person_types)
        agent = ChatAgent(
            _NAME,
            instructions=grounds.instructions(self.instructions),
            kernel=kernel,
            context_providers=grounds.providers,
            functions=grounds.functions,
        )
        if person_types:
            screen.note(self._greeting(grounds, thread, reports))
        conversation = Conversation(
            runner,
            agent,
            thread,
            grounds=grounds,
            screen=screen,
            lines=lines,
            file=self.file,
            commands=person_types,
        )
        try:
            return conversation.go_on()
        finally:
            conversation.close()

    def _ends(self, kernel: Kernel, thread: Thread, *, person_types: bool) -> tuple[Screen, LineReader]:
        """Return what shows the conversation and what reads it, and have whoever is there asked before effects."""
        from contextlib import nullcontext

        from portico_cli.chat_screens import JsonScreen, PlainScreen, TerminalScreen
        from portico_cli.effects_of_calls import ask_before_effects
        from portico_cli.line_reader import PipedLines, TerminalLines
        from portico_cli.person import Person, is_there
        from portico_cli.slash_commands import COMMANDS

        screen: Screen
        quiet: Callable[[], Any] = nullcontext
        lines: LineReader
        if person_types:
            screen = terminal = TerminalScreen(sys.stdout)
            quiet = terminal.quiet
            words = [name.partition(" ")[0] for name in COMMANDS]
            lines = TerminalLines(words, [said.text for said in thread.messages if said.role == "user"])
        else:
            screen = JsonScreen() if self.invocation.json else PlainScreen()
            lines = PipedLines()
        if not self.yes:
            person = Person(kernel, quiet) if is_there(self.invocation) else None
            kernel.middleware.function.append(ask_before_effects(person))
        return screen, lines

    def _greeting(self, grounds: Grounds, thread: Thread, reports: Mapping[str, IndexReport]) -> str:
        words = f"You talk with {grounds.service.name}."
        if self.chosen.sources:
            has = [_source_words(name, reports.get(name)) for name in self.chosen.sources]
            words += f" Source{'' if len(has) == 1 else 's'}: {', '.join(has)}."
        if functions := len(grounds.offered()):
            words += f" {functions:,} function{'' if functions == 1 else 's'}."
        words += " /help lists commands, Ctrl-D leaves."
        if thread.turns:
            turns = len(thread.turns)
            words += f" The conversation goes on after {turns} turn{'' if turns == 1 else 's'}."
        elif self.file is not None:
            words += f" The conversation is kept in {self.file.path}."
        return words


def _source_words(name: str, report: IndexReport | None) -> str:
    if report is None:
        return name
    return f"{name} ({report.documents:,} document{'' if report.documents == 1 else 's'})"
