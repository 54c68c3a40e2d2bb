"""Read messages: edited lines at a terminal, plain lines from a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from types import ModuleType

from portico_cli.failures import Misused

_MAXIMUM_BYTES = 1_000_000
_PROMPT, _CONTINUES = "> ", ". "


class PipedLines:
    """Each line is a message. If the input is a terminal, there is a prompt on standard error."""

    def __init__(self) -> None:
        self._asks = sys.stdin.isatty()
        self._first = True

    def read(self) -> str | None:
        """Return the next line, None at the end. Raises ``Misused`` for one of more than 1,000,000 bytes."""
        if self._asks:
            sys.stderr.write(_PROMPT)
            sys.stderr.flush()
        line = sys.stdin.buffer.readline(_MAXIMUM_BYTES + 1)
        if not line:
            return None
        if len(line) > _MAXIMUM_BYTES:
            while line and not line.endswith(b"\n"):
                line = sys.stdin.buffer.readline(_MAXIMUM_BYTES)
            raise Misused(f"A line has more than {_MAXIMUM_BYTES:,} bytes; it was skipped.")
        text = line.decode("utf-8-sig" if self._first else "utf-8", "replace").rstrip("\r\n")
        self._first = False
        return text


class TerminalLines:
    """Lines with an editor and a history, if Python has readline.

    A line that ends in a backslash continues in the next. A pasted block is one message. Ctrl-C clears the line;
    twice, or Ctrl-D, is the end. ``words`` are completed with Tab at the beginning of a line.
    """

    def __init__(self, words: Sequence[str], history: Iterable[str] = ()) -> None:
        self._readline = _line_editor(words, history)
        self._ended = False
        reconfigure = getattr(sys.stdin, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="replace")

    def read(self) -> str | None:
        """Return the next message, None at the end."""
        again = False
        while not self._ended:
            lines: list[str] = []
            try:
                while True:
                    lines.append(input(self._bold(_CONTINUES if lines else _PROMPT)))
                    lines += self._pasted()
                    if not lines[-1].endswith("\\"):
                        return "\n".join(lines)
                    lines[-1] = lines[-1][:-1]
            except EOFError:
                sys.stdout.write("\n")
                return None
            except KeyboardInterrupt:
                sys.stdout.write("\n")
                if again:
                    return None
                sys.stderr.write("Ctrl-C again or Ctrl-D leaves.\n")
                again = True
        return None

    def _bold(self, prompt: str) -> str:
        if self._readline is None or os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb":
            return prompt
        return f"\x01\x1b[1m\x02{prompt}\x01\x1b[22m\x02"

    def _pasted(self) -> list[str]:
        """Return the lines that came with the last one: no one types that fast."""
        lines = []
        if self._readline is None or "libedit" in (self._readline.__doc__ or ""):
            # GNU readline knows a pasted block by itself.
            import select

            try:
                while select.select([sys.stdin], [], [], 0.01)[0]:
                    lines.append(input())
            except EOFError:
                self._ended = True
            except (OSError, ValueError):
                pass  # Windows cannot wait for a console; there a block is several messages
        return lines


def _line_editor(words: Sequence[str], history: Iterable[str]) -> ModuleType | None:
    try:
        import readline
    except ImportError:
        return None

    def complete(text: str, state: int) -> str | None:
        found = [word for word in words if word.startswith(text)] if readline.get_begidx() == 0 and text else []
        return found[state] if state < len(found) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" \t\n")
    if "libedit" in (readline.__doc__ or ""):
        readline.parse_and_bind("bind ^I rl_complete")
    else:
        readline.parse_and_bind("tab: complete")
        # Python switches it off, for the sake of programs that read the escapes of the line.
        readline.parse_and_bind("set enable-bracketed-paste on")
    readline.set_auto_history(True)
    for line in history:
        readline.add_history(line)
    return readline
