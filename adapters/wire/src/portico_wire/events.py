"""Streams of server-sent events."""

from __future__ import annotations


class EventReader:
    r"""Collect the data of server-sent events from pieces of a stream.

    >>> reader = EventReader()
    >>> reader.feed(b': hello\ndata: {"a":'), reader.feed(b' 1}\r\n\r\ndata: [DO'), reader.end()
    ([], [b'{"a": 1}'], [b'[DO'])

    Only data counts: names, identifiers and comments are skipped. Lines end with LF, CR or CRLF, and the lines of
    one event are joined with LF (HTML Living Standard, 9.2.6). A character may be cut anywhere. Whoever feeds the
    reader bounds the bytes.
    """

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        """What has come of a line that is not complete."""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the data of the events that ``piece`` completes."""
        # Without any end of a line, the piece is only kept: joining it each time would be quadratic.
        if b"\n" not in piece and b"\r" not in piece:
            self._rest.append(piece)
            return []
        if self._rest:
            piece = b"".join((*self._rest, piece))
            self._rest.clear()
        lines = piece.splitlines(keepends=True)
        # A CR at the very end may be the first half of a CRLF.
        if not lines[-1].endswith(b"\n"):
            self._rest.append(lines.pop())
        return self._read(lines)

    def end(self) -> list[bytes]:
        """Return the data of an event that the end of the stream completes, or cuts off."""
        lines = b"".join(self._rest).splitlines(keepends=True)
        self._rest.clear()
        return self._read([*lines, b"\n"])

    def _read(self, lines: list[bytes]) -> list[bytes]:
        events: list[bytes] = []
        data = self._data
        for line in lines:
            if line[:5] == b"data:":
                data.append(line[6 if line[5:6] == b" " else 5 :].rstrip(b"\r\n"))
            elif data and line in {b"\n", b"\r\n", b"\r"}:
                events.append(data[0] if len(data) == 1 else b"\n".join(data))
                data.clear()
        return events
