"""What every command is told alike: the configuration file, whether to debug, whether to write JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

__all__ = [
    "Invocation",
    "common_options",
    "current",
    "json_option",
    "pass_invocation",
    "root_options",
    "short_name",
]

F = TypeVar("F", bound=Callable[..., Any])


_RUN = re.compile(r"\d{8}-\d{6}-([0-9a-f]{8})[0-9a-f]+")


def short_name(run: str) -> str:
    """Return what people call a run by: the beginning of the part of its name that is drawn.

    >>> short_name("20261121-235437-4cbb73b1bd0a"), short_name("nightly")
    ('4cbb73b1', 'nightly')
    """
    found = _RUN.fullmatch(run)
    return found[1] if found else run


@dataclass(slots=True)
class Invocation:
    """One run of the command line; the options fill it and the error messages read it.

    ``lines`` is set where a command writes several JSON objects, each on a line; ``updating`` while an index is brought
    up to date, because an interrupted one needs another word; ``run`` when a run broke off that the journal has,
    because it can be resumed, and ``failed`` its step that did it. ``submitted`` is set where the run goes on without
    this command, in a worker.
    """

    config: Path | None = None
    debug: bool = False
    json: bool = False
    lines: bool = False
    updating: bool = False
    run: str | None = None
    failed: str | None = None
    submitted: bool = False


def current(context: click.Context) -> Invocation:
    """Return the run's `Invocation`."""
    return context.find_root().ensure_object(Invocation)


def pass_invocation(command: Callable[..., Any]) -> Callable[..., Any]:
    """Hand the command its `Invocation` as the first argument."""

    def wrapped(*arguments: Any, **options: Any) -> Any:
        return command(current(click.get_current_context()), *arguments, **options)

    # functools.wraps would be right, but click keeps its options on the function, which it copies too.
    wrapped.__dict__.update(command.__dict__)
    wrapped.__name__, wrapped.__doc__ = command.__name__, command.__doc__
    return wrapped


def _keep_config(context: click.Context, _: click.Parameter, value: Path | None) -> None:
    if value is not None:
        current(context).config = value


def _keep_debug(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        current(context).debug = True


def _keep_json(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        current(context).json = True


def root_options(command: F) -> F:
    """Add what may stand before the command's name as well as after it."""
    command = click.option(
        "--debug",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_keep_debug,
        help="Show the traceback of an error; PORTICO_DEBUG=1 does too.",
    )(command)
    return click.option(
        "--config",
        metavar="FILE",
        type=click.Path(dir_okay=False, path_type=Path),
        is_eager=True,
        expose_value=False,
        callback=_keep_config,
        help="Read this file instead of ./portico.toml.",
    )(command)


def common_options(command: F) -> F:
    """Add the options that every command has."""
    return root_options(command)


def json_option(command: F) -> F:
    """Add ``--json``: one object on standard output, and nothing else there."""
    return click.option(
        "--json",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_keep_json,
        help="Write one JSON object to standard output and nothing else.",
    )(command)
