"""`portico search`: find passages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

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
    if not chosen.sources:
        refuse_mistakes(chosen.application)
        raise nothing_to_search("search")
    # From several sources the best of each are merged before the first ones are left out.
    several = len(chosen.sources) > 1
    from portico.search import TextSearchOptions

    options = (
        TextSearchOptions(skip + top, 0, filter=filter) if several else TextSearchOptions(top, skip, filter=filter)
    )
    results, warnings = run(lambda: _search(invocation, query, options, chosen))
    if several:
        results = results[skip : skip + top]
    if invocation.json:
        write_json(
            {
                "query": query,
                "results": [
                    {"number": number, "name": result.name, "link": result.link, "text": result.value}
                    for number, result in enumerate(results, skip + 1)
                ],
                "warnings": warnings,
            }
        )
        return
    from portico_cli.answers import warning_lines
    from portico_cli.snippets import result_lines

    show(*result_lines(query, results, first=skip + 1), *warning_lines(warnings))


async def _search(
    invocation: Invocation, query: str, options: TextSearchOptions, chosen: Chosen
) -> tuple[list[TextSearchResult], list[str]]:
    import asyncio

    from portico.filter import check_filter
    from portico.fusion import fuse_by_rank
    from portico.ports.text_search import TextSearch
    from portico_cli.progress import update_sources

    async with chosen.application.services(chosen.sources) as services:
        searches = [services.get(TextSearch, name) for name in chosen.sources]
        for name, search in zip(chosen.sources, searches, strict=True):
            check_filter(options.filter, search.capabilities.filter, f"The source {name!r}")
        await update_sources(invocation, services, chosen)

        async def ask(search: TextSearch) -> list[TextSearchResult]:
            return await (await search.get_text_search_results(query, options)).list()

        outcomes = await asyncio.gather(*map(ask, searches), return_exceptions=True)
    rankings: list[list[TextSearchResult]] = []
    failures: dict[str, Exception] = {}
    for name, outcome in zip(chosen.sources, outcomes, strict=True):
        if isinstance(outcome, Exception):
            failures[name] = outcome
        elif isinstance(outcome, BaseException):
            # An interruption is not a source's failure.
            raise outcome
        else:
            rankings.append(outcome)
    if not rankings:
        _raise(*next(iter(failures.items())))
    found = fuse_by_rank(rankings, key=lambda result: (result.link, result.value))
    return found, [_sentence(name, error) for name, error in failures.items()]


def _raise(name: str, error: Exception) -> NoReturn:
    from portico.errors import PorticoError, ServiceError

    raise error if isinstance(error, PorticoError) else ServiceError(_sentence(name, error)) from error


def _sentence(name: str, error: Exception) -> str:
    from portico.errors import PorticoError

    cause = str(error) if isinstance(error, PorticoError) else f"{type(error).__name__}: {error}"
    return f"The source {name!r} failed: {cause}"


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
