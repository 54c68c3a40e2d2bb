"""`portico serve` as a process: what it prints, where it listens, and how it ends."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from tests.support.command_line import run_command
from tests.support.desks import environment_of, install_workshop, plan, step
from tests.support.processes import PATIENCE, killed_at_the_end
from tests.support.terminal import CTRL_C, at_terminal

TOKEN = "a-token-of-programs-0123456789"
WAITS = json.dumps({"plans": [plan(step("s1", "tools-wait", text="hey"), result="s1")]})

pytestmark = pytest.mark.process


@dataclass
class Server:
    """The process, and what it has written."""

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def address(self) -> str:
        """The newest address with a token."""
        return self.lines[-1].strip()

    @property
    def url(self) -> str:
        """The address without it."""
        return self.address.partition("/?")[0]

    def until(self, lines: int) -> None:
        """Wait for lines on standard output."""
        given_up = time.monotonic() + PATIENCE
        while len(self.lines) < lines:
            if self.process.poll() is not None or time.monotonic() > given_up:
                pytest.fail("".join(self.errors))
            time.sleep(0.02)

    @contextmanager
    def client(self) -> Iterator[httpx.Client]:
        """Yield a browser with a session."""
        with httpx.Client(base_url=self.url, headers={"origin": self.url}, timeout=PATIENCE) as client:
            assert client.get(self.address).status_code == 303
            yield client

    def stop(self, *signals: int) -> int:
        """Send signals and wait for the end."""
        for each in signals:
            self.process.send_signal(each)
        return self.process.wait(PATIENCE)


@contextmanager
def serve(folder: Path, *options: str, **variables: str) -> Iterator[Server]:
    """Start the command in a folder, and wait for its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "portico_cli", "serve", *options],
        cwd=folder,
        env={**environment_of(folder), **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    server = Server(process)
    with killed_at_the_end(process):
        readers = [
            threading.Thread(target=lambda: server.lines.extend(process.stdout or ())),
            threading.Thread(target=lambda: server.errors.extend(process.stderr or ())),
        ]
        for each in readers:
            each.start()
        try:
            server.until(1)
            yield server
        finally:
            process.terminate()
            process.wait(PATIENCE)
            for each in readers:
                each.join()


def refused(folder: Path, *options: str, env: Mapping[str, str] | None = None) -> str:
    """Return the error of a command that does not begin to serve."""
    code, out, error = run_command("serve", *options, cwd=folder, env={**environment_of(folder), **(env or {})})
    assert (code, out) == (2, b"")
    assert b"Traceback" not in error
    return error.decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the workshop."""
    install_workshop(tmp_path)
    return tmp_path


def test_the_address_is_alone_on_a_line_and_everything_else_is_an_error(folder: Path) -> None:
    with serve(folder, "--port", "0") as server:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{43}\n", server.lines[0])
        with server.client() as client:
            assert client.get("/api/about").json()["sources"][0]["name"] == "shelf"
            assert client.get("/api/runs?limit=nothing&secret=abc").status_code == 422
        server.until(2)
        tokens = [line.partition("token=")[2].strip() for line in server.lines]
        assert len(set(tokens)) == 2
        assert server.stop(signal.SIGINT) == 0

    errors = "".join(server.errors)
    assert not any(each in errors for each in (*tokens, "Traceback", "GET ", "INFO"))


def test_folders_are_read_before_the_address_is_printed(folder: Path) -> None:
    (folder / "docs").mkdir()
    (folder / "docs" / "otters.md").write_text("# Otters\n\nOtters swim.\n")
    with serve(folder, "--port", "0", "--docs", "docs") as server, server.client() as client:
        names = [each["name"] for each in client.get("/api/about").json()["sources"]]
        run = client.post("/api/runs", json={"goal": json.dumps({"plans": []}), "sources": ["docs"]})

    assert names == ["shelf", "docs"]
    assert run.status_code == 201


@pytest.mark.parametrize("configured", [False, True])
def test_the_trace_of_a_run_comes_from_the_file_that_is_written(folder: Path, configured: bool) -> None:
    if configured:
        with (folder / "portico.toml").open("a") as file:
            file.write('[observers.opentelemetry]\nfile = "spans.jsonl"\n')
    options = () if configured else ("--trace", "spans.jsonl")
    with serve(folder, "--port", "0", *options) as server, server.client() as client:
        run = client.post("/api/runs", json={"goal": json.dumps({"plans": []})}).json()["run"]
        given_up = time.monotonic() + PATIENCE
        while client.get(f"/api/runs/{run}/trace").json()["from"] != "trace":
            assert time.monotonic() < given_up
            time.sleep(0.05)

    assert (folder / "spans.jsonl").exists()


def test_one_port_is_served_by_one_server(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        error = refused(folder, "--port", str(port))

    assert f"127.0.0.1:{port}" in error
    assert error.count("\n") == 1


def test_without_a_wish_a_taken_port_is_passed_over(folder: Path) -> None:
    with serve(folder) as first, serve(folder) as second:
        assert first.url != second.url
        # Both are at one host, and a browser sends the cookies of one to the other.
        with first.client() as client, second.client() as other:
            client.cookies.update(other.cookies)
            assert client.get(f"{first.url}/api/runs").status_code == 200
            assert client.get(f"{second.url}/api/runs").status_code == 200


@pytest.mark.parametrize("signals", [(signal.SIGINT,), (signal.SIGINT, signal.SIGINT), (signal.SIGTERM,)], ids=str)
def test_the_end_ends_streams_and_interrupts_runs(folder: Path, signals: tuple[int, ...]) -> None:
    with serve(folder, "--port", "0") as server, server.client() as client:
        run = client.post("/api/runs", json={"goal": WAITS}).json()["run"]
        with client.stream("GET", f"/api/runs/{run}/events") as events:
            lines = events.iter_lines()
            assert next(line for line in lines if line.startswith("event:")) == "event: snapshot"
            code = server.stop(*signals)
            # It ends as a whole answer does: a broken one would raise here.
            assert list(lines) is not None

    assert code == 0
    assert "Traceback" not in "".join(server.errors)
    _, out, _ = run_command("runs", run, "--json", cwd=folder, env=environment_of(folder))
    assert json.loads(out)["state"] == "interrupted"


def test_a_server_that_starts_again_continues_what_was_interrupted(folder: Path) -> None:
    with serve(folder, "--port", "0") as server, server.client() as client:
        run = client.post("/api/runs", json={"goal": WAITS}).json()["run"]
    (folder / "on").touch()
    with serve(folder, "--port", "0") as server, server.client() as client:
        assert client.post(f"/api/runs/{run}/resume", json={}).status_code == 202
        given_up = time.monotonic() + PATIENCE
        while (found := client.get(f"/api/runs/{run}").json())["state"] != "done":
            assert time.monotonic() < given_up, found
            time.sleep(0.05)

    assert found["answer"] == "hey"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])
def test_other_machines_need_a_token_of_yours(folder: Path, host: str) -> None:
    error = refused(folder, "--host", host)

    assert "PORTICO_SERVE_TOKEN" in error
    assert host in error


def test_a_short_token_is_refused(folder: Path) -> None:
    assert "PORTICO_SERVE_TOKEN" in refused(folder, env={"PORTICO_SERVE_TOKEN": "short"})


def test_an_address_that_is_none_is_refused(folder: Path) -> None:
    assert "no address" in refused(folder, "--address", "portico.example")


def test_with_a_token_other_machines_come_in_and_that_is_said(folder: Path) -> None:
    with serve(folder, "--port", "0", "--host", "0.0.0.0", PORTICO_SERVE_TOKEN=TOKEN) as server:
        port = server.url.rpartition(":")[2]
        bearer = {"authorization": f"Bearer {TOKEN}"}
        assert httpx.get(f"http://127.0.0.1:{port}/api/runs", headers=bearer).status_code == 200
        named = {**bearer, "host": f"evil.example:{port}"}
        assert httpx.get(f"http://127.0.0.1:{port}/api/runs", headers=named).status_code == 421

    errors = "".join(server.errors)
    assert "Warning" in errors
    assert TOKEN not in errors + "".join(server.lines)


def test_another_address_is_served_and_its_cookie_is_for_https_alone(folder: Path) -> None:
    with serve(folder, "--port", "0", "--address", "https://portico.example") as server:
        assert server.address.startswith("https://portico.example/?token=")
        said = re.search(r"127\.0\.0\.1:(\d+)", "".join(server.errors))
        assert said is not None
        token = server.address.partition("token=")[2]
        local = f"http://{said[0]}/?token={token}"
        response = httpx.get(local, headers={"host": "portico.example"})

    assert response.status_code == 303
    assert "secure" in response.headers["set-cookie"].lower()


@pytest.mark.skipif(sys.platform == "win32", reason="it needs a terminal")
@pytest.mark.parametrize("options", [(), ("--no-browser",)])
def test_at_a_terminal_the_browser_opens_once(folder: Path, options: tuple[str, ...]) -> None:
    browser = folder / "browser"
    browser.write_text(f'#!/bin/sh\ntrap : INT\necho "$1" >> "{folder}/opened"\necho OPENED\n')
    browser.chmod(0o755)
    env = {**environment_of(folder), "BROWSER": f"{browser} %s", "DISPLAY": ":none"}
    command = [sys.executable, "-m", "portico_cli", "serve", "--port", "0", *options]
    steps = [("token=" if options else "OPENED", CTRL_C)]
    shown = at_terminal(command, steps=steps, columns=200, cwd=folder, env=env)

    opened = (folder / "opened").read_text().split() if (folder / "opened").exists() else []
    assert shown.code == 0
    assert shown.text.count("/?token=") == 1
    assert len(opened) == (0 if options else 1)
    assert all(each in shown.text for each in opened)


def test_help_imports_nothing_of_the_server(folder: Path) -> None:
    code = "import sys, portico_cli.main as m; m.main(['--help']); print([n for n in sys.modules if 'serve' in n])"
    env = {**environment_of(folder), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"
