"""The runs and conversations of `portico serve` behind a real server, with a package of functions made for it."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from tests.support.packages import WORKSHOP, install_package

import portico_host
from portico_serve._api.routes import routes
from portico_serve._desk import Desk, open_desk as serve_desk

ROOT = Path(__file__).parents[2]
CONFIGURATION = """
[planner]
use = "obedient"
[chat]
use = "parrot"
[functions.tools]
use = "tools"
[search.shelf]
use = "shelf"
[runs]
use = "sqlite"
[runs.sqlite]
path = "runs.sqlite3"
"""
PATIENCE = 60.0


def install_workshop(folder: Path) -> Path:
    """Put the package and a configuration into a folder; return where Python finds the package."""
    site = folder / "site"
    install_package(site, WORKSHOP)
    (folder / "portico.toml").write_text(CONFIGURATION)
    return site


def enter_workshop(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with the package, as every process of a test does."""
    monkeypatch.syspath_prepend(str(install_workshop(folder)))
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))


def environment_of(folder: Path) -> dict[str, str]:
    """Return the environment of another process of the workshop."""
    own = {"PYTHONPATH": os.pathsep.join([str(folder / "site"), str(ROOT)]), "XDG_STATE_HOME": str(folder / "state")}
    return {**os.environ, **own}


@asynccontextmanager
async def open_desk(folder: Path) -> AsyncIterator[Desk]:
    """Open the kernel of a folder, with its runs and conversations."""
    application = portico_host.load(folder / "portico.toml")
    async with application.kernel() as kernel, serve_desk(application, kernel, application.sources) as desk:
        yield desk


@dataclass
class Client:
    """A client of the API, and the desk behind it."""

    http: httpx.AsyncClient
    desk: Desk

    async def get(self, path: str, status: int = 200, **query: Any) -> Any:
        """Return what a path answers."""
        return _body(await self.http.get(f"/api{path}", params=query), status)

    async def post(self, path: str, status: int, body: Any = None) -> Any:
        """Return what a path answers to a body."""
        return _body(await self.http.post(f"/api{path}", json={} if body is None else body), status)

    async def start(self, *plans: Mapping[str, Any], approve: str = "effects", **goal: Any) -> str:
        """Begin a run of a goal that has its plans in it; return the name of the run."""
        asked = json.dumps({"plans": plans, **goal})
        started = await self.post("/runs", 201, {"goal": asked, "approve": approve})
        return str(started["run"])

    async def until(self, run: str, *states: str) -> dict[str, Any]:
        """Return a run when it is in one of the states and no process has it."""
        async with asyncio.timeout(PATIENCE):
            while True:
                found: dict[str, Any] = await self.get(f"/runs/{run}")
                if found["state"] in states and not found["here"]:
                    return found
                await asyncio.sleep(0.02)

    @asynccontextmanager
    async def events(self, path: str) -> AsyncIterator[AsyncIterator[tuple[str, Any]]]:
        """Read a stream of events as long as the block."""
        async with self.http.stream("GET", f"/api{path}/events", timeout=PATIENCE) as response:
            assert response.status_code == 200
            assert response.headers["content-type"].startswith("text/event-stream")
            yield read_events(response.aiter_lines())


async def read_events(lines: AsyncIterator[str]) -> AsyncIterator[tuple[str, Any]]:
    """Yield the events of a stream."""
    event = ""
    async for line in lines:
        if line.startswith("event: "):
            event = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield event, json.loads(line.removeprefix("data: "))


def _body(response: httpx.Response, status: int) -> Any:
    assert response.status_code == status, response.text
    return response.json() if response.content else None


@asynccontextmanager
async def served(desk: Desk) -> AsyncIterator[Client]:
    """Serve a desk on loopback, and yield a client."""
    server = uvicorn.Server(
        uvicorn.Config(Starlette(routes=routes(desk)), log_level="error", lifespan="off", timeout_graceful_shutdown=5)
    )
    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = asyncio.create_task(server.serve([listening]))
        try:
            url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            limits = httpx.Limits(max_connections=None)
            async with httpx.AsyncClient(base_url=url, timeout=PATIENCE, limits=limits) as http:
                yield Client(http, desk)
        finally:
            desk.runs.close_streams()
            desk.chats.close_streams()
            server.should_exit = True
            await serving


@asynccontextmanager
async def workshop(folder: Path) -> AsyncIterator[Client]:
    """Open and serve the desk of a folder."""
    async with open_desk(folder) as desk, served(desk) as client:
        yield client


def command_line(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start the command line as another process."""
    return subprocess.Popen(
        [sys.executable, "-m", "portico_cli", *arguments],
        cwd=folder,
        env=environment_of(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def step(id: str, function: str, *, after: Sequence[str] = (), **arguments: Any) -> dict[str, Any]:
    """Return a step of a plan in JSON; an argument that is an object is an expression."""
    given = {name: each if isinstance(each, dict) else {"value": each} for name, each in arguments.items()}
    return {"id": id, "function": function, "arguments": given, **({"after": list(after)} if after else {})}


def plan(*steps: Mapping[str, Any], result: str | None = None) -> dict[str, Any]:
    """Return a plan in JSON, whose result is that of one of its steps."""
    return {"steps": list(steps), **({"result": {"from": result}} if result is not None else {})}


async def eventually(true: Callable[[], object]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(PATIENCE):
        while not true():
            await asyncio.sleep(0.02)


@asynccontextmanager
async def another_server(folder: Path) -> AsyncIterator[tuple[httpx.AsyncClient, subprocess.Popen[bytes]]]:
    """Serve a folder by another process, and yield a client and the process."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tests.support.desks", str(folder), str(port)]
    environment = environment_of(folder)
    with subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True) as process:
        try:
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as http:
                async with asyncio.timeout(PATIENCE):
                    while True:
                        try:
                            await http.get("/api/about")
                            break
                        except httpx.ConnectError:
                            await asyncio.sleep(0.05)
                yield http, process
        finally:
            process.kill()


async def _serve(folder: Path, port: int) -> None:
    async with open_desk(folder) as desk:
        app = Starlette(routes=routes(desk))
        await uvicorn.Server(uvicorn.Config(app, port=port, log_level="error", lifespan="off")).serve()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), int(sys.argv[2])))
