"""`portico doctor`: check the installation and say how to mend it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from portico_cli.failures import FAILED, write_traceback
from portico_cli.invocation import Invocation, common_options, json_option, pass_invocation
from portico_cli.show.output import safe_text, show, write_json
from portico_cli.sources import run

if TYPE_CHECKING:
    from rich.console import RenderableType

    from portico_cli.doctor import Finding


_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


@click.command(name="doctor")
@json_option
@common_options
@pass_invocation
def command(invocation: Invocation) -> None:
    """Check Python, packages, configuration, secrets, folders and services.

    Each line is ok, warn or fail, with what mends it. Exits with 1 when anything failed. With --debug the tracebacks
    of what packages raised follow.
    """
    from portico_cli.doctor import examine

    findings = run(lambda: examine(invocation.config))
    failed = sum(finding.state == "fail" for finding in findings)
    if invocation.json:
        write_json(
            {
                "healthy": not failed,
                "checks": [
                    {
                        "state": finding.state,
                        "subject": finding.subject,
                        "message": finding.message,
                        "mend": finding.mend or None,
                    }
                    for finding in findings
                ],
            }
        )
    else:
        show(*_lines(findings, failed))
    # A service fails of what its package failed of.
    for error in {id(finding.error): finding.error for finding in findings}.values():
        if error is not None:
            write_traceback(error, invocation)
    if failed:
        click.get_current_context().exit(FAILED)


def _lines(findings: list[Finding], failed: int) -> Iterator[RenderableType]:
    from rich.text import Text

    from portico_cli.show.layout import Hanging

    for finding in findings:
        text = safe_text(finding.subject, "bold")
        if finding.message:
            text.append_text(safe_text(f"  {finding.message}"))
        yield Hanging(text, finding.state.ljust(6), " " * 6, _STYLES[finding.state])
        if finding.mend:
            yield Hanging(safe_text(finding.mend), "      → ", " " * 8, "dim")
    warned = sum(finding.state == "warn" for finding in findings)
    yield Text()
    if failed:
        yield Text(f"{failed} failed, {warned} to note.", style="bold red")
    else:
        yield Text("Everything works." if not warned else f"It works; {warned} to note.", style="bold green")
