"""`portico ask --attach` in a process, with a server on loopback that says what a model would."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.replayed_model import ReplayedModel

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.fixture
def folder(model: ReplayedModel, tmp_path: Path) -> Path:
    (tmp_path / "portico.toml").write_text(model.configuration)
    (tmp_path / "pixel.png").write_bytes(base64.b64decode(PIXEL))
    (tmp_path / "notes.md").write_text("# Doors\n\nA red door opens <b>inwards</b>.\n")
    return tmp_path


def ask(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "portico_cli", "ask", *arguments],
        cwd=folder,
        env=os.environ | {"XDG_CACHE_HOME": str(folder / "cache")},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def test_a_model_without_sources_answers_from_what_is_attached(model: ReplayedModel, folder: Path) -> None:
    model.sayings = ["A pixel, and doors."]
    done = ask(folder, "What do you see?", "--attach", "pixel.png", "--attach", "notes.md")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("A pixel, and doors.\n")
    question, picture, notes = model.asked[0]["messages"][-1]["content"]
    assert question["text"] == "What do you see?"
    assert picture == {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    assert notes["text"].startswith('<file name="notes.md">')
    assert "opens &lt;b&gt;inwards&lt;/b&gt;." in notes["text"]


def test_with_sources_the_model_sees_both(model: ReplayedModel, folder: Path) -> None:
    (folder / "docs").mkdir()
    (folder / "docs" / "doors.md").write_text("# Red doors\n\nA red door opens inwards.\n")
    model.sayings = ["It opens inwards [1]."]
    done = ask(folder, "How does this red door open?", "--docs", "docs", "--attach", "pixel.png")
    assert done.returncode == 0, done.stderr
    assert "[1]" in done.stdout
    kinds = [part["type"] for part in model.asked[0]["messages"][-1]["content"]]
    assert "image_url" in kinds
    assert "opens inwards" in str(model.asked[0]["messages"][-1]["content"])


def test_a_file_that_cannot_be_attached_is_named(folder: Path) -> None:
    (folder / "empty").touch()
    (folder / "program.bin").write_bytes(b"\x7fELF\0")
    for name, why in (
        ("missing.png", "No such file"),
        ("empty", "is empty"),
        (".", "cannot be attached"),
        ("~nosuch/x", "home"),
    ):
        done = ask(folder, "What is it?", "--attach", name)
        assert done.returncode == 2
        assert why in done.stderr
        assert "Traceback" not in done.stderr
    done = ask(folder, "What is it?", "--attach", "program.bin")
    assert done.returncode == 2
    assert "does not support files" in done.stderr
