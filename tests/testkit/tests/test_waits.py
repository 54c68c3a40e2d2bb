"""What makes an event loop's own thread wait is noted, however it was imported; what is awaited is not."""

from __future__ import annotations

import asyncio
import concurrent.futures
import http.server
import os
import queue
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import types
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from time import sleep as paused

import httpx
import pytest

from portico_testkit._waits import waits_noted

NOTHING = (sys.executable, "-S", "-c", "")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    class Quiet(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_args: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        serving.join()


def open_url(url: str) -> None:
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url).close()


def in_a_thread() -> None:
    with concurrent.futures.ThreadPoolExecutor() as pool:
        pool.submit(paused, 0.02).result()


def from_a_queue() -> None:
    items: queue.Queue[int] = queue.Queue()
    timer = threading.Timer(0.02, items.put, [1])
    timer.start()
    items.get()


def for_a_thread() -> None:
    thread = threading.Thread(target=paused, args=(0.02,))
    thread.start()
    thread.join()


def syncs_a_file() -> None:
    with tempfile.TemporaryFile() as file:
        os.fsync(file.fileno())


def locks_a_file() -> None:
    fcntl = pytest.importorskip("fcntl", reason="this system has no such locks")
    with tempfile.TemporaryFile() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        fcntl.flock(file, fcntl.LOCK_UN)


def opens_a_database() -> None:
    with tempfile.TemporaryDirectory() as folder:
        sqlite3.connect(f"{folder}/runs").close()


WAITS: dict[str, tuple[Callable[[str], object], str]] = {
    "a pause": (lambda url: time.sleep(0.001), "time.sleep"),
    "a pause that was imported by its name": (lambda url: paused(0.001), "time.sleep"),
    "a request": (open_url, "socket.connect"),
    "a request of a vendor's library": (lambda url: httpx.get(url, trust_env=False), "socket.connect"),
    "a name": (lambda url: socket.getaddrinfo("localhost", 80), "socket.getaddrinfo"),
    "a process": (lambda url: subprocess.check_call(NOTHING), "Popen.wait"),
    "what a process says": (lambda url: subprocess.run(NOTHING, capture_output=True, check=True), "Popen.communicate"),
    "a command": (lambda url: os.system("true"), "os.system"),
    "the result of another thread": (lambda url: in_a_thread(), "Condition.wait"),
    "a queue": (lambda url: from_a_queue(), "Condition.wait"),
    "the disk": (lambda url: syncs_a_file(), "os.fsync"),
    "the lock of a file": (lambda url: locks_a_file(), "fcntl.flock"),
    "a database": (lambda url: opens_a_database(), "sqlite3.connect"),
    "the end of a thread": (lambda url: for_a_thread(), "Thread.join"),
}


@pytest.mark.parametrize("case", WAITS)
def test_a_call_that_waits_is_noted_with_its_place(case: str, url: str) -> None:
    work, name = WAITS[case]
    with waits_noted() as waits:
        work(url)
    assert [wait for wait in waits if wait.startswith(f"{name} in ")], f"it noted {waits}"
    file = "httpcore" if "vendor" in case else "test_waits.py"
    assert all(file in wait for wait in waits), f"a place is another: {waits}"
    known = list(waits)
    work(url)
    assert waits == known, "it goes on noting after the block"


async def asks(url: str) -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        await client.get(url)


async def starts(url: str) -> None:
    process = await asyncio.create_subprocess_exec(*NOTHING)
    await process.wait()


async def connects(url: str) -> None:
    reader, writer = await asyncio.open_connection("localhost", int(url.rpartition(":")[2].strip("/")))
    writer.write(b"GET / HTTP/1.0\r\n\r\n")
    await reader.read()
    writer.close()
    await writer.wait_closed()


async def serves(url: str) -> None:
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        await asyncio.sleep(0.001)


async def computes_elsewhere(url: str) -> None:
    await asyncio.gather(*(asyncio.to_thread(open_url, url) for _ in range(3)), asyncio.to_thread(time.sleep, 0.01))


async def begins_a_thread(url: str) -> None:
    done = asyncio.Event()
    loop = asyncio.get_running_loop()
    threading.Thread(target=lambda: (time.sleep(0.01), loop.call_soon_threadsafe(done.set))).start()
    await done.wait()


async def does_not_wait(url: str) -> None:
    time.sleep(0)
    with pytest.raises(queue.Empty):
        queue.Queue[int]().get(block=False)
    for_ended = threading.Thread(target=int)
    for_ended.start()
    while for_ended.is_alive():
        await asyncio.sleep(0)
    for_ended.join()
    sqlite3.connect(":memory:").close()


async def locks_what_is_free(url: str) -> None:
    fcntl = pytest.importorskip("fcntl", reason="this system has no such locks")
    with tempfile.TemporaryFile() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(file, fcntl.LOCK_UN)


FREE = (asks, starts, connects, serves, computes_elsewhere, begins_a_thread, does_not_wait, locks_what_is_free)


@pytest.mark.parametrize("work", FREE, ids=lambda work: work.__name__)
async def test_what_is_awaited_or_waits_in_another_thread_is_not_noted(
    work: Callable[[str], Awaitable[None]], url: str
) -> None:
    with waits_noted() as waits:
        await work(url)
    assert waits == []


def test_a_module_that_is_imported_meanwhile_is_watched_in_the_next_block_too() -> None:
    module = types.ModuleType("portico_imported_meanwhile")
    source = "from time import sleep\ndef pause(): sleep(0.001)\n"
    with waits_noted() as first:
        exec(source, vars(module))  # as an import does
        vars(module)["pause"]()
    with waits_noted() as second:
        vars(module)["pause"]()
    vars(module)["pause"]()
    assert len(first) == len(second) == 1


def test_afterwards_everything_is_as_before_and_an_error_comes_out_as_it_is() -> None:
    def state() -> tuple[object, ...]:
        return time.sleep, paused, socket.getaddrinfo, dict(vars(socket.socket)), dict(vars(subprocess.Popen))

    before = state()
    with pytest.raises(KeyError, match="mine"), waits_noted():
        assert time.sleep is not before[0]
        raise KeyError("mine")
    assert state() == before


def test_a_block_within_another_notes_by_itself() -> None:
    with waits_noted() as outer:
        with waits_noted() as inner:
            time.sleep(0.001)
        assert (len(outer), len(inner)) == (0, 1)
        time.sleep(0.001)
    assert len(outer) == 1


def test_what_a_test_has_replaced_is_called_and_is_not_called_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    with monkeypatch.context() as patch:
        patch.setattr(time, "sleep", slept.append)
        with waits_noted() as waits:
            time.sleep(60)
    assert (len(waits), slept) == (1, [60])
    with waits_noted() as waits:
        time.sleep(0.001)
    assert (len(waits), slept) == (1, [60])
