"""How large Portico may be: `figures.py` counts, and prints the same figures."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

SCRIPT = runpy.run_path(str(Path(__file__).parent / "figures.py"))


@pytest.fixture(scope="module")
def figures() -> dict[str, int]:
    counted: dict[str, int] = SCRIPT["figures"]()
    return counted


@pytest.mark.parametrize("what", SCRIPT["LIMITS"])
def test_a_figure_stays_within_its_limit(what: str, figures: dict[str, int]) -> None:
    assert figures[what] <= SCRIPT["LIMITS"][what], SCRIPT["advice"](what)
