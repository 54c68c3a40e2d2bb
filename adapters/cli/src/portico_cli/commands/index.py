"""`portico index`: build or update the index of a folder."""

from __future__ import annotations

from pathlib import Path

import click

from portico.errors import UnsupportedOption
from portico.ports import IndexReport, TextSearch
from portico_cli.invocation import Invocation, common_options, json_option, pass_invocation
from portico_cli.loops import run_async
from portico_cli.show.answer import report_lines, report_to_json
from portico_cli.show.layout import count_words
from portico_cli.show.output import safe_text, show, write_json
from portico_cli.sources import choose_sources
from portico_cli.terminal.progress import update_index


@click.command(name="index")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--name", metavar="NAME", help="Take the settings of this configured source, for this path.")
@json_option
@common_options
@pass_invocation
def command(invocation: Invocation, path: Path, name: str | None) -> None:
    """Build or update the index of PATH, a folder or a file.

    Only what changed is read again. Interrupt it when you like: the next run continues. Where workers are at work
    (`portico worker`), they embed what is much.
    """
    if name is None:
        chosen = choose_sources(invocation, docs=(path,), names=())
        source = chosen.sources[-1]
    else:
        known = choose_sources(invocation).application
        use = {} if name in known.sources else {"use": "documents"}
        chosen = choose_sources(invocation, names=(name,), overrides={"search": {name: {**use, "path": path}}})
        source = name

    async def update() -> IndexReport:
        async with chosen.application.services([source]) as services:
            index = services.get(TextSearch, source).index
            if index is None:
                raise UnsupportedOption(f"The source {source!r} keeps no index; there is nothing to update.")
            return await update_index(invocation, index, source)

    report = run_async(update)
    if invocation.json:
        write_json({"name": source, "path": str(path), **report_to_json(report)})
        return
    show(safe_text(f"{path}: {count_words(report.documents, 'document')} indexed.", "bold"), *report_lines(report))
