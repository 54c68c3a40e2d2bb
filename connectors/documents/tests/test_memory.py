"""Memory does not grow with the number of documents."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("resource")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a process reads its peak from /proc")
WORKER = Path(__file__).parent / "update_worker.py"
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]


def peak(base: Path, documents: int) -> int:
    """Return the peak memory of indexing that many documents, and then looking at them again, in bytes."""
    folder = base / f"{documents}"
    for number in range(documents):
        file = folder / f"{number // 500}" / f"{number}.txt"
        if number % 500 == 0:
            file.parent.mkdir(parents=True)
        file.write_text(f"Document {number}. " + " ".join(WORDS[number % 7 :]))
    places = [str(folder), str(base / f"index-{documents}"), str(base / f"vectors-{documents}")]
    done = subprocess.run([sys.executable, str(WORKER), *places], capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_four_times_the_documents_take_about_the_same_memory(tmp_path: Path) -> None:
    few, many = peak(tmp_path, 1_000), peak(tmp_path, 4_000)
    assert many <= 1.15 * few, f"1,000 documents took {few:,} bytes, 4,000 took {many:,}"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_ten_times_the_documents_take_at_most_a_third_more_memory(tmp_path: Path) -> None:
    few, many = peak(tmp_path, 2_000), peak(tmp_path, 20_000)
    assert many <= 1.3 * few, f"2,000 documents took {few:,} bytes, 20,000 took {many:,}"
