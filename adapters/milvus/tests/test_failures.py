"""What goes wrong comes out as an error of Portico's that says what to do, and shows no secret."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path

import grpc
import pytest
from milvus_lite.adapter.grpc.server import start_server_in_thread
from pymilvus.grpc_gen import common_pb2, milvus_pb2, milvus_pb2_grpc

from portico import VectorRecord, Vectors
from portico.errors import StoreBusy, StoreError
from portico.plugins import Secret
from portico_milvus.config import MilvusSettings
from portico_milvus.store import MilvusVectorStore

ROW = Vectors.from_rows([(1, 0)])
PASSWORD = "s3cret-Pa55word"
TOKEN = f"somebody:{PASSWORD}"

WRITER = """
import asyncio, sys
from portico import VectorRecord, Vectors
from portico_milvus.config import MilvusSettings
from portico_milvus.store import MilvusVectorStore

async def main(folder):
    store = MilvusVectorStore(MilvusSettings(uri=folder))
    rows = Vectors.from_rows([(1, number) for number in range(300)])
    for batch in range(10_000):
        await store.upsert("n", [VectorRecord(f"{batch}-{number}", {"batch": batch}) for number in range(300)], rows)
        if batch % 3 == 2:
            await store.search("n", rows.slice(0, 1))
        print(batch, flush=True)

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.timeout(300)  # the other process imports pymilvus and pandas anew, which a busy machine makes long
async def test_what_a_killed_process_wrote_is_whole_and_another_process_has_to_wait_for_it(tmp_path: Path) -> None:
    folder = str(tmp_path / "vectors.db")
    with subprocess.Popen([sys.executable, "-c", WRITER, folder], stdout=subprocess.PIPE, text=True) as writer:
        try:
            said = [await asyncio.to_thread(writer.stdout.readline) for _ in range(2)]
            store = MilvusVectorStore(MilvusSettings(uri=folder))
            with pytest.raises(StoreBusy, match=r"in use by another process.*milvus-lite server"):
                await store.count("n")
            said += [await asyncio.to_thread(writer.stdout.readline) for _ in range(4)]
        finally:
            os.kill(writer.pid, signal.SIGKILL)
    written = int(said[-1]) + 1
    count = await store.count("n")
    assert count % 300 == 0
    assert count >= written * 300
    assert sorted([id async for id in store.ids("n")]) == sorted(
        f"{batch}-{number}" for batch in range(count // 300) for number in range(300)
    )
    [found] = await store.search("n", ROW, top=count)
    assert len(found) == count
    await store.aclose()


async def test_two_stores_share_a_folder_and_the_last_one_lets_go_of_it(tmp_path: Path) -> None:
    settings = MilvusSettings(uri=str(tmp_path / "vectors.db"))
    one, other = MilvusVectorStore(settings), MilvusVectorStore(settings)
    await one.upsert("n", [VectorRecord("a")], ROW)
    await other.upsert("n", [VectorRecord("b")], ROW)
    await one.aclose()
    assert await other.count("n") == 2
    await other.aclose()
    script = "import sys; from milvus_lite import MilvusLite; MilvusLite(sys.argv[1]).close()"
    subprocess.run([sys.executable, "-c", script, settings.uri], check=True)


async def test_without_milvus_lite_a_folder_says_what_to_install(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "milvus_lite.adapter.grpc.server", None)
    store = MilvusVectorStore(MilvusSettings(uri=str(tmp_path / "vectors.db")))
    with pytest.raises(StoreError, match=r"pip install 'portico-milvus\[lite\]'"):
        await store.count("n")
    await store.aclose()


async def test_nobody_at_an_address_says_where_to_look(unused_tcp_port: int, capfd) -> None:
    settings = MilvusSettings(uri=f"http://127.0.0.1:{unused_tcp_port}", connect_timeout=0.5)
    store = MilvusVectorStore(settings)
    with pytest.raises(StoreError, match=f"127.0.0.1:{unused_tcp_port} .*`uri`"):
        await store.search("n", ROW)
    await store.aclose()
    assert capfd.readouterr().err == ""


async def test_a_server_that_was_restarted_is_found_again(tmp_path: Path, capfd) -> None:
    server, database, port = start_server_in_thread(str(tmp_path))
    store = MilvusVectorStore(MilvusSettings(uri=f"http://127.0.0.1:{port}", timeout=5, connect_timeout=2))
    await store.upsert("n", [VectorRecord("a")], ROW)
    server.stop(grace=0).wait()
    database.close()
    with pytest.raises(StoreError, match=r"out of reach.*correct `uri`"):
        await store.search("n", ROW)
    server, database, port = start_server_in_thread(str(tmp_path), port=port)
    for _ in range(100):
        with contextlib.suppress(StoreError):  # gRPC waits a second before it tries again
            [found] = await store.search("n", ROW)
            break
        await asyncio.sleep(0.2)
    assert [match.id for match in found] == ["a"]
    await store.aclose()
    server.stop(grace=0).wait()
    database.close()
    assert "Traceback" not in capfd.readouterr().err


async def test_a_collection_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    store = MilvusVectorStore(MilvusSettings(uri=str(tmp_path / "vectors.db")))
    with store._connection.use() as link:
        link.client.create_collection("portico_n", dimension=2)
    for call in (store.upsert("n", [VectorRecord("a")], ROW), store.search("n", ROW), store.count("n")):
        with pytest.raises(StoreError, match=r"collection portico_n has other fields.*`prefix`"):
            await call
    await store.aclose()


class Repeating(milvus_pb2_grpc.MilvusServiceServicer):
    """A server that lets everybody in and repeats, in each answer, what it was told in secret."""

    def Connect(self, request, context):  # noqa: N802 - the protocol's name
        return milvus_pb2.ConnectResponse(status=common_pb2.Status(code=0), identifier=1)

    def GetVersion(self, request, context):  # noqa: N802 - the protocol's name
        return milvus_pb2.GetVersionResponse(status=common_pb2.Status(code=0), version="2.6.0")

    def DescribeCollection(self, request, context):  # noqa: N802 - the protocol's name
        [sent] = [value for name, value in context.invocation_metadata() if name == "authorization"]
        told = base64.b64decode(sent).decode()
        if request.collection_name.endswith("refused"):
            context.abort(grpc.StatusCode.UNAUTHENTICATED, f"auth check failure for {told}")
        password = told.partition(":")[2]
        return milvus_pb2.DescribeCollectionResponse(status=common_pb2.Status(code=65_535, reason=f"no: {password}"))


@pytest.fixture
def repeating() -> Iterator[str]:
    server = grpc.server(futures.ThreadPoolExecutor(2))
    milvus_pb2_grpc.add_MilvusServiceServicer_to_server(Repeating(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"http://127.0.0.1:{port}"
    server.stop(grace=None).wait()


@pytest.mark.parametrize(("namespace", "words"), [("n", "failed: no: "), ("refused", "`token` in ")])
async def test_a_token_that_the_server_repeats_is_shown_nowhere(repeating, namespace, words, caplog, capfd) -> None:
    caplog.set_level(logging.DEBUG)
    store = MilvusVectorStore(MilvusSettings(uri=repeating, token=Secret(TOKEN)))
    with pytest.raises(StoreError, match=words) as caught:
        await store.count(namespace)
    await store.aclose()
    shown = "".join(traceback.format_exception(caught.value)) + caplog.text + repr(store._settings)
    shown += "".join(capfd.readouterr())
    assert PASSWORD not in shown
    assert TOKEN not in shown
    assert base64.b64encode(TOKEN.encode()).decode() not in shown


async def test_no_token_is_in_the_variables_of_the_traceback_of_a_server_that_is_not_there(unused_tcp_port) -> None:
    settings = MilvusSettings(uri=f"http://127.0.0.1:{unused_tcp_port}", token=Secret(TOKEN), connect_timeout=0.5)
    store = MilvusVectorStore(settings)
    with pytest.raises(StoreError) as caught:
        await store.count("n")
    await store.aclose()
    seen, errors = [], []
    error = caught.value
    while error is not None and error not in errors:
        errors.append(error)
        for frame, _ in traceback.walk_tb(error.__traceback__):
            seen += [name for name, value in frame.f_locals.items() if isinstance(value, str) and PASSWORD in value]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert seen == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"uri": "  "}, "uri is empty"),
        ({"uri": f"http://me:{PASSWORD}@localhost:19530"}, "user name or password"),
        ({"uri": f"htp://me:{PASSWORD}@localhost:19530"}, "user name or password"),
        ({"uri": "tcp://localhost:19530"}, "uri is of the form"),
        ({"uri": f"http://me:{PASSWORD}\u2100@localhost:19530"}, "uri is no address"),
        ({"uri": "http://[::1"}, "uri is no address"),
        ({"uri": f"me:{PASSWORD}@localhost:19530"}, "an address without http://"),
        ({"uri": "localhost:19530"}, "an address without http://"),
        ({"uri": f"http://localhost:19530?token={PASSWORD}"}, "uri is of the form"),
        ({"uri": "http://localhost:195300"}, "uri is no address"),
        ({"uri": "vectors.db", "token": Secret(TOKEN)}, "token is for a server"),
        ({"uri": "http://localhost", "token": Secret(" ")}, "token is empty"),
        ({"uri": "vectors.db", "prefix": "a_b"}, "prefix takes"),
        ({"uri": "vectors.db", "database": "a-b"}, "database takes"),
        ({"uri": "vectors.db", "consistency": "none"}, "consistency"),
        ({"uri": "vectors.db", "index": "flat"}, "index"),
        ({"uri": "vectors.db", "timeout": 0}, "timeout"),
        ({"uri": "vectors.db", "connect_timeout": float("nan")}, "connect_timeout"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_are_refused_without_a_secret(settings, words) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        MilvusSettings(**settings)
    assert PASSWORD not in str(caught.value)


def test_every_setting_says_what_it_is() -> None:
    for attribute in MilvusSettings.__attrs_attrs__:
        assert attribute.metadata["doc"].endswith("."), attribute.name


def test_the_environment_stays_as_it_is_when_the_client_is_imported() -> None:
    script = """
import os, dotenv
read = []
dotenv.main.dotenv_values, before = None, dict(os.environ)
dotenv.main.find_dotenv = lambda *given, **more: read.append(given) or ""
from portico_milvus._connection import import_client
import_client()
print(read, dict(os.environ) == before)
"""
    printed = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert (printed.stdout, printed.stderr) == ("[] True\n", "")
