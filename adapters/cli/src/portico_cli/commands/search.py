"""`portico search`: find passages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import RenderableType
from rich.text import Text

from portico.ports import TextSearch
from portico.search import And, AnyOf, Equal, Filter, FusedSearch, TextSearchOptions, TextSearchResult
from portico_cli.arguments import clean_argument
from portico_cli.failures import Misused
from portico_cli.invocation import Invocation, common_options, docs_option, json_option, pass_invocation, source_option
from portico_cli.loops import run_async
from portico_cli.show.answer import warning_lines
from portico_cli.show.layout import Hanging, place_head
from portico_cli.show.output import plain, show, write_json
from portico_cli.sources import choose_sources, nothing_to_search, refuse_mistakes
from portico_cli.terminal.progress import Progress, update_sources

_LENGTH = 280
_WORD = re.compile(r"\w+")


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
    help="Only passages whose FIELD is VALUE; if one field is repeated, any of its values.",
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

    Several sources are merged into one ranking. If a source fails, a warning says so, and the others are shown.
    """
    query = clean_argument(query).strip()
    if not query:
        raise Misused("The query is blank.")
    options = TextSearchOptions(top, skip, filter=_filter(clauses))
    chosen = choose_sources(invocation, docs, names)
    refuse_mistakes(chosen.application)
    if not chosen.sources:
        raise nothing_to_search('search "…"')

    async def search() -> tuple[list[TextSearchResult], Mapping[str, Any]]:
        async with chosen.application.services(chosen.sources) as services:
            searches = {name: services.get(TextSearch, name) for name in chosen.sources}
            for name, each in searches.items():
                each.capabilities.filter.check(options.filter, f"The source {name!r}")
            await update_sources(invocation, services, chosen)
            with Progress(f"Searching {', '.join(chosen.sources)}…"):
                found = await FusedSearch(searches).get_text_search_results(query, options)
                return await found.list(), found.metadata

    results, metadata = run_async(search)
    warnings = [f"The source {name!r} failed: {why}" for name, why in metadata.get("failures", {}).items()]
    sources = metadata.get("sources", {})
    of_sources = {name: {key: each for key, each in said.items() if key != "raw"} for name, said in sources.items()}
    if invocation.json:
        listed = [
            {"number": number, "name": result.name, "link": result.link, "text": result.value}
            for number, result in enumerate(results, skip + 1)
        ]
        write_json({"query": query, "results": listed, "warnings": warnings, "metadata": of_sources})
    else:
        show(*result_lines(query, results, first=skip + 1), *warning_lines(warnings))


def _filter(clauses: Sequence[str]) -> Filter | None:
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
    return And(parts) if len(parts) > 1 else parts[0] if parts else None


def result_lines(query: str, results: Sequence[TextSearchResult], *, first: int = 1) -> Iterator[RenderableType]:
    """Yield the results, numbered from ``first``, with the words of the query marked."""
    if not results:
        yield Text("Nothing was found.")
        return
    width = len(str(first + len(results) - 1)) + 2
    for number, result in enumerate(results, first):
        if number > first:
            yield Text()
        head = place_head(result.name, result.link, "bold")
        yield Hanging(head, str(number).ljust(width), "bold green")
        yield Hanging(snippet(query, result.value), " " * width)


def snippet(query: str, passage: str) -> Text:
    r"""Return a part of a passage around the first word of the query, with the words of the query marked.

    A word of the query is marked in other forms too: those with the same beginning.
    """
    text = " ".join(plain(passage).split())
    words = _WORD.findall(query)
    # Short words are mostly grammar; they count only if there are no others.
    stems = [re.escape(word[: max(4, len(word) - 2)]) for word in words if len(word) > 3] or map(re.escape, words)
    mark = re.compile(rf"\b(?:{'|'.join(stems)})\w*", re.IGNORECASE) if words else None
    start, end = 0, len(text)
    if end > _LENGTH:
        found = mark.search(text) if mark else None
        near = max(0, min(found.start() - 40 if found else 0, end - _LENGTH))
        start = text.rfind(" ", 0, near) + 1
        end = start + _LENGTH
    made = Text(text[start:end])
    if mark:
        made.highlight_regex(mark, "bold yellow")
    return Text.assemble("… " if start else "", made, " …" if end < len(text) else "")
