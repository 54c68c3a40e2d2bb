"""Read messages: edited lines at a terminal, plain lines from a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress

from portico_cli.failures import Misused

_MAXIMUM_BYTES = 1_000_000
_PROMPT, _CONTINUES = "> ", ". "


def read_lines() -> Iterator[str]:
    """Yield each line of standard input; if that is a terminal, there is a prompt on standard error.

    Raises ``Misused`` for a line of more than 1,000,000 bytes.
    """
    encoding = "utf-8-sig"
    while True:
        if sys.stdin.isatty():
            sys.stderr.write(_PROMPT)
            sys.stderr.flush()
        line = sys.stdin.buffer.readline(_MAXIMUM_BYTES + 1)
        if not line:
            return
        if len(line) > _MAXIMUM_BYTES:
            raise Misused(f"A line has more than {_MAXIMUM_BYTES:,} bytes.")
        yield line.decode(encoding, "replace").rstrip("\r\n")
        encoding = "utf-8"


def edit_lines(history: Iterable[str]) -> Iterator[str]:
    """Yield the messages of a person, with an editor and a history if Python has readline.

    A line that ends in a backslash continues in the next, and a pasted block is one message. Ctrl-C clears the line;
    twice, or Ctrl-D, is the end.
    """
    with suppress(ImportError):
        import readline

        # Python switches it off, for the sake of programs that read the escapes of the line.
        readline.parse_and_bind("set enable-bracketed-paste on")
        for line in history:
            readline.add_history(line)
    interrupted = False
    while True:
        try:
            text = input(_PROMPT)
            while text.endswith("\\"):
                text = f"{text[:-1]}\n{input(_CONTINUES)}"
        except EOFError:
            sys.stdout.write("\n")
            return
        except KeyboardInterrupt:
            sys.stdout.write("\n")
            if interrupted:
                return
            sys.stderr.write("Ctrl-C again or Ctrl-D leaves.\n")
            interrupted = True
        else:
            interrupted = False
            yield text
