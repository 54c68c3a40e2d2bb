"""The entry of the command line; it imports nothing, so that Ctrl-C is caught while everything else is imported."""

from __future__ import annotations

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
        code = main(sys.argv[1:])
        # Python waits for every thread without a word before it ends; where none was started, there is none.
        if "threading" in sys.modules:
            from portico_cli.loops import end_though_threads_linger

            end_though_threads_linger(code)
        return code
    words = arguments
    json = "--json" in (words[: words.index("--")] if "--" in words else words)
    try:
        from portico_cli.command_table import run_command

        return run_command(words, json=json)
    except KeyboardInterrupt:
        # Before anything was begun: from then on an interrupt is told with what it broke off.
        _tell_interrupted(json=json)
        return _INTERRUPTED


def _tell_interrupted(*, json: bool) -> None:
    stream = sys.stdout if json else sys.stderr
    try:
        stream.write('{"error": {"type": "Interrupted", "message": "Interrupted."}}\n' if json else "Interrupted.\n")
        stream.flush()
    except (AttributeError, OSError):
        # The stream is closed, and there is no other place to say so; the exit code tells.
        return
