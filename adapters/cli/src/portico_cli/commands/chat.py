"""`portico chat`: a conversation in the terminal."""

from __future__ import annotations

from pathlib import Path

import click

from portico_cli.arguments import clean_argument, read_bytes
from portico_cli.invocation import (
    Invocation,
    chat_option,
    common_options,
    docs_option,
    json_lines_option,
    overrides_of,
    pass_invocation,
    source_option,
)
from portico_cli.sources import choose_sources, nothing_to_search, refuse_mistakes
from portico_cli.thread_file import ThreadFile

_MAXIMUM_BYTES = 1_000_000


@click.command(name="chat")
@docs_option
@source_option
@chat_option
@click.option("--instructions", metavar="TEXT|@FILE", help="What the agent is and does, in words for the model.")
@click.option(
    "--thread",
    "thread_file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Continue the conversation in this file, and keep it there.",
)
@click.option("--yes", is_flag=True, help="Do not ask before a function with effects is called.")
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
) -> None:
    """Talk with an agent that has your sources and functions.

    Answers are shown while they are written; /help lists the commands. If the input is not a terminal, each line is
    a message.
    """
    from portico_cli.conversation import hold_conversation

    invocation.lines = True
    words = clean_argument(instructions or "").strip()
    if words.startswith("@") and len(words) > 1:
        content = read_bytes(words[1:], _MAXIMUM_BYTES, f"--instructions: {words[1:]}")
        words = content.decode("utf-8-sig", "replace").strip()
    chosen = choose_sources(invocation, docs, names, overrides_of(None, chat))
    refuse_mistakes(chosen.application)
    if not chosen.sources and not (chosen.application.configuration.values.get("chat") or {}).get("use"):
        raise nothing_to_search("chat")
    file = None if thread_file is None else ThreadFile(thread_file)
    click.get_current_context().exit(hold_conversation(invocation, chosen, words, file, yes=yes))
