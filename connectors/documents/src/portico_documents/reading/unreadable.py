"""Why a file yields no text."""

from __future__ import annotations

from portico.errors import PorticoError


class Unreadable(PorticoError):
    """A file has no text for us; ``reason`` is a few plain words, the same for every file of its kind.

    The reasons are ``empty``, ``binary``, ``undecodable`` (text, but in no encoding that it declares), ``damaged``,
    ``encrypted``, ``no text`` (a PDF of pictures) and ``too large`` (once unpacked). They are meant for counting:
    ``12 skipped: 9 binary, 3 empty``. ``detail`` adds what is known of this one file.

    >>> Unreadable("encrypted").reason
    'encrypted'
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        self.reason = reason
        self.detail = detail
        super().__init__(f"The file cannot be read: {reason}{f' ({detail})' if detail else ''}.")
