"""Fragments of the change log have a name that says what they are."""

from __future__ import annotations

import re
from pathlib import Path

KINDS = "feature|change|fix|removal"


def test_fragments_are_named_by_topic_and_kind(root: Path) -> None:
    files = [file.name for file in (root / "changes.d").iterdir() if file.name != "README.md"]
    odd = [name for name in files if not re.fullmatch(rf"[a-z0-9]+(-[a-z0-9]+)*(\.\d+)?\.({KINDS})\.md", name)]
    assert odd == [], "see changes.d/README.md"


def test_fragments_are_a_few_sentences(root: Path) -> None:
    lengths = {file.name: len(file.read_text("utf-8").split()) for file in (root / "changes.d").glob("*.*.md")}
    assert all(5 <= words <= 80 for words in lengths.values()), lengths
