"""Server-sent events out of bytes, however these were cut."""

from __future__ import annotations

_BOM = b"\xef\xbb\xbf"


class LineTooLong(Exception):
    """A line of a stream is longer than allowed."""


class EventReader:
    r"""Collect the data of server-sent events from pieces of a stream.

    >>> reader = EventReader(1_000)
    >>> reader.feed(b': hello\ndata: {"a":'), reader.feed(b' 1}\r\n\r\ndata: [DO'), reader.end()
    ([], [b'{"a": 1}'], [b'[DO'])

    Only data counts: names, identifiers and comments are passed over. Lines end with LF, CR or CRLF, the lines of
    one event are joined with LF, a byte order mark at the beginning is skipped (HTML Living Standard, 9.2.6). Bytes are
    decoded by whoever reads the data, so a character may be cut anywhere.
    """

    def __init__(self, max_line: int) -> None:
        self._max_line = max_line
        self._rest: list[bytes] = []
        """What has come of a line that is not complete."""
        self._rest_bytes = 0
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._started = False

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the data of the events that ``piece`` completes; raises `LineTooLong`."""
        # Without any end of a line, the piece is only kept: joining it each time would be quadratic.
        if b"\n" not in piece and b"\r" not in piece:
            self._keep(piece)
            return []
        if self._rest:
            piece = b"".join((*self._rest, piece))
            self._rest.clear()
            self._rest_bytes = 0
        if not self._started:
            self._started = True
            piece = piece.removeprefix(_BOM)
        lines = piece.splitlines(keepends=True)
        last = lines[-1]
        # A CR at the very end may be the first half of a CRLF.
        if not last.endswith(b"\n"):
            self._keep(lines.pop())
        events: list[bytes] = []
        for line in lines:
            self._take(line, events)
        return events

    def end(self) -> list[bytes]:
        """Return the data of an event that the end of the stream completes, or cuts off."""
        events: list[bytes] = []
        rest = b"".join(self._rest)
        for line in rest.removeprefix(b"" if self._started else _BOM).splitlines(keepends=True):
            self._take(line, events)
        self._rest.clear()
        self._take(b"\n", events)
        return events

    def _keep(self, piece: bytes) -> None:
        self._rest.append(piece)
        self._rest_bytes += len(piece)
        self._check(self._rest_bytes)

    def _take(self, line: bytes, events: list[bytes]) -> None:
        if line.startswith(b"data:"):
            data = line[6 if line.startswith(b"data: ") else 5 :].rstrip(b"\r\n")
            self._data.append(data)
            self._data_bytes += len(data)
            self._check(self._data_bytes)
        elif line in {b"\n", b"\r\n", b"\r"}:
            if self._data:
                events.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
                self._data.clear()
                self._data_bytes = 0
        elif line.startswith(b"error: {"):
            # So llama.cpp has long written what went wrong in a stream.
            self._data.append(b'{"error":' + line[7:].rstrip(b"\r\n") + b"}")
            self._check(len(line))
        elif line.rstrip(b"\r\n") == b"data":
            self._data.append(b"")
        else:
            self._check(len(line))

    def _check(self, length: int) -> None:
        if length > self._max_line:
            raise LineTooLong
