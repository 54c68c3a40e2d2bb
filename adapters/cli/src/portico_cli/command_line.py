"""The command line as a whole: the root of all commands, and one run of it from its words to its exit code."""

from __future__ import annotations

from collections.abc import Sequence

import click

from portico_cli.command_table import CommandTable
from portico_cli.failures import DONE, report
from portico_cli.invocation import Invocation, root_options
from portico_cli.output import OutputClosed, use_utf8

__all__ = ["portico", "run_command"]


def _version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"portico {version('portico')}")
        context.exit()


@click.command(
    cls=CommandTable,
    name="portico",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog='Start with: portico ask "How does it work?" --docs FOLDER',
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version and exit."
)
@root_options
def portico() -> None:
    """Ask your documents, and build applications on language models."""


def run_command(words: Sequence[str], *, json: bool) -> int:
    """Run the command that the words name and return its exit code; nothing is raised.

    ``json`` is told before the options are parsed, because parsing them may be what fails.
    """
    use_utf8()
    invocation = Invocation(json=json)
    try:
        result = portico.main(args=list(words), prog_name="portico", standalone_mode=False, obj=invocation)
    except OutputClosed:
        return DONE
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else DONE if stop.code is None else 1
    except BaseException as error:  # noqa: BLE001 - the last line before the user: no traceback gets past it
        try:
            return report(error, invocation)
        except OutputClosed:
            return DONE
    return result if isinstance(result, int) else DONE
