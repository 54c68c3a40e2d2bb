"""The entry of the command line."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from portico_cli.command_table import CommandTable
from portico_cli.failures import DONE, report
from portico_cli.invocation import Invocation, root_options
from portico_cli.output import OutputClosed, use_utf8

__all__ = ["main", "portico"]


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; nothing is raised.

    0 done, 1 failed, 2 usage or configuration, 3 infeasible, 4 held, 130 interrupted.
    """
    use_utf8()
    words = list(sys.argv[1:] if arguments is None else arguments)
    invocation = Invocation(json=_wants_json(words))
    try:
        result = portico.main(args=words, prog_name="portico", standalone_mode=False, obj=invocation)
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


def _wants_json(words: Sequence[str]) -> bool:
    """Tell before the options are parsed, because parsing them may be what fails."""
    options = words[: words.index("--")] if "--" in words else words
    return "--json" in options
