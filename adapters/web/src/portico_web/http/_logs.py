"""What an HTTP library writes to its log while a request is under way, without the request's secrets."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from portico.http import HttpRequest, without_secrets
from portico.registration import Secret

__all__ = ["discreet"]

_LOGGERS = ("httpx", "httpcore.connection", "httpcore.http11", "httpcore.http2", "httpcore.proxy", "httpcore.socks")


@contextmanager
def discreet(request: HttpRequest) -> Iterator[None]:
    """Hide what is secret in a request from the logs until the block ends.

    At the level DEBUG, httpcore writes the headers of answers, in which a service may repeat a key.
    """
    loggers = [logger for name in _LOGGERS if (logger := logging.getLogger(name)).isEnabledFor(logging.DEBUG)]
    secrets = [value for value in (*request.params.values(), *request.headers.values()) if isinstance(value, Secret)]
    if not loggers or not secrets:
        yield
        return
    hiding = _Hiding(secrets)
    for logger in loggers:
        logger.addFilter(hiding)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(hiding)


class _Hiding(logging.Filter):
    def __init__(self, secrets: Iterable[Secret]) -> None:
        super().__init__()
        self._secrets = tuple(secrets)

    def filter(self, record: logging.LogRecord) -> bool:
        said = record.getMessage()
        kept = without_secrets(said, self._secrets)
        if kept != said:
            record.msg, record.args = kept, ()
        return True
