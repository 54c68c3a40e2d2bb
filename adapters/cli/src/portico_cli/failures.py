"""From an exception to one message and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from shlex import quote

import click

from portico.errors import ConfigurationError, PluginError, PorticoError, RunNotFound, UnsupportedOption
from portico_cli.invocation import Invocation, short_name
from portico_cli.show.output import OutputFailed, plain, write_json

DONE, FAILED, MISUSED, INFEASIBLE, HELD, INTERRUPTED = 0, 1, 2, 3, 4, 130


class Misused(click.ClickException):
    """A command was asked for something that makes no sense. The message is complete, so no usage follows."""

    exit_code = MISUSED


class RunFailed(click.ClickException):
    """A run that was followed did not end as it should. The message is complete."""

    exit_code = FAILED


def report(error: BaseException, invocation: Invocation) -> int:
    """Write an error as one message, or with ``--json`` as an object, and return the exit code."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.ctx.get_help())
        return MISUSED
    if isinstance(error, click.Abort | KeyboardInterrupt):
        kind, message, code = "Interrupted", f"Interrupted.{_next_command(invocation)}", INTERRUPTED
        if invocation.updating:
            message += " The index is good; the next run continues where this one stopped."
        shown = message
    else:
        kind, message, code = describe_error(error)
        write_traceback(error, invocation)
        if isinstance(error, click.UsageError) and error.ctx is not None and not invocation.json:
            message += f"\n{error.ctx.get_usage()}\nTry `{error.ctx.command_path} --help`."
        colour = sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        shown = f"{click.style('Error:', fg='red', bold=True) if colour else 'Error:'} {plain(message)}"
        if advice := _next_command(invocation).lstrip():
            shown += f"\n{advice}"
    if invocation.json and not isinstance(error, OutputFailed):
        run = {"run": invocation.run} if invocation.run else {}
        body = {"error": {"type": kind, "message": plain(message), **run}}
        write_json(body, indent=None if invocation.lines else 2)
    else:
        write_error(shown)
    return code


def write_traceback(error: BaseException, invocation: Invocation) -> None:
    """Write the traceback of an error to standard error if ``--debug`` or PORTICO_DEBUG asks for it."""
    if invocation.debug or os.environ.get("PORTICO_DEBUG", "") not in ("", "0"):
        write_error(plain("".join(traceback.format_exception(error)).rstrip()))


def describe_error(error: BaseException) -> tuple[str, str, int]:
    """Return an error's kind, its message, and its exit code."""
    kind = type(error).__name__
    if isinstance(error, click.ClickException):
        message = error.format_message()
        return kind, message if message.endswith((".", "?", "!", ")")) else f"{message}.", error.exit_code
    if isinstance(error, PorticoError | OutputFailed):
        # A note is another failure: another source that failed too, a service that could not be closed.
        message = "\n".join([str(error), *getattr(error, "__notes__", ())])
        misused = isinstance(error, ConfigurationError | PluginError | UnsupportedOption | RunNotFound)
        return kind, message, MISUSED if misused else FAILED
    first_line = str(error).strip().partition("\n")[0]
    what = f"{kind}: {first_line}" if first_line else kind
    hint = "Run again with --debug to see where; `portico doctor` looks at what is installed."
    return kind, f"Something went wrong that should not: {what}\n{hint}", FAILED


def _next_command(invocation: Invocation) -> str:
    if invocation.run is None:
        return ""
    name = short_name(invocation.run)
    if invocation.submitted:
        return f" The run continues without this command; `portico runs {name}` shows how far it is."
    if not invocation.resumable:
        return ""
    if invocation.failed is not None:
        return f" `portico resume {name} --retry {quote(plain(invocation.failed))}` tries the step again."
    return f" `portico resume {name}` continues the run."


def write_error(text: str) -> None:
    """Write a line to standard error. If that is closed, only the exit code tells of the error."""
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except OSError:
        return
