"""The programs in the READMEs of what plans run, as somebody would paste them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUNNING = ("sqlite", "local_runner", "plan_folder", "cached_embeddings")
LEAVES = [*sorted((ROOT / "planners").iterdir()), *(ROOT / "adapters" / name for name in RUNNING)]
READMES = [leaf / "README.md" for leaf in LEAVES if (leaf / "README.md").exists()]


def test_there_are_readmes() -> None:
    assert len(READMES) >= 10


@pytest.mark.parametrize("readme", READMES, ids=lambda readme: readme.parent.name)
def test_the_programs_of_a_readme_run(readme: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = readme.read_text("utf-8")
    programs = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert programs, "a README has a short example in Python"
    assert re.search(r"```toml\n.*?```", text, re.DOTALL), "a README has an example of portico.toml"
    assert "pip install portico-" in text, "a README says how the package is installed"
    monkeypatch.chdir(tmp_path)
    for program in programs:
        exec(compile(program, str(readme), "exec", dont_inherit=True), {"__name__": "__main__"})
