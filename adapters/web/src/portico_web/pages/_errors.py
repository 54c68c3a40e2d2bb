"""From httpcore's errors and HTTP's status codes to Portico's errors."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from time import time

import httpcore

from portico.errors import (
    AccessRefused,
    LimitExceeded,
    RateLimited,
    ResponseInvalid,
    ServiceError,
    ServiceTimeout,
    ServiceUnavailable,
)
from portico_web.pages.links import shown

_KEPT_BACK = frozenset({401, 402, 403, 407, 451})


@contextmanager
def translated(link: str) -> Iterator[None]:
    """Raise what httpcore raises inside as an error of ours that names the link."""
    try:
        yield
    except LimitExceeded as error:
        raise LimitExceeded(
            f"The server of {shown(link)} {error}, its headers and what is around the page included."
        ) from error
    except httpcore.TimeoutException as error:
        raise ServiceTimeout(f"The server of {shown(link)} did not answer in time.") from error
    except (httpcore.RemoteProtocolError, httpcore.LocalProtocolError) as error:
        raise ResponseInvalid(f"The server of {shown(link)} does not speak HTTP properly: {error}.") from error
    except (httpcore.NetworkError, httpcore.ProxyError, httpcore.UnsupportedProtocol, OSError) as error:
        reason = "its certificate is not accepted" if _is_of_certificate(error) else "it cannot be reached"
        words = f" ({error})" if str(error) else ""
        raise ServiceUnavailable(f"The server of {shown(link)} is not read: {reason}{words}.") from error


def _is_of_certificate(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


def of_status(link: str, status: int, retry_after: str | None) -> ServiceError | None:
    """Return the error that a status is, or None for one that comes with a page."""
    if 200 <= status < 300 and status not in {204, 205, 206}:
        return None
    answered = f"The server of {shown(link)} answered {status}{_phrase(status)}"
    if status in _KEPT_BACK:
        return AccessRefused(f"{answered}: it keeps this page back.")
    if status == 429:
        seconds = seconds_of(retry_after)
        advice = f"; it asks to wait {seconds:g} seconds" if seconds is not None else ""
        return RateLimited(f"{answered}{advice}.", retry_after=seconds)
    if status in {404, 410}:
        return ServiceUnavailable(f"{answered}: there is no such page.")
    if 400 <= status < 600:
        return ServiceUnavailable(f"{answered}.")
    return ResponseInvalid(f"{answered}, and sent no page with it.")


def _phrase(status: int) -> str:
    try:
        return f" {HTTPStatus(status).phrase}"
    except ValueError:
        return ""


def seconds_of(retry_after: str | None) -> float | None:
    """Return the seconds that a Retry-After header asks to wait, be it a number or a date (RFC 9110 §10.2.3)."""
    if retry_after is None:
        return None
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time())
    except (ValueError, TypeError, OverflowError, OSError):
        return None


class Unreadable(Exception):
    """What was fetched has no text to be had; the argument says why, in the words that end a sentence on it."""
