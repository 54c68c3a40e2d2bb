"""Options that several commands share: what is searched, who plans, who answers, who is asked first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from portico_cli.invocation import common_options, json_option
from portico_cli.sources import docs_option, source_option

__all__ = ["PursuitOptions", "chat_option", "overrides_of", "planner_option", "pursuit_options"]

F = TypeVar("F", bound=Callable[..., Any])

planner_option = click.option("--planner", metavar="NAME", help="Use this planner.")
chat_option = click.option("--chat", metavar="NAME", help="Let this chat service answer.")


@dataclass(frozen=True, slots=True)
class PursuitOptions:
    """What every command that carries something out is given: its sources, its chat service, what it asks first."""

    docs: tuple[Path, ...]
    names: tuple[str, ...]
    chat: str | None
    approve: bool
    approve_effects: bool
    yes: bool


def pursuit_options(*others: Callable[[Any], Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options of `PursuitOptions`, which come as one, named ``options``; and those of every command.

    ``others`` are options of the command itself that the help shows after those of the sources.
    """
    added: list[Callable[[Any], Any]] = [
        docs_option,
        source_option,
        *others,
        chat_option,
        _approval_options,
        json_option,
        common_options,
    ]

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def gathered(*arguments: Any, **values: Any) -> Any:
            options = PursuitOptions(**{field.name: values.pop(field.name) for field in fields(PursuitOptions)})
            return command(*arguments, options=options, **values)

        made: Callable[..., Any] = gathered
        for option in reversed(added):
            made = option(made)
        return made

    return add


def _approval_options(command: F) -> F:
    """Add ``--approve``, ``--approve-effects`` and ``--yes``."""
    command = click.option("--yes", is_flag=True, help="Do not ask at a terminal before a plan with effects runs.")(
        command
    )
    command = click.option("--approve-effects", is_flag=True, help="Ask before each step whose function has effects.")(
        command
    )
    return click.option("--approve", is_flag=True, help="Show each plan and ask before it runs.")(command)


def overrides_of(planner: str | None, chat: str | None) -> dict[str, Any]:
    """Return what the options change in the configuration."""
    return {table: {"use": name} for table, name in (("planner", planner), ("chat", chat)) if name is not None}
