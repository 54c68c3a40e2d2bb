"""The command line in a new process, forked from one that has imported it: a tenth of what it costs otherwise.

`python -m portico_cli` spends most of its time on imports. Tests of those, of signals and terminals, and of what an
interpreter does with its variables start a new one.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Done", "Ended", "run_command"]

Ended = tuple[int, bytes, bytes]
"""The exit code, and what was written to standard output and standard error."""

IMPORTED = ("portico_cli", "portico_host", "portico_basics", "portico_documents", "portico_wordllama", "portico_dbos")
LATER = ("dbos", "numpy", "safetensors", "snowballstemmer", "sqlite3", "tokenizers")
"""What they import when it is wanted."""
STREAMS = ("in", "out", "err")


@dataclass(frozen=True)
class Done:
    """How a run of the command line ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run_command(
    *arguments: str | bytes, cwd: Path, env: Mapping[str, str], stdin: bytes = b"", timeout: float = 60
) -> Ended:
    """Run a command to its end with these variables, which are all that it has."""
    odd = [name for name in env if name.startswith(("LC_", "LANG", "PYTHON")) and env[name] != os.environ.get(name)]
    if sys.platform == "win32" or set(odd) - {"PYTHONPATH", "PYTHONWARNINGS", "PYTHONDONTWRITEBYTECODE", "PYTHONUTF8"}:
        command = [sys.executable, "-m", "portico_cli", *arguments]
        done = subprocess.run(command, cwd=cwd, env=env, input=stdin, capture_output=True, timeout=timeout, check=False)
        return done.returncode, done.stdout, done.stderr
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*_modules(), *LATER])
    with tempfile.TemporaryDirectory() as name:
        streams = [Path(name, stream) for stream in STREAMS]
        for stream, content in zip(streams, (stdin, b"", b""), strict=True):
            stream.write_bytes(content)
        words = [os.fsdecode(argument) for argument in arguments]
        process = context.Process(target=_command, args=(words, str(cwd), dict(env), [str(each) for each in streams]))
        process.start()
        process.join(timeout)
        try:
            assert process.exitcode is not None, f"{words} has not ended after {timeout:g} seconds"
            return process.exitcode, streams[1].read_bytes(), streams[2].read_bytes()
        finally:
            process.kill()
            process.join()
            process.close()


def _command(words: list[str], cwd: str, env: dict[str, str], streams: list[str]) -> None:
    """Become what a new interpreter with these variables would be, and run the command."""
    from portico_cli.main import main

    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.path[:0] = [part for part in env.get("PYTHONPATH", "").split(os.pathsep) if part]
    sys.dont_write_bytecode = bool(env.get("PYTHONDONTWRITEBYTECODE"))
    warnings.resetwarnings()
    warnings.simplefilter(env.get("PYTHONWARNINGS", "default"))  # type: ignore[arg-type]
    for number, (stream, mode) in enumerate(zip(streams, "raa", strict=True)):
        descriptor = os.open(stream, os.O_RDONLY if mode == "r" else os.O_WRONLY | os.O_APPEND)
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode, encoding="utf-8") for number, mode in enumerate("rww"))
    sys.exit(main(words))


def _modules() -> Iterator[str]:
    for name in IMPORTED:
        for module in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
            if not module.name.endswith("__main__"):
                yield module.name
