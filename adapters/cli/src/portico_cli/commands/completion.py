"""`portico completion`: what a shell runs to complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from portico_cli.invocation import common_options


@click.command(name="completion")
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
@common_options
def command(shell: str) -> None:
    """Print the script that completes commands and options in a shell.

    SHELL is bash, zsh or fish. For bash, add to ~/.bashrc: eval "$(portico completion bash)"
    """
    made = get_completion_class(shell)
    assert made is not None  # noqa: S101 - click has these three
    click.echo(made.source_template % made(click.Command("portico"), {}, "portico", "_PORTICO_COMPLETE").source_vars())
