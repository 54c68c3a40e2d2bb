"""A connector of a search service is under forty lines of code, and so is the one of the guide with all that it needs.

Counted for those of the workspace are the physical lines of `search.py`, as ruff formats it, without blank lines,
comments, docstrings, imports and ``__all__``: what an author has to think of. What more than one connector needs
belongs in core.
"""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

import pytest
from tests.support.pages import blocks_of

ROOT = Path(__file__).parents[2]
MOST = 39
WEB = sorted(
    path
    for path in ROOT.glob("connectors/*/src/*/search.py")
    if "WebSearchConnector" in path.read_text(encoding="utf-8")
)


def code_lines(source: str) -> set[int]:
    """Return the numbers of the lines that hold code."""
    counted: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            counted.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom) or _is_docstring(node) or _is_all(node):
            counted -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return counted


_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_all(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and any(
        isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets
    )


@pytest.mark.parametrize("path", WEB, ids=lambda path: path.parent.name)
def test_a_web_connector_is_under_forty_lines(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    lines = code_lines(source)
    written = source.splitlines()
    shown = "\n".join(f"{count:3} {written[number - 1]}" for count, number in enumerate(sorted(lines), 1))
    assert len(lines) <= MOST, f"{path.relative_to(ROOT)} has {len(lines)} lines of code:\n{shown}"


GUIDE = ROOT / "docs/how-to/write-a-search-connector.md"
FINISHED = ("config", "search", "_plugin")


@pytest.fixture
def finished() -> dict[str, str]:
    """Give the files of the connector that the guide ends with."""
    found = {block.file: block.text for block in blocks_of(GUIDE.read_text("utf-8"))}
    return {name: found[f"src/portico_acme/{name}.py"] for name in FINISHED}


def test_the_finished_connector_of_the_guide_has_forty_lines_at_most(finished: dict[str, str]) -> None:
    """All of it: imports, settings and registration too. Blank lines and comments are not counted, and nothing else."""
    lines = [
        line
        for code in finished.values()
        for line in code.splitlines()
        if line.strip() and not line.lstrip().startswith("#")
    ]
    assert len(lines) <= 40, f"the guide's connector has {len(lines)} lines"


def test_there_are_web_connectors() -> None:
    assert len(WEB) >= 2, "the pattern of the paths finds no connectors"


def test_lines_are_counted_as_they_stand() -> None:
    source = '"""A module."""\n\nimport a  # why\nfrom b import (\n    c,\n)\n\n__all__ = [\n    "d",\n]\n\n\n'
    source += 'def d(e):\n    """Say."""\n    # A reason.\n    return f(\n        e,\n    )\n'
    assert len(code_lines(source)) == 4, "def, and the three lines of return"
