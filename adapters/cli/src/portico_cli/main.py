"""The entry of the command line; its imports take no time, so that Ctrl-C is caught while all else is imported."""

from __future__ import annotations

import gc
import sys

# That of typing would have to be imported; both ruff and mypy know this one too.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; nothing is raised.

    0 done, 1 failed, 2 usage or configuration, 3 infeasible, 4 paused, 130 interrupted.
    """
    if arguments is None:
        arguments = sys.argv[1:]
    json = "--json" in (arguments[: arguments.index("--")] if "--" in arguments else arguments)
    # A command makes a million objects and drops few: to look for circles among them takes a tenth of its time.
    gc.set_threshold(200_000)
    try:
        from portico_cli.command_table import run_command

        return run_command(arguments, json=json)
    except KeyboardInterrupt:
        # The command has not begun: an interrupt after that is reported by `run_command`.
        stream = sys.stdout if json else sys.stderr
        try:
            stream.write(
                '{"error": {"type": "Interrupted", "message": "Interrupted."}}\n' if json else "Interrupted.\n"
            )
            stream.flush()
        except (AttributeError, OSError):
            pass  # the stream is closed
        return _INTERRUPTED
