"""`portico config`: show, describe or begin a portico.toml."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import click

import portico_host
from portico_cli.arguments import write_text
from portico_cli.failures import Misused
from portico_cli.invocation import Invocation, common_options, json_option, pass_invocation
from portico_cli.show.layout import new_table
from portico_cli.show.output import safe_text, show, write_json


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
    application = portico_host.load(invocation.config)
    path = application.configuration.path
    if invocation.json:
        write_json({"file": None if path is None else str(path), "settings": application.redacted()})
        return
    table = new_table("setting", "value", "from")
    for setting in application.settings():
        value = "not set" if setting.value is None else json.dumps(setting.value, ensure_ascii=False)
        table.add_row(safe_text(setting.key, "cyan"), safe_text(value), safe_text(setting.origin, "dim"))
    show(safe_text(f"File: {path}\n" if path else "File: none; the embedded default is used.\n", "dim"), table)


@command.command(name="schema")
@common_options
@pass_invocation
def _schema(invocation: Invocation) -> None:
    """Print JSON Schema of portico.toml, for editors.

    It describes the settings of every installed package.
    """
    write_json(portico_host.load(invocation.config).schema())


@command.command(name="init")
@click.option("--force", is_flag=True, help="Overwrite a file that is there.")
@common_options
@pass_invocation
def _init(invocation: Invocation, force: bool) -> None:
    """Write a commented portico.toml here, or to --config FILE."""
    path = invocation.config or Path("portico.toml")
    folder = "docs" if (path.parent / "docs").is_dir() else "."
    text = (files("portico_cli") / "starter.toml").read_text("utf-8").replace("{folder}", folder)
    if path.exists() and not force:
        raise Misused(f"{path} is there already. Give --force to overwrite it.")
    write_text(path, text)
    show(
        safe_text(f"Wrote {path}. It searches {'this folder' if folder == '.' else 'the folder docs'}."),
        safe_text('Try: portico ask "What is this about?"', "dim"),
    )
