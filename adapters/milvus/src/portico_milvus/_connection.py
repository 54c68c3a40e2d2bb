"""The connection to Milvus: made when it is first needed, from any thread."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from portico_milvus._errors import mapped_errors
from portico_milvus._lite import LiteServer
from portico_milvus.config import MilvusSettings


@dataclass(frozen=True, slots=True)
class Link:
    """A client that is connected."""

    client: Any
    """A `pymilvus.MilvusClient`, which any thread may use."""
    lite: LiteServer | None
    """The server in this process, where there is one."""
    is_lite: bool
    """Whether Milvus Lite answers, here or at an address."""
    turn: AbstractContextManager[Any]
    """What is held during a call."""
    unflushed: dict[str, int]
    """Rows written to each collection since Milvus Lite put them into files, as far as is known here."""


class Connection:
    """Connects once, for all threads; after `close` the next call connects again."""

    def __init__(self, settings: MilvusSettings) -> None:
        self._settings = settings
        self._connecting = threading.Lock()
        self._link: Link | None = None

    @contextmanager
    def opened(self) -> Iterator[Link]:
        """Give the client for one call; what goes wrong in it is mapped. Milvus Lite has one call at a time."""
        with mapped_errors(self._settings):
            link = self._link or self._connected()
            with link.turn:
                yield link

    def close(self) -> None:
        """Disconnect, and stop Milvus Lite unless another store uses it."""
        with self._connecting, mapped_errors(self._settings):
            link, self._link = self._link, None
            if link is None:
                return
            try:
                link.client.close()
            finally:
                if link.lite is not None:
                    link.lite.release()

    def _connected(self) -> Link:
        with self._connecting:
            if self._link is None:
                self._link = self._connect()
            return self._link

    def _connect(self) -> Link:
        settings = self._settings
        pymilvus = _imported()
        lite = None if settings.is_server else LiteServer.acquire(settings.uri)
        client = None
        try:
            client = pymilvus.MilvusClient(
                uri=settings.uri if lite is None else lite.uri,
                token="" if settings.token is None else settings.token.reveal(),
                db_name=settings.database or "",
                timeout=settings.connect_timeout,
                # A shared one is never closed, and goes by the token.
                dedicated=True,
            )
            is_lite = lite is not None or "lite" in client.get_server_version(timeout=settings.timeout).lower()
        except BaseException as error:  # noqa: BLE001 - raised again
            if client is not None:
                client.close()
            if lite is not None:
                lite.release()
            # Without the frames that it went through, whose local variables hold the token.
            raise error.with_traceback(None) from None
        if lite is not None:
            return Link(client, lite, True, lite.turn, lite.unflushed)
        return Link(client, None, is_lite, threading.RLock() if is_lite else nullcontext(), {})


def _imported() -> Any:
    """Import pymilvus, which takes a second, without what else it would do to the process."""
    if "pymilvus" not in sys.modules:
        # It reads a file `.env` of whatever folder it is installed below into the environment.
        before = os.environ.get("PYTHON_DOTENV_DISABLED")
        os.environ["PYTHON_DOTENV_DISABLED"] = "1"
        try:
            import pymilvus  # type: ignore[import-untyped]
        finally:
            if before is None:
                del os.environ["PYTHON_DOTENV_DISABLED"]
            else:
                os.environ["PYTHON_DOTENV_DISABLED"] = before
    # It logs each refused request with a traceback, and all that a server says in it, and raises the same.
    logging.getLogger("pymilvus.decorators").setLevel(logging.CRITICAL)
    # It warns of each vain attempt to connect again, which it raises too, and of Milvus Lite's having no clock whenever
    # a whole collection is read.
    logging.getLogger("pymilvus.client").setLevel(logging.ERROR)
    import pymilvus

    return pymilvus
