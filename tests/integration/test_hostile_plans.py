"""A plan from a stranger takes little time and memory, whatever it repeats, nests, leaves open or doubles."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.hostile_plans import PLANS

ROOT = Path(__file__).parents[2]
MEGABYTE = 2**20
FEW = ["doubling text, letters", "doubling list, list", "doubling plans, wide", "doubling handlebars, letters"]
FEW += [*PLANS][::16]


def carried_out(names: list[str], size: int, seconds: float) -> list[tuple[str, str, float, int]]:
    command = [sys.executable, "-m", "tests.support.hostile_plans", str(size), *names]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, cwd=ROOT)
    ends = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(ends) == len(names), f"{names[len(ends)]} ended the process: {done.stderr[-800:]}"
    return ends


@pytest.mark.process
def test_small_plans_stay_small() -> None:
    for name, end, _, memory in carried_out(FEW, 1_000, 110):
        assert memory < 300 * MEGABYTE, name
        told = ("RecursionError", "JSONDecodeError", "PlanError")
        assert "Error" not in end or "FormatError" in end or end.startswith(told), name


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANS)
def test_five_megabytes_of_a_plan_take_ten_seconds_and_300_megabytes_at_most(name: str) -> None:
    [(_, _, seconds, memory)] = carried_out([name], 5_000_000, 100)
    assert seconds < 10
    assert memory < 300 * MEGABYTE
