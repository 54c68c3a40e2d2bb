"""The words that a command is given, as clean text."""

from __future__ import annotations

import sys

from portico_cli.failures import Misused

__all__ = ["clean_argument", "read_goal"]

_MAXIMUM_BYTES = 1_000_000


def read_goal(argument: str) -> str:
    """Return the goal given, or the one on standard input for ``-``.

    Raises ``Misused`` for a blank one and for more than 1,000,000 bytes.
    """
    if argument == "-":
        content = sys.stdin.buffer.read(_MAXIMUM_BYTES + 1)
        if len(content) > _MAXIMUM_BYTES:
            raise Misused(f"The goal on standard input has more than {_MAXIMUM_BYTES} bytes.")
        goal = content.decode("utf-8-sig", "replace")
    else:
        goal = clean_argument(argument)
    if not goal.strip():
        raise Misused("The goal is blank. Ask something, or give `-` to read it from standard input.")
    return goal.strip()


def clean_argument(argument: str) -> str:
    r"""Return an argument as text that can be encoded: bytes that were no UTF-8 become U+FFFD.

    >>> clean_argument("caf\udce9")
    'caf\ufffd'
    """
    return argument.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
