"""A failure in a kit says what was compared: authors of packages read nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PACKAGE = """
import pytest
from portico_testkit.fakes.plan_store import MemoryPlanStore
from portico_testkit.plan_store import PlanStoreKit


class Backwards(MemoryPlanStore):
    async def plans(self):
        return (await super().plans())[::-1]


class TestBackwards(PlanStoreKit):
    @pytest.fixture
    def plan_store(self):
        return Backwards()
"""


def test_a_comparison_that_fails_is_shown_to_the_author_of_a_package(tmp_path: Path) -> None:
    (tmp_path / "test_contract.py").write_text(PACKAGE)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir=.",
        "-o",
        "asyncio_default_fixture_loop_scope=function",
    ]
    done = subprocess.run(
        [*command, "test_contract.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert "1 failed" in done.stdout, done.stdout + done.stderr
    assert "test_the_newest_come_first" in done.stdout
    assert "assert ['0', '1', '2', '3', '4', '5'] == ['5', '4', '3', '2', '1', '0']" in done.stdout
