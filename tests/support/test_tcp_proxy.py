"""A proxy holds back, loses and ends what it is told to, and leaves nothing behind, whatever its connections are at."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.tcp_proxy import TcpProxy

MOMENT = 0.1


@pytest.fixture(params=["address", "file"])
def server(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    """Give a socket that listens, at an address of loopback or in a file."""
    if request.param == "address":
        with socket.create_server(("127.0.0.1", 0)) as listening:
            yield listening
        return
    # The name of a socket may be no longer than about a hundred bytes.
    with tempfile.TemporaryDirectory(prefix="portico-") as folder, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{folder}/server")
        listening.listen()
        yield listening


@pytest.fixture
def proxy(server: socket.socket) -> Iterator[TcpProxy]:
    """Give a proxy before the server."""
    at = server.getsockname()
    with TcpProxy(Path(at) if isinstance(at, str) else at) as proxy:
        yield proxy


def connected(proxy: TcpProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=5)


def accepted(server: socket.socket) -> socket.socket:
    server.settimeout(5)
    far, _ = server.accept()
    far.settimeout(5)
    return far


def silent(end: socket.socket) -> bool:
    end.settimeout(MOMENT)
    try:
        end.recv(1)
    except TimeoutError:
        return True
    finally:
        end.settimeout(5)
    return False


def test_what_is_held_back_comes_in_order_when_it_goes_on(proxy: TcpProxy, server: socket.socket) -> None:
    with connected(proxy) as near, accepted(server) as far:
        proxy.stall()
        near.sendall(b"ask")
        far.sendall(b"answer")
        assert silent(near)
        assert silent(far)
        proxy.go_on()
        assert (far.recv(10), near.recv(10)) == (b"ask", b"answer")


def test_who_connects_while_it_is_stalled_is_kept_waiting(proxy: TcpProxy, server: socket.socket) -> None:
    proxy.stall()
    with connected(proxy) as near:
        near.sendall(b"ask")
        server.settimeout(MOMENT)
        with pytest.raises(TimeoutError):
            server.accept()
        proxy.go_on()
        with accepted(server) as far:
            assert far.recv(10) == b"ask"


def test_lost_answers_are_lost_until_connections_are_cut(proxy: TcpProxy, server: socket.socket) -> None:
    proxy.lose_answers()
    with connected(proxy) as near, accepted(server) as far:
        near.sendall(b"ask")
        assert far.recv(10) == b"ask"
        far.sendall(b"answer")
        assert silent(near)
        proxy.cut()
        with contextlib.suppress(ConnectionResetError):
            assert near.recv(10) == b""
        assert far.recv(10) == b""
    with connected(proxy) as near, accepted(server) as far:
        far.sendall(b"answer")
        assert near.recv(10) == b"answer"


def test_one_end_that_closes_closes_the_other(proxy: TcpProxy, server: socket.socket) -> None:
    with connected(proxy) as near, accepted(server) as far:
        near.close()
        assert far.recv(1) == b""
    with connected(proxy) as near, accepted(server) as far:
        far.close()
        assert near.recv(1) == b""


def test_without_a_server_a_connection_ends_at_once(server: socket.socket, proxy: TcpProxy) -> None:
    server.close()
    with connected(proxy) as near, contextlib.suppress(ConnectionResetError):
        assert near.recv(1) == b""


@pytest.mark.parametrize("stalled", [False, True])
@pytest.mark.parametrize("moment", [0.0, 0.01])
def test_it_leaves_nothing_behind(server: socket.socket, stalled: bool, moment: float) -> None:
    before = set(threading.enumerate())
    at = server.getsockname()
    with TcpProxy(Path(at) if isinstance(at, str) else at) as proxy:
        if stalled:
            proxy.stall()
        ends = [connected(proxy) for _ in range(3)]
        for end in ends:
            end.sendall(b"x" * 1_000_000 if moment else b"x")
        threading.Event().wait(moment)
    for end in ends:
        with end, contextlib.suppress(ConnectionResetError):
            assert end.recv(1) == b""
    assert set(threading.enumerate()) == before
    # Whatever it had left open would warn of itself here, and a warning is a failure.
    gc.collect()


async def test_what_it_is_told_has_happened_when_the_call_is_over(proxy: TcpProxy, server: socket.socket) -> None:
    for _ in range(20):
        with connected(proxy) as near, accepted(server) as far:
            proxy.stall()
            near.sendall(b"x")
            await asyncio.sleep(0.002)
            far.setblocking(False)
            with pytest.raises(BlockingIOError):
                far.recv(1)
            proxy.go_on()
