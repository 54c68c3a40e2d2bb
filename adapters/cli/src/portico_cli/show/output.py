"""Write to people and to programs: consoles, safe text, JSON."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

# What is not seen, and can show text that is not there or hide text that is: marks that turn the direction of
# writing, tags, fillers, invisible operators. They are Unicode's default ignorable code points and the remarks of
# U+FFF9 on. Kept are the joiners of Persian, Indian scripts and emoji, the choice of emoji, and what Mongolian needs.
_HIDDEN = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff"
    "\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)

# And control characters but newline and tab.
_CONTROLS = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_HIDDEN}]")

_LINE_BREAKS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")

_SURROGATES = re.compile("[\ud800-\udfff]")

# What JSON allows raw inside a string and a terminal may act on.
_ESCAPED_IN_JSON = re.compile(f"[\x7f-\x9f\u2028\u2029{_HIDDEN}]")

# No line is cut where a program reads.
_WIDTH_OF_PIPES = 100_000

_LONGEST = 2_000


class OutputClosed(Exception):
    """The reader of standard output has gone, as ``| head`` does."""


class OutputFailed(Exception):
    """Standard output cannot be written, for example because the disk is full."""


def use_utf8() -> None:
    """Read and write UTF-8 whatever the locale says; what cannot be encoded is replaced.

    A stream that was closed by who started us is replaced by one that leads nowhere: the next file opened, an
    index perhaps, would otherwise get its number.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            setattr(sys, name, os.fdopen(nowhere, "w", encoding="utf-8", closefd=False))
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="replace")


def plain(text: str) -> str:
    r"""Return text from outside without anything that a terminal would act on."""
    return _SURROGATES.sub("\ufffd", _CONTROLS.sub("", _LINE_BREAKS.sub("\n", text)))


def safe_text(text: str, style: str = "") -> Text:
    """Return text from outside for a console: no escapes, no markup."""
    from rich.text import Text

    return Text(plain(text), style=style)


def console_for(stream: TextIO) -> Console:
    """Return a console that writes what it is given: no markup, no emoji codes, no highlighting.

    NO_COLOR, TERM=dumb, COLUMNS and redirection are respected; lines for a pipe or a file are not wrapped.
    """
    from rich.console import Console

    console = Console(file=stream, markup=False, emoji=False, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _WIDTH_OF_PIPES
    return console


def show(*renderables: RenderableType) -> None:
    """Print to standard output. Raises `OutputClosed` when its reader has gone, or `OutputFailed`."""
    console = console_for(sys.stdout)
    with _writing():
        if console.is_terminal:
            for renderable in renderables:
                console.print(renderable)
            return
        with console.capture() as captured:
            for renderable in renderables:
                console.print(renderable)
    _write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def show_errors(*renderables: RenderableType) -> None:
    """Print to standard error."""
    console = console_for(sys.stderr)
    for renderable in renderables:
        console.print(renderable)


def write_as_it_is(text: str) -> None:
    """Write a text that programs may read too: nothing is wrapped, and a pipe gets every character of it."""
    shown = plain(text) if sys.stdout.isatty() else _SURROGATES.sub("\ufffd", text)
    _write(shown if shown.endswith("\n") else f"{shown}\n")


def write_json(value: Any, *, indent: int | None = 2) -> None:
    """Write one JSON value and a newline, keys in the order given; on one line if ``indent`` is None.

    Half a surrogate pair, as a broken file name brings, becomes U+FFFD: not every reader of JSON takes it.
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=_as_json)
    text = _ESCAPED_IN_JSON.sub(lambda match: json.dumps(match[0])[1:-1], text)
    _write(_SURROGATES.sub("\ufffd", text) + "\n")


def _as_json(value: object) -> object:
    """Return what JSON does not have in a form that it has: any other value as text."""
    return dict(value) if isinstance(value, Mapping) else str(value)


def _write(text: str) -> None:
    with _writing():
        sys.stdout.write(text)
        sys.stdout.flush()


@contextmanager
def _writing() -> Iterator[None]:
    """Turn the error of a stream that takes nothing more into `OutputClosed` or `OutputFailed`."""
    try:
        yield
    except OSError as error:
        # The interpreter flushes standard output at its end, and would complain there.
        with suppress(OSError, ValueError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, sys.stdout.fileno())
            os.close(null)
        if isinstance(error, BrokenPipeError):
            raise OutputClosed from error
        raise OutputFailed(f"Standard output cannot be written: {error.strerror or error}.") from error


def one_line(value: object) -> str:
    """Return a value as JSON on one line, cut if it is very long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text):,} characters)"
