"""What commands share: the configuration file, `--json`, `--debug`, and the options of everything that runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial, update_wrapper
from pathlib import Path
from typing import Any

import click

_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
_RUN = re.compile(r"\d{8}-\d{6}-([0-9a-f]{8})[0-9a-f]+")


def short_name(run: str) -> str:
    """Return the short name of a run: the beginning of its random part."""
    found = _RUN.fullmatch(run)
    return found[1] if found else run


@dataclass(slots=True)
class Invocation:
    """One call of the command line. The options fill it, and the error messages read it.

    ``lines``: the command writes several JSON objects, each on a line. ``updating``: an index is being updated.
    ``run``: the run that broke off, ``resumable`` if it helps to resume it, and ``failed`` the step that failed in it.
    ``submitted``: the run continues in a worker.
    """

    config: Path | None = None
    debug: bool = False
    json: bool = False
    lines: bool = False
    updating: bool = False
    run: str | None = None
    resumable: bool = True
    failed: str | None = None
    submitted: bool = False


pass_invocation = click.pass_obj
"""Gives a command its `Invocation` as the first argument."""


def _invocation_option(field: str, *flags: str, **options: Any) -> _Decorator:
    """Return an option whose value goes into the `Invocation`; a value that is not set changes nothing."""

    def store(context: click.Context, _: click.Parameter, value: Any) -> None:
        if value:
            setattr(context.ensure_object(Invocation), field, value)

    return click.option(*flags, is_eager=True, expose_value=False, callback=store, **options)


_debug_option = _invocation_option(
    "debug", "--debug", is_flag=True, help="Show the traceback of an error; PORTICO_DEBUG=1 does too."
)
_config_option = _invocation_option(
    "config",
    "--config",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Read this file instead of ./portico.toml.",
)


def common_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of every command; they may stand before the name of the command too."""
    return _config_option(_debug_option(command))


def json_lines_option(words: str) -> _Decorator:
    """Return ``--json`` for a command that writes an object on each line."""
    return _invocation_option("json", "--json", is_flag=True, help=words)


json_option = json_lines_option("Write one JSON object to standard output and nothing else.")
docs_option = click.option(
    "--docs",
    metavar="PATH",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="Search this folder or file too; may be repeated.",
)
source_option = click.option(
    "--source",
    "names",
    metavar="NAME",
    multiple=True,
    help="Search only this source (and every --docs); may be repeated.",
)
planner_option = click.option("--planner", metavar="NAME", help="Use this planner.")
chat_option = click.option("--chat", metavar="NAME", help="Use this chat service.")
file_option = partial(click.option, metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
trace_option = file_option(
    "--trace",
    help="Append what happens and how long it takes to this file, as OTLP in JSON lines (with portico-opentelemetry).",
)
input_option = click.option(
    "--input", "given", metavar="JSON|@FILE|-", help="The input: JSON, a file of it, or words for a text."
)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of every command that runs something: sources, chat service, what needs approval, the trace."""

    docs: tuple[Path, ...]
    names: tuple[str, ...]
    chat: str | None
    approve: bool
    approve_effects: bool
    yes: bool
    trace: Path | None


def run_options(*others: _Decorator) -> _Decorator:
    """Add `RunOptions`, passed as ``options``, and the options of every command.

    ``others`` are options of the command itself; the help shows them after the options of the sources.
    """
    added: list[_Decorator] = [
        docs_option,
        source_option,
        *others,
        chat_option,
        click.option("--approve", is_flag=True, help="Show each plan and ask before it runs."),
        click.option("--approve-effects", is_flag=True, help="Ask before each step whose function has effects."),
        click.option(
            "--yes",
            is_flag=True,
            help="Do not ask at a terminal before a plan with effects runs. It does not agree to flows of an enforced "
            "[policy].",
        ),
        trace_option,
        json_option,
        common_options,
    ]

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        def gather(*arguments: Any, **values: Any) -> Any:
            options = RunOptions(**{field.name: values.pop(field.name) for field in fields(RunOptions)})
            return command(*arguments, options=options, **values)

        made: Callable[..., Any] = update_wrapper(gather, command)
        for option in reversed(added):
            made = option(made)
        return made

    return add


def overrides_of(planner: str | None, chat: str | None, trace: Path | None = None) -> dict[str, Any]:
    """Return what the options change in the configuration."""
    chosen = (("planner", planner), ("chat", chat))
    changed: dict[str, Any] = {table: {"use": name} for table, name in chosen if name is not None}
    if trace is not None:
        changed["observers"] = {"opentelemetry": {"file": str(trace)}}
    return changed
