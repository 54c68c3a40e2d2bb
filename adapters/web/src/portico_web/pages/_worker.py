"""The process that finds the text in what was fetched.

It is apart because nothing else bounds it: lxml and pypdf run for as long as a page makes them, and a thread can
not be stopped. It ends itself when a job takes too long, even inside of C code, and when its parent is gone.

A job comes on standard input and its answer goes to standard output, each as two lengths of four bytes, a JSON
object and bytes.
"""

from __future__ import annotations

import faulthandler
import json
import os
import re
import signal
import struct
from collections.abc import Mapping
from typing import IO, Any

from portico_web.pages._errors import Unreadable

LENGTHS = struct.Struct(">II")

_MEMORY = 2 * 1024**3
_PART_FOR_PDF = 0.7
_SURROGATES_AND_CONTROLS = re.compile(r"[\ud800-\udfff\x00-\x08\x0b\x0e-\x1f\x7f]")


def main() -> None:
    """Answer jobs until standard input ends."""
    jobs = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    # What a library prints must not stand among the answers.
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal; the parent says when to stop
    _limit_memory()
    with open(nowhere, "w", closefd=False) as log:
        while (job := received(jobs)) is not None:
            faulthandler.dump_traceback_later(job[0]["seconds"], exit=True, file=log)
            answer = answered(*job)
            faulthandler.cancel_dump_traceback_later()
            try:
                sent(answers, *answer)
            except OSError:
                return


def answered(job: Mapping[str, Any], data: bytes) -> tuple[dict[str, Any], bytes]:
    """Do one job: ``{"title", "cut"}`` and the text, or ``{"fault", "limit"}`` that ends a sentence on the page."""
    try:
        text, title, cut = _text(job, data)
    except MemoryError:
        return {"fault": f"takes more than {_MEMORY:,} bytes of memory to be read", "limit": True}, b""
    except Exception as error:  # noqa: BLE001 - lxml, trafilatura and pypdf raise whatever a page makes them raise
        told = str(error) if isinstance(error, Unreadable) else f"cannot be read ({type(error).__name__})"
        return {"fault": told, "limit": False}, b""
    text = _SURROGATES_AND_CONTROLS.sub("", text).strip()
    if not text:
        return {"fault": "has no text", "limit": False}, b""
    most = job["characters"]
    if len(text) > most:
        text, cut = text[:most], cut or f"the first {most:,} of {len(text):,} characters (max_characters)"
    title = _SURROGATES_AND_CONTROLS.sub("", title or "").strip() or None
    return {"title": title, "cut": cut}, text.encode()


def _text(job: Mapping[str, Any], data: bytes) -> tuple[str, str | None, str | None]:
    if job["kind"] == "pdf":
        from portico_web.pages._pdf import PdfBounds, pdf_text

        seconds = job["seconds"] * _PART_FOR_PDF
        return pdf_text(data, PdfBounds(job["pages"], job["characters"], seconds))
    from portico_web.pages._wire import decoded

    text = decoded(data, job["content_type"], job["kind"])
    if text is None:
        raise Unreadable("is no text, whatever it says it is")
    if job["kind"] == "html" and job.get("crude"):
        from portico_web.pages._wire import text_without_tags, title_in

        return text_without_tags(text), title_in(text), None
    if job["kind"] == "html":
        from portico_web.pages._html import main_text

        return (*main_text(text), None)
    return text, None, None


def _limit_memory() -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):
        return  # not on this system: the time is bounded all the same


def sent(stream: IO[bytes], head: Mapping[str, Any], data: bytes) -> None:
    """Write a message."""
    words = json.dumps(head).encode()
    stream.write(LENGTHS.pack(len(words), len(data)) + words)
    stream.write(data)
    stream.flush()


def received(stream: IO[bytes]) -> tuple[dict[str, Any], bytes] | None:
    """Read a message, or None where the stream ends; cut in the middle it ends too."""
    lengths = stream.read(LENGTHS.size)
    if len(lengths) < LENGTHS.size:
        return None
    of_head, of_data = LENGTHS.unpack(lengths)
    head, data = stream.read(of_head), stream.read(of_data)
    if len(head) < of_head or len(data) < of_data:
        return None
    return json.loads(head), data
