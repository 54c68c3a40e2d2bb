"""A package made for these tests, put where Python finds it, and ways to run the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.support import processes
from tests.support.command_line import Done, run_command
from tests.support.packages import forget, install_package, write_metadata
from tests.support.terminal import Shown, at_terminal

SHELF = Path(__file__).parent / "packages" / "portico_shelf"
ACME = Path(__file__).parent / "acme"
SEARCHING = ACME / "portico_acme_search.py"


Run = Callable[..., Done]


@pytest.fixture
def install(tmp_path: Path) -> Callable[..., Path]:
    """Return what installs a made-up distribution: its entry points, and its modules by name and source."""
    site = tmp_path / "site"

    def add(name: str, entry_points: Mapping[str, Mapping[str, str]], **modules: str) -> Path:
        write_metadata(site, name, entry_points)
        for module, source in modules.items():
            (site / f"{module}.py").write_text(source)
        return site

    return add


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give an empty working directory."""
    made = tmp_path / "work"
    made.mkdir()
    return made


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Give the folder of made-up distributions, with `portico-shelf` in it."""
    site = tmp_path / "site"
    install_package(site, SHELF)
    return site


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a journal of its own."""
    folder = tmp_path / "state"
    for name in ("XDG_STATE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(folder))
    return folder


@pytest.fixture
def environment(site: Path, state: Path) -> dict[str, str]:
    """Give the environment of the runs."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "FORCE_COLOR")}
    return kept | {"PYTHONPATH": str(site), "PYTHONWARNINGS": "error", "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture
def portico(folder: Path, environment: dict[str, str]) -> Run:
    """Return what runs the command line in a process of its own."""

    def run(*arguments: str | bytes, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Done:
        code, out, err = run_command(*arguments, cwd=folder, env=environment | dict(env or {}), stdin=stdin)
        return Done(code, out.decode("utf-8"), err.decode("utf-8"))

    return run


@pytest.fixture
def started(folder: Path, environment: dict[str, str]) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Return what starts the command line, says something to it, waits until something is so, and leaves it running.

    What may be waited for is a file of the working directory, or what a function tells.
    """
    with ExitStack() as running:

        def start(
            *arguments: str, said: str = "", until: str | Callable[[], bool] | None = None
        ) -> subprocess.Popen[str]:
            command = [sys.executable, "-m", "portico_cli", *arguments]
            awaited = (folder / until).exists if isinstance(until, str) else until
            return running.enter_context(
                processes.started(command, cwd=folder, env=environment, said=said, until=awaited)
            )

        yield start


@pytest.fixture
def terminal(folder: Path, environment: dict[str, str]) -> Callable[..., Shown]:
    """Return what runs the command line at a terminal of its own and types the answer to each thing that it asks."""

    def run(
        *arguments: str, steps: Sequence[tuple[str, str]] = (), columns: int = 80, env: Mapping[str, str] | None = None
    ) -> Shown:
        fixed = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "INPUTRC": os.devnull}
        command = [sys.executable, "-m", "portico_cli", *arguments]
        return at_terminal(command, steps=steps, columns=columns, cwd=folder, env=environment | fixed | dict(env or {}))

    return run


@pytest.fixture
def configured(folder: Path) -> Path:
    """Write a portico.toml with the source `shelf` and the scripted planner."""
    file = folder / "portico.toml"
    file.write_text('[search.shelf]\nuse = "shelf"\n[planner]\nuse = "scripted"\n')
    return file


@pytest.fixture
def in_process(
    folder: Path, site: Path, state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Return what runs the command line in this process: quicker, for what needs no process of its own."""
    from portico_cli.main import main

    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*arguments: str) -> Done:
        code = main(arguments)
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    yield run
    forget(site)


@pytest.fixture
def package(install: Callable[..., Path]) -> Callable[..., None]:
    """Return what installs `portico-acme`: its plugin module, further lines of metadata, and its other modules."""

    def make(
        plugin: str = (ACME / "portico_acme.py").read_text(),
        *metadata: str,
        name: str = "portico-acme",
        wheel: str = "",
        modules: Mapping[str, str] | None = None,
    ) -> None:
        module = name.replace("-", "_")
        entry_points = {"portico": {name.removeprefix("portico-"): module}}
        others = {SEARCHING.stem: SEARCHING.read_text()} if modules is None else modules
        folder = install(name, entry_points, **{module: plugin}, **others)
        info = folder / f"{module}-1.0.dist-info"
        with (info / "METADATA").open("a") as stream:
            stream.writelines(f"{line}\n" for line in metadata)
        if wheel:
            (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nTag: {wheel}\n")

    return make


@pytest.fixture
def doctor(
    in_process: Any, site: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., dict[str, dict[str, Any]]]]:
    """Return what runs the doctor on a configuration, and gives by subject what is not as it should be."""

    def run(configuration: str = "", *, healthy: bool = False, **env: str) -> dict[str, dict[str, Any]]:
        (folder / "portico.toml").write_text(configuration)
        with monkeypatch.context() as patch:
            for name, value in env.items():
                patch.setenv(name, value)
            done = in_process("doctor", "--json")
        forget(site)
        assert "Traceback" not in done.err
        assert (done.json["healthy"], done.code) == (healthy, 0 if healthy else 1), done.out
        checks = [check for check in done.json["checks"] if check["state"] != "ok"]
        assert [check for check in checks if not check["mend"]] == [], "nothing says what mends these"
        return {check["subject"]: check for check in checks}

    yield run
    forget(site)
