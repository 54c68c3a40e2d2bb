"""The root command: our commands, those of other packages, and one run from words to exit code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, cast

import click

from portico.errors import PluginBroken
from portico_cli.failures import DONE, report
from portico_cli.invocation import Invocation, common_options
from portico_cli.show.output import OutputClosed, use_utf8

if TYPE_CHECKING:
    from portico_host import Command

BUILT_IN = {
    "ask": "Answer a question from your sources, with citations.",
    "chat": "Talk with an agent that has your sources and functions.",
    "plan": "Propose a plan without running it, or check one.",
    "run": "Check a plan in a file, and run it.",
    "resume": "Continue a run that paused, failed or was interrupted.",
    "runs": "List the runs of the journal, or show one.",
    "submit": "Hand goals over to workers.",
    "cancel": "Give up a run that waits for a worker or is in one.",
    "worker": "Run the goals that were submitted.",
    "index": "Build or update the index of a folder.",
    "search": "Find passages in your sources.",
    "functions": "List the functions that planners and models can call.",
    "plugins": "List the installed packages and what they offer.",
    "doctor": "Check the installation and say how to mend it.",
    "config": "Show, describe or begin a portico.toml.",
    "new": "Make your own package that works, with its tests.",
    "completion": "Print what completes commands in a shell.",
}

"""Our commands with what the help says of them, so that it imports none."""


class CommandTable(click.Group):
    """Look commands up by name and import only the one that is run.

    Those of other packages come from metadata; a broken one fails by itself, when it is run.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return our commands, then those of other packages by name."""
        return [*BUILT_IN, *self._of_packages()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command. Raises `click.exceptions.NoSuchCommand`, which suggests a near name."""
        if cmd_name in BUILT_IN:
            module = import_module(f"portico_cli.commands.{cmd_name}")
            return cast("click.Command", module.command)
        found = self._of_packages().get(cmd_name)
        if found is None:
            if ctx.resilient_parsing or cmd_name.startswith("-"):
                return None
            raise click.exceptions.NoSuchCommand(cmd_name, possibilities=self.list_commands(ctx), ctx=ctx)
        try:
            return load_command(found)
        except PluginBroken:
            if ctx.resilient_parsing:  # shell completion must not fail
                return None
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(BUILT_IN.items()))
        others = self._of_packages()
        if others:
            with formatter.section("Commands of other packages"):
                formatter.write_dl([(name, f"From {found.distribution}.") for name, found in others.items()])

    def _of_packages(self) -> dict[str, Command]:
        import portico_host

        return {command.name: command for command in usable_commands(portico_host.commands())}


def usable_commands(commands: Iterable[Command]) -> tuple[Command, ...]:
    """Return the commands of packages that can be run: none takes the place of ours."""
    return tuple(command for command in commands if command.name not in BUILT_IN)


def load_command(found: Command) -> click.Command:
    """Import a package's command. Raises ``PluginBroken`` when that fails or gives something else."""
    command: Any = found.load()
    if not isinstance(command, click.Command):
        from portico_host import Problem

        sentence = (
            f"The command {found.name!r} of {found.distribution} is broken: its entry point is not a click command."
        )
        raise PluginBroken(Problem(sentence, found.mend))
    return command


@click.command(
    cls=CommandTable,
    name="portico",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog='Start with: portico ask "How does it work?" --docs FOLDER',
)
@click.version_option(package_name="portico-ai", message="portico %(version)s")
@common_options
def portico() -> None:
    """Ask your documents, and build applications on language models."""


class _NarrowHelp(click.HelpFormatter):
    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        super().write_dl(rows, min(col_max, self.width // 2 - 4), col_spacing)


def run_command(words: Sequence[str], *, json: bool) -> int:
    """Run the command that the words name and return its exit code; nothing is raised.

    ``json`` is given before the options are parsed, because parsing them may be what fails.
    """
    use_utf8()
    invocation = Invocation(json=json)
    columns = get_terminal_size().columns
    extra: dict[str, Any] = {}
    if columns < 52:
        # By itself, click takes 50 columns for the least, and up to 30 for the names of options.
        extra["terminal_width"] = max(columns - 1, 20)
        click.Context.formatter_class = _NarrowHelp
    try:
        result = portico.main(args=list(words), prog_name="portico", standalone_mode=False, obj=invocation, **extra)
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
