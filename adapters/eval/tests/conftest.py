"""Two applications to measure: the embedded default over a handbook, and one whose planner does what the goal says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.command_line import Done
from tests.support.packages import WORKSHOP, forget, install_package

from portico_cli.main import main

EXAMINEE = Path(__file__).parent / "packages" / "portico_examinee"
HANDBOOK = {
    "orders.md": "# Orders\n\n## Cancelling\n\nAn order can be cancelled until it is packed.\n",
    "parcels.md": "# Parcels\n\n## Weight\n\nA parcel may weigh 30 kilograms at most.\n\n"
    "## Delivery\n\nParcels are delivered on weekdays between eight and six.\n",
    "refunds.md": "# Refunds\n\nA refund is paid within fourteen days after the goods are back.\n",
}
TOLD = """
[planner]
use = "told"
[search.shelf]
use = "shelf"
[functions.tools]
use = "tools"
"""


Evaluate = Callable[..., Done]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder, with no other journal and no other index."""
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "state"))
    monkeypatch.delenv("COLUMNS", raising=False)
    made = tmp_path / "work"
    made.mkdir()
    monkeypatch.chdir(made)
    return made


@pytest.fixture
def evaluate(folder: Path, capsys: pytest.CaptureFixture[str]) -> Evaluate:
    """Return what writes cases into a file and runs `portico eval` on it, in this process."""

    def run(cases: Any, *options: str, name: str = "cases.jsonl") -> Done:
        text = cases if isinstance(cases, str) else "\n".join(map(json.dumps, cases))
        Path(name).write_text(text, "utf-8")
        code = main(["eval", name, *options])
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run


@pytest.fixture
def handbook(folder: Path) -> str:
    """Write the handbook, and return the name of its folder."""
    (folder / "handbook").mkdir()
    for name, text in HANDBOOK.items():
        (folder / "handbook" / name).write_text(text, "utf-8")
    return "handbook"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return where Python finds the packages of these tests."""
    site = tmp_path / "site"
    install_package(site, EXAMINEE)
    install_package(site, WORKSHOP)
    return site


@pytest.fixture
def told(folder: Path, site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Configure the application whose planner does what the goal says."""
    monkeypatch.syspath_prepend(str(site))
    file = folder / "portico.toml"
    file.write_text(TOLD, "utf-8")
    yield file
    forget(site)
