"""Some pages are read as a reader reads them; `nox -s pages` reads all."""

from __future__ import annotations

import pytest
from tests.acceptance.pages import main

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(300)]

PAGES = ["first-function", "use-faiss", "configure", "search-with-brave", "write-prompts"]


def test_what_some_pages_say_works_as_it_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    main(PAGES)
    told = capsys.readouterr().out
    assert told.endswith("5 of 5\n"), told
