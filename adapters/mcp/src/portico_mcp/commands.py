"""`portico mcp`: Portico as a server of the Model Context Protocol."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from portico_cli.failures import Misused
from portico_cli.invocation import Invocation, common_options, docs_option, pass_invocation, source_option
from portico_cli.loops import run_async
from portico_cli.runs import origin_of, read_run
from portico_cli.show.runs import run_to_json
from portico_cli.sources import choose_sources
from portico_mcp._listening import LOOPBACK, serve_http, serve_streams, standard_streams

_TOKEN = "PORTICO_MCP_TOKEN"  # noqa: S105 - the name of the variable


@click.group(name="mcp")
@common_options
def command() -> None:
    """Use servers of the Model Context Protocol, and be one."""


class _Address(click.ParamType[tuple[str, int]]):
    """``PORT`` or ``HOST:PORT``, on loopback."""

    name = "address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        host, _, port = value.rpartition(":")
        host = host.strip("[]") or LOOPBACK[0]
        if not port.isascii() or not port.isdigit() or int(port) > 65_535:
            self.fail(f"{value!r} is no port. Give PORT or HOST:PORT.", param, ctx)
        if host not in LOOPBACK:
            self.fail(
                f"{host} is not on loopback, and whoever reaches this server can call its functions. Use one of "
                f"{', '.join(LOOPBACK)}.",
                param,
                ctx,
            )
        return host, int(port)


@command.command()
@docs_option
@source_option
@click.option(
    "--include", metavar="NAME", multiple=True, help="Serve only this tool, `*` for anything; may be repeated."
)
@click.option("--exclude", metavar="NAME", multiple=True, help="Do not serve this tool; written as in --include.")
@click.option(
    "--http",
    "address",
    metavar="PORT|HOST:PORT",
    type=_Address(),
    help=f"Serve over HTTP on loopback. {_TOKEN} is the token; without it one is made and shown.",
)
@click.option("--token", envvar=_TOKEN, hidden=True, expose_value=True)
@common_options
@pass_invocation
def serve(
    invocation: Invocation,
    *,
    docs: tuple[Path, ...],
    names: tuple[str, ...],
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    address: tuple[str, int] | None,
    token: str | None,
) -> None:
    """Serve functions, searches and plans to a client of the Model Context Protocol.

    The client starts this command and speaks to it by the standard streams, or by HTTP with --http.
    """
    chosen = choose_sources(invocation, docs, names)

    async def run(streams: tuple[int, int] | None) -> None:
        from portico_mcp.serving import make_server

        async with chosen.application.kernel(chosen.sources) as kernel:
            kernel.origin = origin_of(docs, names, None)
            store = kernel.run_store

            async def describe(run: str, *, details: bool) -> Mapping[str, Any]:
                assert store is not None  # noqa: S101 - only the runs of a journal are described
                return run_to_json(await read_run(store, run), details=details)

            server = make_server(kernel, include=include, exclude=exclude, describe_run=describe)
            if streams is not None:
                await serve_streams(server, *streams)
            elif address is not None:
                await serve_http(server, *address, token)

    if address is None:
        with standard_streams() as streams:
            run_async(lambda: run(streams))
        return
    try:
        run_async(lambda: run(None))
    except OSError as error:
        raise Misused(f"{address[0]}:{address[1]} cannot be served: {error.strerror}.") from error
