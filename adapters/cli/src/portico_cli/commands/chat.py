"""`portico chat`: a conversation in the terminal."""

from __future__ import annotations

from pathlib import Path

import click

from portico_cli.failures import Misused
from portico_cli.invocation import Invocation, common_options, current, pass_invocation
from portico_cli.options import chat_option, overrides_of
from portico_cli.sources import (
    choose_sources,
    docs_option,
    nothing_to_search,
    refuse_mistakes,
    source_option,
)

__all__ = ["command"]

_MAXIMUM_BYTES = 1_000_000


def _keep_json(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        current(context).json = True


@click.command(name="chat")
@docs_option
@source_option
@chat_option
@click.option("--instructions", metavar="TEXT|@FILE", help="What the agent is told to be and to do.")
@click.option(
    "--thread",
    "thread_file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Go on with the conversation in this file, and keep it there.",
)
@click.option("--yes", is_flag=True, help="Do not ask before a function with effects is called.")
@click.option(
    "--json",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_keep_json,
    help="Write one JSON object for each answer, on a line, and nothing else.",
)
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

    Answers are written as they come; /help lists what else can be said. Where the input is no terminal, each
    line is a message.
    """
    invocation.lines = True
    told = _instructions(instructions)
    chosen = choose_sources(invocation, docs, names, overrides_of(None, chat))
    refuse_mistakes(chosen.application)
    if not chosen.sources and not (chosen.application.configuration.values.get("chat") or {}).get("use"):
        raise nothing_to_search("chat")
    file = None
    thread = None
    if thread_file is not None:
        from portico_cli.thread_files import ThreadFile

        file = ThreadFile(thread_file)
        thread = file.load()
    from portico_cli.chat_session import ChatSession

    code = ChatSession(invocation, chosen, told, file, yes).run(thread)
    click.get_current_context().exit(code)


def _instructions(given: str | None) -> str:
    if given is None or not given.startswith("@") or len(given) == 1:
        from portico_cli.goal import clean_argument

        return clean_argument(given or "").strip()
    try:
        with Path(given[1:]).open("rb") as stream:
            content = stream.read(_MAXIMUM_BYTES + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise Misused(f"--instructions: {given[1:]} cannot be read: {why}.") from error
    if len(content) > _MAXIMUM_BYTES:
        raise Misused(f"--instructions: {given[1:]} has more than {_MAXIMUM_BYTES:,} bytes.")
    return content.decode("utf-8-sig", "replace").strip()
