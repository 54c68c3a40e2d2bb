"""A page is read as a reader reads it; `nox -s pages` reads all."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.acceptance.pages import ROOT, Environments, Reader

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(600)]


def test_what_a_page_says_works_as_it_is_written(
    wheels: dict[str, Path], variables: dict[str, str], tmp_path: Path
) -> None:
    environments = Environments(tmp_path, wheels["portico-core"].parent, variables)
    folder = tmp_path / "reader"
    folder.mkdir()
    Reader(ROOT / "docs" / "how-to" / "use-faiss.md", environments, folder).read()
