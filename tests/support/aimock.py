"""aimock, a server that speaks the protocols of Anthropic, Gemini, OpenAI and others, which npm installs."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.processes import killed_at_the_end

__all__ = ["served_by_aimock"]

_VERSION = "1.43.0"
_FOLDER = Path(__file__).parents[2] / ".nox" / "aimock"
_CLI = _FOLDER / "node_modules/@copilotkit/aimock/dist/cli.js"


@contextmanager
def served_by_aimock(
    fixtures: Sequence[Mapping[str, Any]], folder: Path, environment: Mapping[str, str]
) -> Iterator[str]:
    """Run aimock with its ``fixtures``, written to ``folder``, and give its address; skips a test where npm is not.

    ``environment`` is that of the outside, which npm needs; the first use installs aimock.
    """
    node, npm = (shutil.which(program, path=environment.get("PATH")) for program in ("node", "npm"))
    if node is None or npm is None:
        pytest.skip("aimock needs node and npm")
    version = _FOLDER / "node_modules/@copilotkit/aimock/package.json"
    if not version.exists() or json.loads(version.read_text("utf-8"))["version"] != _VERSION:
        _FOLDER.mkdir(parents=True, exist_ok=True)
        install = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", f"--prefix={_FOLDER}"]
        subprocess.run([*install, f"@copilotkit/aimock@{_VERSION}"], env=dict(environment), check=True, timeout=400)
    file = folder / "fixtures.json"
    file.write_text(json.dumps({"fixtures": list(fixtures)}), "utf-8")
    command = [node, str(_CLI), "--port", "0", "--fixtures", str(file)]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen(command, cwd=folder, start_new_session=True, **pipes)
    with killed_at_the_end(process):
        assert process.stdout is not None
        told = []
        for line in process.stdout:
            told.append(line)
            if "listening on " in line:
                yield line.rpartition("listening on ")[2].strip()
                return
        pytest.fail(f"aimock ended before it listened: {''.join(told)}")
