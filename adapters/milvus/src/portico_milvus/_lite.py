"""Milvus Lite, which serves a folder to this process: a server in threads of it, on a port of the loopback address."""

from __future__ import annotations

import logging
import os
import threading
from typing import Any

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
        """Stop the server when nobody uses it any more; what is in memory is then in files."""
        with _GUARD:
            self.users -= 1
            if self.users:
                return
            del _RUNNING[self._folder]
            self._server.stop(grace=2).wait()
            self._database.close()
