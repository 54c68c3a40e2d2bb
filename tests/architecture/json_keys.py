"""What the commands write with `--json`, as the keys that a program may rest on, found by running each of them.

One line is one key of one command: `portico ask: citations[].link`. Keys that whoever calls has chosen are `*`. What
has a format of its own, a plan or a JSON Schema, and what comes from settings and functions, is not looked into. What
only stands there when something fails in a run, `steps[].error` for one, is left to the tests of the commands.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "api" / "json.keys"

_CHOSEN = {"indexes", "skipped"}
_ELSEWHERE = {
    *("plan", "settings", "arguments", "parameters", "returns", "responses"),
    *("result", "value", "input", "before", "after", "fix"),
}
_CONFIGURATION = """
[search.docs]
use = "documents"
path = "docs"

[functions]
select = "contextual"

[functions.writer]
use = "prompts"
path = "prompts"
"""
_WORKERS = """
[runner]
use = "dbos"
"""
_HELD = "held"
_BAD = {"version": 1, "goal": "Greet", "steps": [{"id": "s1", "function": "writer-Gret", "arguments": {}}]}


_IN_LINES = {"chat", "worker"}


def found() -> str:
    """Run every command in a folder made for it, and return the keys of what each writes."""
    with _workplace():
        keys: dict[str, set[str]] = {}
        for command, words in _runs():
            name = f"portico {command}"
            for line in _written(words, lines=command in _IN_LINES):
                keys.setdefault(name, set()).update(_paths(line))
    return "\n".join("".join(f"{name}: {key}\n" for key in sorted(keys[name])) for name in sorted(keys))


def commands() -> set[str]:
    """Return the commands that are run."""
    return {words[0] for _, words in _COMMANDS}


_GOAL = "Which colour is the lighthouse?"
_COMMANDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("search", ("search", "lighthouse", "--source", "docs")),
    ("search", ("search", "lighthouse", "--docs", "docs")),
    ("error", ("search", "lighthouse", "--source", "nowhere")),
    ("ask", ("ask", _GOAL, "--docs", "docs")),
    ("chat", ("chat",)),
    ("plan", ("plan", _GOAL)),
    ("plan", ("plan", _GOAL, "--output", "plan.json")),
    ("plan --check", ("plan", "--check", "bad.json")),
    ("plan --diff", ("plan", "--diff", "plan.json", "bad.json")),
    ("run", ("run", "bad.json")),
    ("run", ("run", "plan.json")),
    ("run", ("run", "plan.json", "--approve")),
    ("runs", ("runs",)),
    ("runs RUN", ("runs", _HELD)),
    ("resume", ("resume", _HELD)),
    ("submit", ("submit", _GOAL, "--config", "workers.toml")),
    ("submit GOAL...", ("submit", "--file", "goals.txt", "--config", "workers.toml")),
    ("submit", ("submit", _GOAL, "--run", "given-up", "--config", "workers.toml")),
    ("cancel", ("cancel", "given-up", "--config", "workers.toml")),
    ("worker", ("worker", "--until-empty", "--config", "workers.toml")),
    ("index", ("index", "docs")),
    ("functions", ("functions",)),
    ("functions --for", ("functions", "--for", "Greet Ada")),
    ("functions --manual", ("functions", "--manual")),
    ("functions --manual schema", ("functions", "--manual", "schema")),
    ("functions --manual tools", ("functions", "--manual", "tools")),
    ("plugins", ("plugins",)),
    ("plugins NAME", ("plugins", "portico-documents")),
    ("doctor", ("doctor",)),
    ("config show", ("config", "show")),
    ("new", ("new", "connector", "acme")),
)


def _runs() -> Iterator[tuple[str, list[str]]]:
    """Yield the commands with their words, those of the run that is held with its name."""
    for command, words in _COMMANDS:
        told = list(words)
        if _HELD in words:
            listed = next(iter(_written(["runs"], lines=False)))["runs"]
            [held] = [run["run"] for run in listed if run["state"] == _HELD]
            told[told.index(_HELD)] = held
        yield command, told


def _written(words: list[str], *, lines: bool) -> Iterator[Any]:
    """Run a command in this process and yield the values that it writes."""
    from portico_cli.main import main

    out = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    told = io.TextIOWrapper(io.BytesIO(f"{_GOAL}\n".encode()), "utf-8")
    before = sys.stdin
    sys.stdin = told
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            main([*words, "--json"])
    finally:
        sys.stdin = before
    text = out.buffer.getvalue().decode("utf-8")
    yield from (json.loads(part) for part in (text.splitlines() if lines else [text]))


def _paths(value: Any, path: str = "") -> Iterator[str]:
    """Yield the path of each key in a value: `citations[].link`."""
    if isinstance(value, list):
        for each in value:
            yield from _paths(each, f"{path}[]")
    elif isinstance(value, Mapping):
        last = path.rpartition(".")[2]
        for key, inner in value.items():
            below = f"{path}.{'*' if last in _CHOSEN else key}".removeprefix(".")
            yield below
            if key not in _ELSEWHERE:
                yield from _paths(inner, below)


@contextlib.contextmanager
def _workplace() -> Iterator[None]:
    """Work in a folder with documents, a prompt and a configuration, and with a home of its own."""
    here, variables = Path.cwd(), dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="portico-keys-") as folder:
        work = Path(folder, "work")
        for name, text in {
            "docs/lighthouse.md": "# Lighthouse\n\nThe lighthouse is white. The keeper of the lighthouse is away.\n",
            "prompts/Greet/prompt.txt": "Greet {{$name}}.",
            "portico.toml": _CONFIGURATION,
            "workers.toml": _CONFIGURATION + _WORKERS,
            "goals.txt": f"{_GOAL}\nWho is away?\n",
            "bad.json": json.dumps(_BAD),
        }.items():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_text(text, "utf-8")
        homes = ("HOME", "USERPROFILE", "LOCALAPPDATA", "APPDATA", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME")
        os.environ.update(dict.fromkeys((*homes, "XDG_CONFIG_HOME"), folder))
        os.chdir(work)
        try:
            yield
        finally:
            os.chdir(here)
            os.environ.clear()
            os.environ.update(variables)
