"""The connection to Milvus, opened at first use from any thread, and its errors as Portico's."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from portico.errors import PorticoError, StoreBusy, StoreError
from portico.plugins import Secret
from portico_milvus.config import MilvusSettings

_MISSING = 100
"""The code of a server that has no such collection."""
_LONGEST_MESSAGE = 500

# Two servers on one folder would destroy it, so all stores of this process on a folder share one server.
_RUNNING: dict[str, LiteServer] = {}
_GUARD = threading.Lock()


class WrongDimensions(ValueError):
    """The caller's vectors are not as long as those in the namespace."""

    def __init__(self, what: str, dimensions: int, known: int) -> None:
        super().__init__(f"{what} {dimensions} dimensions, those in the namespace {known}")


def is_missing(error: Exception) -> bool:
    return getattr(error, "code", None) == _MISSING


def is_answer(error: Exception) -> bool:
    """Tell whether the server itself refused the call."""
    return isinstance(getattr(error, "code", None), int)


class LiteServer:
    """A running server, for all stores of this process on its folder."""

    def __init__(self, folder: str, server: Any, database: Any, port: int) -> None:
        self.uri = f"http://127.0.0.1:{port}"
        self.turn = threading.RLock()
        """Held during a call: Milvus Lite takes one writer at a time, and a search during a flush may miss rows."""
        self.unflushed: dict[str, int] = {}
        self.users = 1
        self._folder = folder
        self._server = server
        self._database = database

    @classmethod
    def acquire(cls, folder: str) -> LiteServer:
        """Return the server of a folder; start it if it does not run. Raises Milvus Lite's errors."""
        folder = os.path.realpath(folder)
        with _GUARD:
            running = _RUNNING.get(folder)
            if running is not None:
                running.users += 1
                return running
            from milvus_lite.adapter.grpc.server import start_server_in_thread  # type: ignore[import-untyped]

            # It logs a traceback for each refused request, and the answer says the same.
            logging.getLogger("milvus_lite.adapter.grpc.servicer").setLevel(logging.CRITICAL)
            running = _RUNNING[folder] = cls(folder, *start_server_in_thread(folder, host="127.0.0.1", port=0))
            return running

    def release(self) -> None:
        """Stop the server when the last store releases it. It then writes its memory to files."""
        with _GUARD:
            self.users -= 1
            if not self.users:
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
    """Whether it is Milvus Lite, here or at an address."""
    turn: AbstractContextManager[Any]
    """Held during a call."""
    unflushed: dict[str, int] = field(default_factory=dict)
    """Rows that this process has written to each collection since Milvus Lite's last flush."""


class Connection:
    """One connection for all threads. After `close` the next call connects again."""

    def __init__(self, settings: MilvusSettings) -> None:
        self._settings = settings
        self._connecting = threading.Lock()
        self._link: Link | None = None

    @contextmanager
    def use(self) -> Iterator[Link]:
        """Give the client for one call, and map its errors. Milvus Lite gets one call at a time."""
        with _map_errors(self._settings):
            with self._connecting:
                if self._link is None:
                    self._link = self._connect()
                link = self._link
            with link.turn:
                yield link

    def close(self) -> None:
        """Disconnect, and stop Milvus Lite unless another store uses it."""
        with self._connecting, _map_errors(self._settings):
            link, self._link = self._link, None
            if link is None:
                return
            try:
                with link.turn:
                    link.client.close()
            finally:
                if link.lite is not None:
                    link.lite.release()

    def _connect(self) -> Link:
        settings = self._settings
        client_class = import_client()
        lite = None if settings.is_server else LiteServer.acquire(settings.uri)
        client = None
        try:
            client = client_class(
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
            # Without the traceback, whose local variables hold the token.
            raise error.with_traceback(None) from None
        if lite is not None:
            return Link(client, lite, True, lite.turn, lite.unflushed)
        return Link(client, None, is_lite, threading.RLock() if is_lite else nullcontext())


def import_client() -> Any:
    """Import pymilvus. It takes a second, and must not read the file `.env` into the environment."""
    before = os.environ.get("PYTHON_DOTENV_DISABLED")
    os.environ["PYTHON_DOTENV_DISABLED"] = "1"
    try:
        from pymilvus import MilvusClient  # type: ignore[import-untyped]
    finally:
        if before is None:
            del os.environ["PYTHON_DOTENV_DISABLED"]
        else:
            os.environ["PYTHON_DOTENV_DISABLED"] = before
    # It also logs what it raises: refused requests and failed attempts to connect.
    logging.getLogger("pymilvus.decorators").setLevel(logging.CRITICAL)
    logging.getLogger("pymilvus.client").setLevel(logging.ERROR)
    return MilvusClient


@contextmanager
def _map_errors(settings: MilvusSettings) -> Iterator[None]:
    """Raise ``StoreError`` or ``StoreBusy``, without the token, for every error of the block.

    The caller's mistakes are found before, so a ``ValueError`` in the block is the client's.
    """
    try:
        yield
    except (PorticoError, WrongDimensions):
        raise
    except Exception as error:  # noqa: BLE001 - the client raises its own, gRPC's and those of what it packs rows with
        mapped = _map_error(settings, error)
        # A server may quote the token, and a traceback shows the cause.
        raise mapped from (None if Secret.redact(str(error), [settings.token]) != str(error) else error)


def _map_error(settings: MilvusSettings, error: Exception) -> StoreError:
    place = f"The Milvus server {settings.uri}" if settings.is_server else f"Milvus Lite in {settings.uri}"
    if isinstance(error, ImportError) and not settings.is_server:
        return StoreError(f"{place} cannot run: {error}. Run `pip install 'portico-milvus[lite]'`.")
    if type(error).__name__ == "DataDirLockedError":
        return StoreBusy(
            f"{place} is in use by another process, and Milvus Lite lets only one in. Stop that one, or run "
            "`milvus-lite server --host 127.0.0.1` and set its address as `uri`."
        )
    details = getattr(error, "details", None)
    said = details() if callable(details) else getattr(error, "message", None) or str(error) or type(error).__name__
    words = Secret.redact(" ".join(str(said).split()).rstrip("."), [settings.token])[:_LONGEST_MESSAGE]
    advice = "If it is out of reach, slow, or refuses you, correct `uri`, `timeout` or `token` in [vectors.milvus]."
    return StoreError(f"{place} failed: {words}. {advice}")
