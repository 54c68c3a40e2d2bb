"""`portico index`: build or update the index of a folder, or of each configured source."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from portico.errors import PorticoError, UnsupportedOption
from portico.ports import IndexReport, TextSearch
from portico_cli.failures import FAILED, Misused, write_error
from portico_cli.invocation import Invocation, common_options, json_option, pass_invocation
from portico_cli.loops import run_async
from portico_cli.show.answer import report_lines, report_to_json
from portico_cli.show.layout import count_words
from portico_cli.show.output import plain, safe_text, show, write_json
from portico_cli.sources import Chosen, choose_sources
from portico_cli.terminal.progress import update_index


@click.command(name="index")
@click.argument("path", required=False, type=click.Path(exists=True, path_type=Path))
@click.option("--name", metavar="NAME", help="Take the settings of this configured source, for PATH if one is given.")
@json_option
@common_options
@pass_invocation
def command(invocation: Invocation, path: Path | None, name: str | None) -> None:
    """Build or update the index of PATH, a folder or a file; without PATH that of each configured source.

    Only what changed is read again. Interrupt it when you like: the next run continues. Where workers are at work
    (`portico worker`), they embed what is much.
    """
    chosen = _choose(invocation, path, name)
    reports, failures = run_async(lambda: _update(invocation, chosen))
    if invocation.json and path is None:
        indexes = {source: report_to_json(report) for source, report in reports.items()}
        write_json({"indexes": indexes, "failures": failures})
    elif invocation.json:
        [(source, report)] = reports.items()
        write_json({"name": source, "path": str(path), **report_to_json(report)})
    else:
        for source, report in reports.items():
            words = f"{source if path is None else path}: {count_words(report.documents, 'document')} indexed."
            show(safe_text(words, "bold"), *report_lines(report))
        for source, failure in failures.items():
            write_error(f"Error: {source}: {plain(failure)}")
    if failures:
        click.get_current_context().exit(FAILED)


async def _update(invocation: Invocation, chosen: Chosen) -> tuple[dict[str, IndexReport], dict[str, str]]:
    """Update each source that has an index; return the reports, and why others of several failed."""
    reports: dict[str, IndexReport] = {}
    failures: dict[str, str] = {}
    async with chosen.application.services(chosen.sources) as services:
        for source in chosen.sources:
            try:
                if (index := services.get(TextSearch, source).index) is not None:
                    reports[source] = await update_index(invocation, index, source)
            except PorticoError as error:
                if len(chosen.sources) == 1:
                    raise
                failures[source] = str(error)
    if not reports and not failures:
        names = ", ".join(map(repr, chosen.sources))
        raise UnsupportedOption(f"There is nothing to update: no source of {names} keeps an index.")
    return reports, failures


def _choose(invocation: Invocation, path: Path | None, name: str | None) -> Chosen:
    if path is None:
        chosen = choose_sources(invocation, names=() if name is None else (name,))
        if not chosen.sources:
            raise Misused("There is nothing to index. Give a folder, as in `portico index FOLDER`.")
        return chosen
    if name is None:
        chosen = choose_sources(invocation, docs=(path,))
        return replace(chosen, sources=chosen.sources[-1:])
    known = choose_sources(invocation).application
    use = {} if name in known.sources else {"use": "documents"}
    return choose_sources(invocation, names=(name,), overrides={"search": {name: {**use, "path": path}}})
