"""`portico config`: show, describe or begin a portico.toml."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from portico_cli.failures import Misused
from portico_cli.invocation import Invocation, common_options, json_option, pass_invocation
from portico_cli.output import console_for, plain, safe_text, show, write_json

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from portico_host import EffectiveSetting

__all__ = ["command"]

_NARROW = 90


@click.group(name="config")
def command() -> None:
    """Show, describe or begin a portico.toml."""


@command.command(name="show")
@json_option
@common_options
@pass_invocation
def _show(invocation: Invocation) -> None:
    """Show the settings that are in effect and where each comes from.

    Secrets are masked.
    """
    import portico_host

    application = portico_host.load(invocation.config)
    path = application.configuration.path
    if invocation.json:
        write_json({"file": None if path is None else str(path), "settings": application.redacted()})
    else:
        show(*_lines(path, application.settings()))


@command.command(name="schema")
@common_options
@pass_invocation
def _schema(invocation: Invocation) -> None:
    """Print JSON Schema of portico.toml, for editors.

    It describes the settings of every installed package.
    """
    import portico_host

    write_json(portico_host.load(invocation.config).schema())


@command.command(name="init")
@click.option("--force", is_flag=True, help="Overwrite a file that is there.")
@common_options
@pass_invocation
def _init(invocation: Invocation, force: bool) -> None:
    """Write a commented portico.toml into this folder, or to --config FILE."""
    path = invocation.config or Path("portico.toml")
    folder = "docs" if (path.parent / "docs").is_dir() else "."
    _write(path, _starter().replace("{folder}", folder), force=force)
    show(
        safe_text(f"Wrote {path}. It searches {'this folder' if folder == '.' else 'the folder docs'}."),
        safe_text('Try: portico ask "What is this about?"', "dim"),
    )


def _starter() -> str:
    from importlib.resources import files

    return (files("portico_cli") / "starter.toml").read_text("utf-8")


def _write(path: Path, text: str, *, force: bool) -> None:
    from portico.errors import StoreError

    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        if force:
            # The old file stays whole until the new one is.
            partial.write_text(text, "utf-8")
            partial.replace(path)
        else:
            with path.open("x", encoding="utf-8") as stream:
                stream.write(text)
    except FileExistsError:
        raise Misused(f"{path} is there already. Give --force to overwrite it.") from None
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        partial.unlink(missing_ok=True)


def _lines(path: Path | None, settings: tuple[EffectiveSetting, ...]) -> Iterator[RenderableType]:
    from rich.table import Table
    from rich.text import Text

    from portico_cli.answer_text import Hanging

    yield safe_text(f"File: {path}" if path else "File: none; the embedded default is used.", "dim")
    yield Text()
    if console_for(sys.stdout).width < _NARROW:
        for setting in settings:
            line = Text.assemble(
                (plain(setting.key), "cyan"), " = ", _value(setting.value), (f"  {plain(setting.origin)}", "dim")
            )
            yield Hanging(line, "", "  ")
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("setting", style="cyan", overflow="fold")
    table.add_column("value", overflow="fold")
    table.add_column("from", style="dim", overflow="fold")
    for setting in settings:
        table.add_row(safe_text(setting.key), _value(setting.value), safe_text(setting.origin))
    yield table


def _value(value: Any) -> Text:
    return safe_text(
        "not set" if value is None else json.dumps(value, ensure_ascii=False), "dim" if value is None else ""
    )
