"""Options that several commands share: who plans, who answers, who is asked first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = ["approval_options", "chat_option", "overrides_of", "planner_option"]

F = TypeVar("F", bound=Callable[..., Any])

planner_option = click.option("--planner", metavar="NAME", help="Use this planner.")
chat_option = click.option("--chat", metavar="NAME", help="Let this chat service answer.")


def approval_options(command: F) -> F:
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
