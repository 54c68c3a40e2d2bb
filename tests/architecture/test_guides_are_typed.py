"""The files that the guides show stand by themselves, are strictly typed, and pass a package's own linter."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.support.pages import blocks_of

HOW_TO = Path(__file__).parents[2] / "docs/how-to"
GUIDES = ("write-a-search-connector", "write-a-planner", "write-a-chat-service")
SETTINGS = """
[mypy]
strict = True
incremental = False
"""


def files_of(guide: str) -> dict[str, str]:
    """Return the files that a guide shows."""
    blocks = blocks_of((HOW_TO / f"{guide}.md").read_text("utf-8"))
    return {block.file.removeprefix("src/"): block.text for block in blocks if block.file.startswith("src/")}


@pytest.mark.parametrize("guide", GUIDES)
def test_no_line_of_a_file_in_a_guide_is_too_long_for_an_editor(guide: str) -> None:
    files = files_of(guide)
    assert len(files) >= 3, "a guide shows a package"
    long = [line for code in files.values() for line in code.splitlines() if len(line) > 120]
    assert long == []


@pytest.mark.timeout(240)
@pytest.mark.parametrize("guide", GUIDES)
def test_the_files_of_a_guide_are_typed(guide: str, tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api", reason="mypy is in the group `types`")
    (tmp_path / "mypy.ini").write_text(SETTINGS, "utf-8")
    packages = set()
    for file, code in files_of(guide).items():
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        path.with_name("__init__.py").touch()
        path.write_text(code, "utf-8")
        packages.add(str(path.parent))
    before = sys.getrecursionlimit()
    try:
        said, _, code = api.run(["--config-file", str(tmp_path / "mypy.ini"), *packages])
    finally:
        # mypy raises it; tests of deep input that come later in this process would overflow Python's stack.
        sys.setrecursionlimit(before)
    assert code == 0, said
