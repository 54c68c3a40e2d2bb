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
from portico_milvus.config import MilvusSettings

# A folder is locked to a process, and two servers on one folder in a process would destroy it, so this cannot belong
# to one store: whoever opens a folder that is open shares its server.
_RUNNING: dict[str, LiteServer] = {}
_GUARD = threading.Lock()


class LiteServer:
    """A server that runs, for all stores of this process on its folder."""

    def __init__(self, folder: str, server: Any, database: Any, port: int) -> None:
        self.uri = f"http://127.0.0.1:{port}"
        self.turn = threading.RLock()
        """Held during a call: Milvus Lite takes one writer at a time, and a search while it flushes may miss rows."""
        self.unflushed: dict[str, int] = {}
        self._folder = folder
        self._server = server
        self._database = database
        self.users = 1

    @classmethod
    def acquire(cls, folder: str) -> LiteServer:
        """Return the server of a folder, started where it does not run yet. Raises what Milvus Lite raises."""
        folder = os.path.realpath(folder)
        with _GUARD:
            running = _RUNNING.get(folder)
            if running is not None:
                running.users += 1
                return running
            from milvus_lite.adapter.grpc.server import start_server_in_thread  # type: ignore[import-untyped]

            # It logs each refused request with a traceback, and answers with the same words.
            logging.getLogger("milvus_lite.adapter.grpc.servicer").setLevel(logging.CRITICAL)
            running = _RUNNING[folder] = cls(folder, *start_server_in_thread(folder, host="127.0.0.1", port=0))
            return running

    def release(self) -> None:
        """Stop the server when no one uses it any more; what is in memory is then in files."""
        with _GUARD:
            self.users -= 1
            if self.users:
                return
            del _RUNNING[self._folder]
            self._server.stop(grace=2).wait()
            self._database.close()


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
