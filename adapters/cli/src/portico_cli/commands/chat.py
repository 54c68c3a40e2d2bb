"""`portico chat`: a conversation in the terminal."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from portico_cli.arguments import clean_argument, read_bytes
from portico_cli.failures import Misused
from portico_cli.invocation import (
    Invocation,
    chat_option,
    common_options,
    docs_option,
    file_option,
    json_lines_option,
    overrides_of,
    pass_invocation,
    source_option,
    trace_option,
)
from portico_cli.loops import keep_open, run_async
from portico_cli.show.layout import count_words
from portico_cli.sources import Chosen, choose_sources, refuse_mistakes

if TYPE_CHECKING:
    from portico_cli.conversation import ThreadFile

_MAXIMUM_BYTES = 1_000_000


@click.command(name="chat")
@docs_option
@source_option
@chat_option
@click.option("--instructions", metavar="TEXT|@FILE", help="What the agent is and does, in words for the model.")
@file_option("--thread", "thread_file", help="Continue the conversation in this file, and keep it there.")
@click.option(
    "--yes",
    is_flag=True,
    help="Do not ask before a function with effects is called. It does not agree to flows of an enforced [policy].",
)
@trace_option
@json_lines_option("Write one JSON object for each answer, on a line, and nothing else.")
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    *,
    docs: tuple[Path, ...],
    names: tuple[str, ...],
    chat: str | None,
    instructions: str | None,
    thread_file: Path | None,
    yes: bool,
    trace: Path | None,
) -> None:
    """Talk with an agent that has your sources and functions.

    Answers are shown while they are written; /help lists the commands. If the input is not a terminal, each line is
    a message.
    """
    from portico_cli.conversation import ThreadFile

    invocation.lines = True
    words = clean_argument(instructions or "").strip()
    if words.startswith("@") and len(words) > 1:
        content = read_bytes(words[1:], _MAXIMUM_BYTES, f"--instructions: {words[1:]}")
        words = content.decode("utf-8-sig", "replace").strip()
    chosen = choose_sources(invocation, docs, names, overrides_of(None, chat, trace))
    refuse_mistakes(chosen.application)
    file = None if thread_file is None else ThreadFile(thread_file)
    click.get_current_context().exit(_talk(invocation, chosen, words, file, yes=yes))


def _talk(invocation: Invocation, chosen: Chosen, instructions: str, file: ThreadFile | None, *, yes: bool) -> int:
    """Open the kernel, update the indexes, talk, and close everything; return the exit code."""
    from portico import Thread
    from portico_cli.conversation import Conversation, Grounding, TurnTaker
    from portico_cli.show.chat import JsonScreen, PlainScreen, TerminalScreen
    from portico_cli.terminal.lines import edit_lines, read_lines
    from portico_cli.terminal.person import ask_before_effects, person_at_terminal
    from portico_cli.terminal.progress import update_sources

    thread = (file.load() if file is not None else None) or Thread()
    at_terminal = not invocation.json and sys.stdin.isatty() and sys.stdout.isatty()
    with asyncio.Runner() as runner, keep_open(runner, chosen.application.kernel(chosen.sources)) as kernel:
        services = kernel.services
        assert services is not None  # noqa: S101 - a kernel of the host has services
        run_async(lambda: update_sources(invocation, services, chosen), runner)
        grounding = Grounding(kernel, chosen.sources)
        if not chosen.sources and not getattr(grounding.service.capabilities, "language_model", True):
            raise Misused(
                f"The chat service {grounding.service.name!r} only quotes your sources, and there is none. "
                "Give `--docs FOLDER`, or name a language model under [chat] of portico.toml."
            )
        screen = TerminalScreen(sys.stdout) if at_terminal else JsonScreen() if invocation.json else PlainScreen()
        person = person_at_terminal(kernel, invocation, screen.quiet)
        kernel.approve_flows(None if person is None else person.about_flow)
        if not yes:
            kernel.middleware.function.append(ask_before_effects(person))
        if at_terminal:
            words = f"You talk with {grounding.service.name}. /help lists commands, Ctrl-D leaves."
            words += f" Sources: {', '.join(chosen.sources)}." if chosen.sources else ""
            words += f" The conversation has {count_words(len(thread.turns), 'turn')} already." if thread.turns else ""
            screen.note(words)
        said = [message.text for message in thread.messages if message.role == "user"]
        conversation = Conversation(
            runner, TurnTaker(grounding.agent(instructions)), thread, grounding, screen, file, at_terminal
        )
        try:
            return conversation.talk(edit_lines(said) if at_terminal else read_lines())
        finally:
            screen.close()
