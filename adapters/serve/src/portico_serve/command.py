"""`portico serve`: open the kernel and serve the page and the API until Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
import webbrowser
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from portico.errors import ConfigurationError
from portico_cli.failures import describe_error, write_error, write_traceback
from portico_cli.invocation import (
    Invocation,
    common_options,
    docs_option,
    overrides_of,
    pass_invocation,
    source_option,
    trace_option,
)
from portico_cli.loops import run_async
from portico_cli.runs import no_journal, origin_of
from portico_cli.show.output import plain, safe_text, show_errors
from portico_cli.sources import Chosen, choose_sources, refuse_mistakes
from portico_cli.terminal.progress import update_sources

if TYPE_CHECKING:
    from portico_serve._guard.addresses import Addresses

_HOST = "127.0.0.1"


@click.command(name="serve")
@docs_option
@source_option
@click.option("--port", metavar="N", type=click.IntRange(0, 65_535), help="Listen to this port.  [default: 8321]")
@click.option("--host", metavar="ADDRESS", default=_HOST, show_default=True, help="Listen to this address.")
@click.option(
    "--address",
    "addresses",
    metavar="URL",
    multiple=True,
    help="Browsers and programs reach the server at this address, as through a proxy. The first is printed; may be "
    "repeated.",
)
@click.option("--no-browser", is_flag=True, help="Do not open the page in the browser.")
@trace_option
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    *,
    docs: tuple[Path, ...],
    names: tuple[str, ...],
    port: int | None,
    host: str,
    addresses: tuple[str, ...],
    no_browser: bool,
    trace: Path | None,
) -> None:
    """Show a page in the browser to ask, to agree to a plan and to watch it run.

    The address with a token is printed; it opens the page once. Only this machine reaches the server, unless --host
    says otherwise: then PORTICO_SERVE_TOKEN must be set. Programs send that token to /api, and to /v1 as to OpenAI.
    Ctrl-C ends the server.
    """
    from portico_serve._guard.addresses import Addresses, is_loopback
    from portico_serve._guard.sessions import TOKEN_VARIABLE, require_token
    from portico_serve._listening import open_socket

    token = require_token(os.environ.get(TOKEN_VARIABLE))
    host = host.strip("[]").lower()
    if not is_loopback(host):
        if token is None:
            raise ConfigurationError(
                f"--host {host} lets other machines reach this server: set {TOKEN_VARIABLE} to a token of 16 or more "
                "characters first."
            )
        words = f"Every machine that reaches {host} and has the token can read your sources and run your functions."
        write_error(f"Warning: {plain(words)} The connection is not encrypted.")
    output = sys.stdout
    Addresses.of(host, 1, addresses)  # a mistake in them is said before a port is taken
    chosen = choose_sources(invocation, docs, names, overrides_of(None, None, trace))
    refuse_mistakes(chosen.application)
    with open_socket(host, port) as listening:
        at = Addresses.of(host, listening.getsockname()[1], addresses)
        opens = not no_browser and output.isatty() and _has_screen()
        serving = _Serving(invocation, chosen, at, token, trace, output, bool(addresses), opens)
        with suppress(asyncio.CancelledError):  # the second Ctrl-C
            run_async(lambda: serving.serve(listening, origin_of(docs, names, None)))


@dataclass(slots=True)
class _Serving:
    """One server, from the opening of the kernel to its end."""

    invocation: Invocation
    chosen: Chosen
    addresses: Addresses
    token: str | None
    trace: Path | None
    output: TextIO
    behind: bool
    opens: bool

    async def serve(self, listening: socket.socket, origin: dict[str, object]) -> None:
        """Open the kernel, bring the indexes up to date, and serve until a signal."""
        from portico_serve._app import make_app
        from portico_serve._desk import open_desk
        from portico_serve._guard.sessions import Sessions
        from portico_serve._listening import serving, stopped_by_signals

        ended = asyncio.Event()
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in a task
        application = self.chosen.application
        async with application.kernel(self.chosen.sources) as kernel:
            assert kernel.services is not None  # noqa: S101 - a kernel of the host has services
            if kernel.run_store is None:
                raise no_journal(application)
            kernel.origin = origin
            await update_sources(self.invocation, kernel.services, self.chosen)
            if not self.chosen.sources:
                show_errors(safe_text("There is no source to search: --docs FOLDER gives one.", "dim"))
            sessions = Sessions(self.token, self._announce)
            with stopped_by_signals(ended.set, task.cancel):
                async with open_desk(application, kernel, self.chosen.sources, self.trace) as desk:
                    app = make_app(desk, self.addresses, sessions, report=self._report)
                    async with serving(app, listening, debug=self.invocation.debug):
                        show_errors(safe_text(self._greeting(listening), "dim"))
                        sessions.renew()
                        await ended.wait()

    def _greeting(self, listening: socket.socket) -> str:
        host, port = listening.getsockname()[:2]
        where = f"It listens to {f'[{host}]' if ':' in host else host}:{port}. " if self.behind else ""
        return f"{where}Ctrl-C ends the server. This address opens the page, once:"

    def _announce(self, token: str) -> None:
        """Print the address that opens the page, on a line by itself, and open it the first time."""
        address = f"{self.addresses.main}/?token={token}"
        with suppress(OSError, ValueError):  # the reader has gone
            self.output.write(f"{address}\n")
            self.output.flush()
        if self.opens:
            self.opens = False
            # A browser that does not detach must not hold the server.
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    def _report(self, error: Exception) -> None:
        write_traceback(error, self.invocation)
        kind, message, _ = describe_error(error)
        write_error(f"Error: {plain(message)}" if message else f"Error: {kind}")


def _has_screen() -> bool:
    """Tell whether a browser has a window: one that writes to the terminal would take it."""
    known = sys.platform in ("win32", "darwin")
    return known or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
