"""Some pages are read as a reader reads them; `nox -s pages` reads all."""

from __future__ import annotations

import pytest
from tests.acceptance.pages import main

pytestmark = [pytest.mark.packaging, pytest.mark.slow, pytest.mark.timeout(900)]

PAGES = ["first-function", "use-faiss", "write-prompts"]


def test_what_some_pages_say_works_as_it_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    main(PAGES)
    told = capsys.readouterr().out
    assert told.endswith("3 of 3\n"), told
