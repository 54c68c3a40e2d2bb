"""A conversation with an agent: message by message, until there is no more."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

from portico_cli.chat_screens import Screen, TerminalScreen
from portico_cli.failures import DONE, FAILED, Misused
from portico_cli.line_reader import LineReader
from portico_cli.loop_runs import run_on
from portico_cli.output import OutputClosed, OutputFailed, show
from portico_cli.turn_account import TurnAccount
from portico_host.typed_words import quoted

if TYPE_CHECKING:
    from portico.agents.agent import ChatAgent
    from portico.agents.thread import Thread
    from portico_cli.grounded import Grounds
    from portico_cli.thread_files import ThreadFile

__all__ = ["Conversation"]


class Conversation:
    """Read messages, have each answered, and show what comes of it.

    The event loop runs while a turn is taken and at no other time: what is typed is edited in between. A turn that
    is stopped or fails leaves the thread as it was, and the conversation goes on.
    """

    def __init__(
        self,
        runner: asyncio.Runner,
        agent: ChatAgent,
        thread: Thread,
        *,
        grounds: Grounds,
        screen: Screen,
        lines: LineReader,
        file: ThreadFile | None,
        commands: bool,
    ) -> None:
        self._runner = runner
        self._agent = agent
        self._thread = thread
        self._grounds = grounds
        self._screen = screen
        self._lines = lines
        self._file = file
        self._commands = commands
        self._last: TurnAccount | None = None
        self._task: asyncio.Task[object] | None = None
        self._room: int | None = None
        """How many tokens of what was said before are sent; None for all."""
        self._code = DONE

    def go_on(self) -> int:
        """Take turns until the messages end, and return the exit code: 1 where something failed unseen by anybody."""
        while True:
            try:
                text = self._lines.read()
            except Misused as error:
                self._fail(error)
                continue
            if text is None:
                break
            if not text.strip():
                continue
            if self._commands:
                from portico_cli.slash_commands import parsed_command

                command = parsed_command(text)
                if command is not None:
                    if command[0] == "/quit":
                        break
                    self._obey(*command)
                    continue
                text = text.replace("//", "/", 1) if text.lstrip().startswith("//") else text
            self._answer(text)
        # A person has seen what failed.
        return DONE if self._commands else self._code

    def _answer(self, text: str) -> None:
        """Take one turn."""
        self._screen.begin()
        try:
            account = self._fitting(text)
        except KeyboardInterrupt:
            if not self._commands or self._task is None or not self._task.done():
                # Nobody is there to go on; or who asked again did not wait for the turn to end, which goes on still.
                raise
            self._screen.stopped()
            return
        except (OutputClosed, OutputFailed):
            raise
        except Exception as error:  # noqa: BLE001 - whatever a turn fails of, the conversation goes on
            self._fail(error)
            return
        self._last = account
        self._grounds.judge(self._thread, account)
        self._screen.end(account)
        self._save()

    def _fitting(self, text: str) -> TurnAccount:
        """Take a turn; where the model cannot take so long a conversation, without its oldest turns."""
        from portico.chat import Message
        from portico.errors import ContextOverflow

        new = self._thread.count_tokens(Message.of("user", text))
        while True:
            account = TurnAccount()
            self._thread.budget = None if self._room is None else max(new + self._room, 1)
            try:
                run_on(self._runner, lambda: self._taken(text, account))  # noqa: B023 - it runs at once
            except ContextOverflow:
                # What was called may have had effects: it is not called again unasked.
                if account.tools or not self._shorten():
                    raise
                self._screen.note("The conversation is longer than the model can take; its oldest turns are left out.")
                self._screen.begin()
            else:
                return account

    def _shorten(self) -> bool:
        """Leave two thirds of the room to what was said before; False where there is nothing to leave out."""
        said = sum(map(self._thread.count_tokens, self._thread.messages))
        left = said if self._room is None else min(said, self._room)
        self._room = left * 2 // 3
        return left > 0

    async def _taken(self, text: str, account: TurnAccount) -> None:
        from portico.agents.replies import AgentReply
        from portico.turns import ToolFinished

        self._task = asyncio.current_task()
        async with aclosing(self._agent.stream(text, self._thread)) as events:
            async for event in events:
                if isinstance(event, AgentReply):
                    account.reply = event
                else:
                    if isinstance(event, ToolFinished):
                        account.tools.append(event)
                    self._screen.event(event)

    def _obey(self, name: str, rest: str) -> None:
        from portico_cli.slash_commands import function_lines, help_lines, unknown_command

        match name:
            case "/help":
                show(*help_lines())
            case "/functions":
                if not self._grounds.calls:
                    self._screen.note(f"The chat service {self._grounds.service.name!r} calls no functions.")
                    return
                show(*function_lines(self._grounds.offered(), self._last.selection if self._last else None))
            case "/undo":
                self._undo()
            case "/clear":
                self._thread, self._last = self._thread.branch(0), None
                self._grounds.forget()
                self._screen.note("The conversation begins anew.")
                self._save()
            case "/save":
                self._save_as(rest)
            case _:
                self._screen.note(unknown_command(name))

    def _undo(self) -> None:
        turns = self._thread.turns
        if not turns:
            self._screen.note("There is nothing to take back.")
            return
        said = next((message.text for message in turns[-1].messages if message.role == "user"), "")
        self._thread, self._last = self._thread.branch(-1, id=self._thread.id), None
        self._screen.note(f"Taken back: {' '.join(said.split())[:60]}")
        self._save()

    def _save_as(self, name: str) -> None:
        from portico.errors import PorticoError
        from portico_cli.thread_files import ThreadFile

        if not name:
            self._screen.note("Where to? /save FILE")
            return
        path = Path(name).expanduser()
        if path.exists():
            self._screen.note(f"{name} is there already. Name another file.")
            return
        try:
            ThreadFile(path).save(self._thread)
        except PorticoError as error:
            self._screen.failed(error)
        else:
            self._screen.note(f"Saved. `portico chat --thread {quoted(name)}` goes on from here.")

    def _save(self) -> None:
        from portico.errors import PorticoError

        if self._file is not None:
            try:
                self._file.save(self._thread)
            except PorticoError as error:
                self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self._code = FAILED
        self._screen.failed(error)

    def close(self) -> None:
        """Leave nothing on the screen that moves."""
        if isinstance(self._screen, TerminalScreen):
            self._screen.close()
