"""The tests cannot reach beyond this machine, nor into the user's folders."""

from __future__ import annotations

import asyncio
import os
import socket
from collections import Counter
from pathlib import Path

import pytest


def test_a_connection_beyond_this_machine_is_refused() -> None:
    with pytest.raises(Exception, match="only loopback"):
        socket.create_connection(("192.0.2.1", 80), timeout=1)


async def test_an_asynchronous_connection_is_refused_too() -> None:
    with pytest.raises(Exception, match="only loopback"):
        await asyncio.open_connection("192.0.2.1", 80)


def test_a_datagram_is_refused() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender, pytest.raises(Exception, match="only loopback"):
        sender.sendto(b"hello", ("192.0.2.1", 53))


def test_a_name_is_not_looked_up() -> None:
    with pytest.raises(Exception, match="only loopback"):
        socket.getaddrinfo("example.org", 80)


async def test_loopback_works() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(answer, "localhost", 0) as server:
        reader, writer = await asyncio.open_connection("localhost", server.sockets[0].getsockname()[1])
        writer.write(b"hello\n")
        assert await reader.readline() == b"hello\n"
        writer.close()
        await writer.wait_closed()


def test_the_home_folder_is_not_the_users(outer_environment: dict[str, str]) -> None:
    assert Path.home() == Path(os.environ["HOME"])
    assert outer_environment.get("HOME") != os.environ["HOME"]
    assert not [name for name in os.environ if name.startswith("PORTICO_")]


def test_whatever_tests_are_called_they_are_called_in_every_process(request: pytest.FixtureRequest) -> None:
    """pytest-xdist deals them out by name: one of two of a name would not be run, one with an address is nowhere."""
    names = Counter(item.nodeid for item in request.session.items)
    assert [name for name, count in names.items() if count > 1] == []
    assert [name for name in names if " at 0x" in name] == [], "give parametrize ids= of your own"


def test_what_is_run_by_one_process_is_there(request: pytest.FixtureRequest, root: Path) -> None:
    conftest = request.config.pluginmanager.get_plugin(str(root / "conftest.py"))
    assert conftest is not None
    assert [place for place in conftest.TOGETHER if not list(root.glob(f"{place}*"))] == []
