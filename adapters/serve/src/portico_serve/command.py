"""`portico serve`: open the kernel and serve the page and the API until Ctrl-C."""

from __future__ import annotations

import click


@click.command(name="serve")
def command() -> None:
    """Show a page in the browser to ask, to agree to a plan and to watch it run."""
    raise click.ClickException("not built yet")
