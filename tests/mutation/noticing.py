"""Which test notices which mutant, kept beside mutmut's results: one that is equivalent is noticed by none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

_FILE = "noticed-by.jsonl"


class Noticing:
    """A pytest plugin: writes down the first failure, with the mutant that the process is at."""

    def __init__(self, folder: Path, mutant: Callable[[], str | None]) -> None:
        self._file = folder / _FILE
        self._mutant = mutant

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed and (mutant := self._mutant()):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("a", encoding="utf-8") as file:  # of several processes, each line whole
                file.write(json.dumps([mutant, report.nodeid]) + "\n")


def noticed_by(folder: Path) -> dict[str, str]:
    """Return the test that noticed each mutant last, by mutmut's name of the mutant."""
    file = folder / _FILE
    return dict(map(json.loads, file.read_text("utf-8").splitlines())) if file.is_file() else {}
