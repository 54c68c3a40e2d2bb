"""`portico mcp`: Portico as a server of the Model Context Protocol."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

import portico_host
from portico.errors import ConfigurationError, nearest
from portico.ports import FunctionSource
from portico_cli.failures import Misused
from portico_cli.invocation import Invocation, common_options, docs_option, json_option, pass_invocation, source_option
from portico_cli.loops import run_async
from portico_cli.runs import origin_of, read_run
from portico_cli.show.output import safe_text, show, show_errors, write_json
from portico_cli.show.runs import run_to_json
from portico_cli.sources import choose_sources
from portico_mcp._serving.listening import LOOPBACK, serve_http, serve_streams, standard_streams
from portico_mcp.commands.offered import Offered

_TOKEN = "PORTICO_MCP_TOKEN"  # noqa: S105 - the name of the variable


@click.group(name="mcp")
@common_options
def command() -> None:
    """Use servers of the Model Context Protocol, and be one."""


@command.command(name="list")
@click.argument("name")
@json_option
@common_options
@pass_invocation
def list_tools(invocation: Invocation, name: str) -> None:
    """Show the tools of a server.

    With their effects, what they give, and what of it was approved. --json has the schemas.

    NAME is that of its table in [functions].
    """
    offered = run_async(lambda: _look(invocation, name))
    if invocation.json:
        write_json(offered.to_json())
    else:
        show(*offered.lines())


@command.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Approve without asking.")
@json_option
@common_options
@pass_invocation
def approve(invocation: Invocation, name: str, *, yes: bool) -> None:
    """Approve a server's tools as they are now.

    A tool of which the server says something else later is refused. The server then starts with the first call.
    """

    def confirm(offered: Offered) -> bool:
        if not invocation.json:
            show(*offered.lines())
        if not yes and (invocation.json or not sys.stdin.isatty()):
            raise Misused("Nothing was approved: read the list, then give --yes.")
        return yes or click.confirm("Approve?", err=True)

    offered = run_async(lambda: _look(invocation, name, confirm))
    if invocation.json:
        write_json(offered.to_json() | {"approved": True, "changes": []})
    else:
        show(safe_text("Approved.", "bold green"))


async def _look(invocation: Invocation, name: str, confirm: Callable[[Offered], bool] | None = None) -> Offered:
    """Return what a server offers; what ``confirm`` accepts is approved."""
    from portico_mcp.functions import MCPFunctions

    application = portico_host.load(invocation.config)
    async with application.services() as services:
        known = services.names(FunctionSource)
        # Functions are named with "_" where the configuration has "-", and errors name what people type here.
        name = next((each for each in known if each.replace("-", "_") == name.replace("-", "_")), name)
        if name not in known:
            near = ", ".join(nearest(name, known) or known) or "none"
            raise ConfigurationError(f"There is no [functions.{name}] in the configuration. It has {near}.")
        source: Any = services.get(FunctionSource, name)
        if not isinstance(source, MCPFunctions):
            raise ConfigurationError(f"functions.{name} is no MCP server: it does not use `mcp`.")
        server = source.server(name.replace("-", "_"))
        approved, now = server.approvals.read(), await server.listing()
        offered = Offered(source.plugin_of(server, now), source.lost, now, approved)
        if confirm is not None and confirm(offered):
            server.approvals.write(now)
        return offered


class _Address(click.ParamType[tuple[str, int]]):
    """``PORT`` or ``HOST:PORT``, on loopback."""

    name = "address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        host, _, port = value.rpartition(":")
        host = host.strip("[]") or LOOPBACK[0]
        if host not in LOOPBACK or not re.fullmatch("[0-9]{1,5}", port) or int(port) > 65_535:
            words = f"{value[:80]!r} is no port on loopback, and whoever reaches this server can call its functions."
            self.fail(f"{words} Give PORT, or HOST:PORT with one of {', '.join(LOOPBACK)}.", param, ctx)
        return host, int(port)


@command.command()
@docs_option
@source_option
@click.option(
    "--include", metavar="NAME", multiple=True, help="Serve only this tool or plugin, `*` for any; may be repeated."
)
@click.option("--exclude", metavar="NAME", multiple=True, help="Do not serve this one; written as in --include.")
@click.option(
    "--http",
    "address",
    metavar="PORT|HOST:PORT",
    type=_Address(),
    help=f"Serve over HTTP on loopback. {_TOKEN} is the token; without it one is made and shown.",
)
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
) -> None:
    """Serve functions, searches and plans.

    The client starts this command and speaks to it by the standard streams, or by HTTP with --http.
    """
    chosen = choose_sources(invocation, docs, names)
    config = ["--config", str(invocation.config.resolve())] if invocation.config else []
    resume = shlex.join(["portico", *config, "resume"])

    async def run(streams: tuple[int, int] | None) -> None:
        from portico_mcp._serving.server import make_server

        async with chosen.application.kernel(chosen.sources) as kernel:
            kernel.origin = origin_of(docs, names, None)
            store = kernel.run_store

            async def describe(run: str, *, details: bool) -> Mapping[str, Any]:
                assert store is not None  # noqa: S101 - only the runs of a journal are described
                return run_to_json(await read_run(store, run), details=details)

            server = make_server(kernel, include=include, exclude=exclude, describe_run=describe, resume=resume)
            if streams is not None:
                await serve_streams(server, *streams)
            elif address is not None:
                await serve_http(server, *address, os.environ.get(_TOKEN))

    if address is None:
        if sys.stdin is None:
            raise Misused("The standard input is closed, and a client speaks there; --http is for HTTP.")
        if sys.stdin.isatty():
            show_errors(safe_text("A client of the protocol speaks here. Ctrl-C ends it; --http is for HTTP.", "dim"))
        with standard_streams() as streams:
            run_async(lambda: run(streams))
    else:
        run_async(lambda: run(None))
