"""From an exception to one message and an exit code."""

from __future__ import annotations

import os
import sys
import traceback

import click

from portico.errors import ConfigurationError, PluginError, PorticoError, RunNotFound, UnsupportedOption
from portico_cli.invocation import Invocation, short_name
from portico_cli.show.output import OutputFailed, plain, write_json, write_json_line

DONE, FAILED, MISUSED, INFEASIBLE, HELD, INTERRUPTED = 0, 1, 2, 3, 4, 130


class Misused(click.ClickException):
    """A command was asked for something that cannot be meant; the message says it all, so no usage follows."""

    exit_code = MISUSED


def report(error: BaseException, invocation: Invocation) -> int:
    """Tell of an error where it belongs, and return the exit code.

    With ``--json`` that is an object on standard output. A traceback is shown only when asked for.
    """
    if isinstance(error, click.Abort | KeyboardInterrupt):
        return _interrupted(invocation)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.ctx.get_help())
        return MISUSED
    kind, message, code = described(error)
    write_traceback(error, invocation)
    resumed = _resumed_by(invocation)
    if invocation.json and not isinstance(error, OutputFailed):
        run = {"run": invocation.run} if invocation.run else {}
        _write_object({"error": {"type": kind, "message": plain(message), **run}}, invocation)
        return code
    if isinstance(error, click.UsageError) and error.ctx is not None:
        usage = error.ctx.get_usage()
        message += f"\n{usage}\nTry `{error.ctx.command_path} --help`."
    write_error(f"{_red('Error:')} {plain(message)}{resumed}")
    return code


def write_traceback(error: BaseException, invocation: Invocation) -> None:
    """Write the traceback of an error to standard error, where somebody asked for it."""
    if invocation.debug or os.environ.get("PORTICO_DEBUG", "") not in ("", "0"):
        write_error(plain("".join(traceback.format_exception(error)).rstrip()))


def described(error: BaseException) -> tuple[str, str, int]:
    """Return an error's kind, what there is to say of it, and its exit code."""
    kind = type(error).__name__
    if isinstance(error, click.ClickException):
        return kind, _sentence(error.format_message()), error.exit_code
    if isinstance(error, PorticoError | OutputFailed):
        # A note is what went wrong beside it: another source that failed too, a service that could not be closed.
        message = "\n".join([str(error), *getattr(error, "__notes__", ())])
        misused = isinstance(error, ConfigurationError | PluginError | UnsupportedOption | RunNotFound)
        return kind, message, MISUSED if misused else FAILED
    first_line = str(error).strip().partition("\n")[0]
    what = f"{kind}: {first_line}" if first_line else kind
    hint = "Run again with --debug to see where; `portico doctor` looks at what is installed."
    return kind, f"Something went wrong that should not: {what}\n{hint}", FAILED


def _interrupted(invocation: Invocation) -> int:
    message = f"Interrupted.{_resumed_by(invocation).replace(chr(10), ' ')}"
    if invocation.updating:
        message += " The index is good; the next run continues where this one stopped."
    if invocation.json:
        run = {"run": invocation.run} if invocation.run else {}
        _write_object({"error": {"type": "Interrupted", "message": message, **run}}, invocation)
    else:
        write_error(message)
    return INTERRUPTED


def _write_object(value: object, invocation: Invocation) -> None:
    (write_json_line if invocation.lines else write_json)(value)


def _resumed_by(invocation: Invocation) -> str:
    if invocation.run is None:
        return ""
    name = short_name(invocation.run)
    if invocation.submitted:
        return f"\nThe run goes on without this command; `portico runs {name}` shows how far it is."
    if invocation.failed is not None:
        return f"\n`portico resume {name} --retry {plain(invocation.failed)}` tries it again, and nothing that is done."
    return f"\n`portico resume {name}` goes on from there."


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!", ")")) else f"{text}."


def _red(text: str) -> str:
    colour = sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return click.style(text, fg="red", bold=True) if colour else text


def write_error(text: str) -> None:
    """Write a line to standard error."""
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except OSError:
        # Standard error is closed, and there is no other place to say so; the exit code tells.
        return
