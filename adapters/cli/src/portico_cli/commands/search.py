"""`portico search`: find passages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from portico_cli.failures import Misused
from portico_cli.goal import clean_argument
from portico_cli.invocation import Invocation, common_options, json_option, pass_invocation
from portico_cli.output import show, write_json
from portico_cli.sources import (
    Chosen,
    choose_sources,
    docs_option,
    nothing_to_search,
    refuse_mistakes,
    run,
    source_option,
)

if TYPE_CHECKING:
    from portico.filter import Filter
    from portico.search import TextSearchOptions, TextSearchResult

__all__ = ["command"]


@click.command(name="search")
@click.argument("query")
@docs_option
@source_option
@click.option("--top", metavar="N", type=click.IntRange(1, 1000), default=5, show_default=True, help="Show N results.")
@click.option(
    "--skip", metavar="N", type=click.IntRange(0, 100_000), default=0, help="Leave out the N best results; default 0."
)
@click.option(
    "--filter",
    "clauses",
    metavar="FIELD=VALUE",
    multiple=True,
    help="Only passages whose FIELD is VALUE; of one field repeated, any of its values.",
)
@json_option
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    *,
    query: str,
    docs: tuple[Path, ...],
    names: tuple[str, ...],
    top: int,
    skip: int,
    clauses: tuple[str, ...],
) -> None:
    """Find the passages that fit QUERY best.

    Several sources are merged into one ranking; one that fails is told of, and the others are shown.
    """
    query = clean_argument(query).strip()
    if not query:
        raise Misused("The query is blank.")
    filter = _filter(clauses)
    chosen = choose_sources(invocation, docs, names)
    refuse_mistakes(chosen.application)
    if not chosen.sources:
        raise nothing_to_search('search "…"')
    from portico.search import TextSearchOptions

    options = TextSearchOptions(top, skip, filter=filter)
    results, metadata = run(lambda: _search(invocation, query, options, chosen))
    warnings = [f"The source {name!r} failed: {why}" for name, why in metadata.get("failures", {}).items()]
    said = metadata.get("sources", {})
    from portico_cli.remarks import metadata_to_json, remark_lines

    if invocation.json:
        write_json(
            {
                "query": query,
                "results": [
                    {"number": number, "name": result.name, "link": result.link, "text": result.value}
                    for number, result in enumerate(results, skip + 1)
                ],
                "warnings": warnings,
                "metadata": metadata_to_json(said),
            }
        )
        return
    from portico_cli.answers import warning_lines
    from portico_cli.snippets import result_lines

    show(*result_lines(query, results, first=skip + 1), *remark_lines(query, said), *warning_lines(warnings))


async def _search(
    invocation: Invocation, query: str, options: TextSearchOptions, chosen: Chosen
) -> tuple[list[TextSearchResult], Mapping[str, Any]]:
    from portico.filter import check_filter
    from portico.fused_search import FusedSearch
    from portico.ports.text_search import TextSearch
    from portico_cli.progress import searching, update_sources

    async with chosen.application.services(chosen.sources) as services:
        searches = {name: services.get(TextSearch, name) for name in chosen.sources}
        for name, search in searches.items():
            check_filter(options.filter, search.capabilities.filter, f"The source {name!r}")
        await update_sources(invocation, services, chosen)
        with searching(chosen.sources):
            found = await FusedSearch(searches).get_text_search_results(query, options)
            return await found.list(), found.metadata


def _filter(clauses: Sequence[str]) -> Filter | None:
    from portico.filter import And, AnyOf, Equal

    by_field: dict[str, list[str]] = {}
    for clause in clauses:
        field, separator, value = clean_argument(clause).partition("=")
        if not separator or not field.strip():
            raise click.BadParameter(f"{clause!r} is not FIELD=VALUE.", param_hint="'--filter'")
        by_field.setdefault(field.strip(), []).append(value)
    parts: tuple[Filter, ...] = tuple(
        Equal(field, values[0]) if len(values) == 1 else AnyOf(field, tuple(values))
        for field, values in by_field.items()
    )
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else And(parts)
