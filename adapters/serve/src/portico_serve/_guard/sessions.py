"""Who may come in: one-time tokens that become sessions of browsers, and the token of programs."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable

from portico.errors import ConfigurationError

TOKEN_VARIABLE = "PORTICO_SERVE_TOKEN"  # noqa: S105 - the name of the variable
_SHORTEST = 16
_MOST_SESSIONS = 100


def require_token(token: str | None) -> str | None:
    """Return the token of programs; ``ConfigurationError`` for one that is short or no plain ASCII."""
    if not token:
        return None
    if len(token) < _SHORTEST or not all("!" <= each <= "~" for each in token):
        raise ConfigurationError(
            f"{TOKEN_VARIABLE} needs {_SHORTEST} or more characters, letters, digits and signs without spaces."
        )
    return token


class Sessions:
    """The sessions of browsers, kept in memory, and the tokens that begin them.

    A one-time token is random, so it cannot be guessed. ``announce`` is called with the next one as soon as one is
    used. Only digests are kept, and they are compared in constant time.
    """

    def __init__(self, fixed: str | None = None, announce: Callable[[str], None] = lambda token: None) -> None:
        self._fixed = None if fixed is None else _digest(fixed)
        self._announce = announce
        self._once = b""
        self._used: list[bytes] = []
        self._sessions: dict[bytes, None] = {}

    @property
    def has_fixed(self) -> bool:
        """Whether programs have a token."""
        return self._fixed is not None

    def renew(self) -> None:
        """Make a one-time token and announce it; the one before is worth nothing any more."""
        token = secrets.token_urlsafe(32)
        self._once = _digest(token)
        self._announce(token)

    def enter_once(self, token: str) -> str | None:
        """Begin a session with the one-time token and return its cookie; None for another token."""
        if not self._once or not hmac.compare_digest(_digest(token), self._once):
            return None
        self._used = [*self._used[1 - _MOST_SESSIONS :], self._once]
        self.renew()
        return self._begin()

    def enter(self, token: str) -> str | None:
        """Begin a session with the token of programs; None for another token."""
        return self._begin() if self.is_fixed(token) else None

    def was_used(self, token: str) -> bool:
        """Tell whether a token was a one-time token that began a session."""
        return _is_one_of(_digest(token), self._used)

    def is_fixed(self, token: str) -> bool:
        """Tell whether this is the token of programs."""
        return self._fixed is not None and hmac.compare_digest(_digest(token), self._fixed)

    def find(self, cookie: str) -> str | None:
        """Return a name for the session of a cookie; None if there is none."""
        digest = _digest(cookie)
        return digest.hex() if _is_one_of(digest, list(self._sessions)) else None

    def _begin(self) -> str:
        cookie = secrets.token_urlsafe(32)
        self._sessions[_digest(cookie)] = None
        if len(self._sessions) > _MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        return cookie


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _is_one_of(digest: bytes, known: list[bytes]) -> bool:
    return sum(hmac.compare_digest(digest, each) for each in known) > 0
