"""PDF: the text of each page, through PDFium, which runs as a process for each file."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from threading import Timer
from typing import IO, cast

from portico_documents.chunking import Section
from portico_documents.reading.decoding import Unreadable

_MOST_CHARACTERS = 50_000_000
_MOST_SECONDS = 120.0
# Of a document, so many passages are indexed; a page more shows that there are more.
_MOST_PAGES = 10_001
# -P keeps the working directory off sys.path, so that nothing there replaces Python's own modules.
_COMMAND = ("-P", "-c")
_PROGRAM = """import sys, json; sys.path[:] = json.loads(sys.argv[1])
from portico_documents.reading.pdf_process import main; main(*json.loads(sys.argv[2]))"""
# What Python and the libraries of the system need. A process that reads what strangers wrote gets no keys.
_PASSED_ON = ("HOME", "LD_LIBRARY_PATH", "PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONHOME", "SYSTEMROOT")


def read(data: bytes) -> list[Section]:
    """Return the sections of each page that has text, under the document's title and its bookmarks.

    Running heads, page numbers and tables of contents are left out, and so is a page that cannot be read, as long as
    another can. Raises ``Unreadable``: ``encrypted`` (an empty password is tried), ``damaged``, ``no text`` (pages of
    pictures), ``too large`` (once unpacked), ``too slow``: more than ten seconds of a processor and two for each
    megabyte, or two minutes in all.
    """
    bounds = (len(data) / 1_000_000, _MOST_PAGES, _MOST_CHARACTERS)
    process = subprocess.Popen(  # noqa: S603 - our own module, in this Python
        [sys.executable, *_COMMAND, _PROGRAM, json.dumps([place for place in sys.path if place]), json.dumps(bounds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
    )
    stdin, stdout = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
    clock = Timer(_MOST_SECONDS, process.kill)
    clock.daemon = True
    clock.start()
    try:
        with contextlib.suppress(BrokenPipeError):  # it ended early: what it said of that is read below
            stdin.write(data)
        with contextlib.suppress(BrokenPipeError):
            stdin.close()
        said = [json.loads(line) for line in stdout if line.endswith(b"\n")]
    finally:
        clock.cancel()
        process.kill()
        stdout.close()
        status = process.wait()
    end = said.pop() if said and isinstance(said[-1], dict) else _why_it_ended(status)
    if end or not said:
        raise Unreadable(**end or {"reason": "no text"})
    return [Section(text, page, tuple(headings), page=page) for text, page, headings in said]


def _why_it_ended(status: int) -> dict[str, str]:
    """Return why a process said nothing at its end; the system stops one that has used up its time."""
    if -status in {getattr(signal, name, 0) for name in ("SIGXCPU", "SIGKILL")}:
        return {"reason": "too slow"}
    if -status in {getattr(signal, name, 0) for name in ("SIGABRT", "SIGTRAP", "SIGILL")}:
        return {"reason": "too large", "detail": "more memory than a file may take"}
    return {"reason": "damaged", "detail": "it ends the process that reads it"}
