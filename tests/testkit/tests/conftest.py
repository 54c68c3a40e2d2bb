"""What the tests of the kits share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import pytest


@pytest.fixture
def given(request: pytest.FixtureRequest) -> Mapping[str, Callable[[], object]]:
    """Give what makes the fixtures of pytest that a test of a kit may ask for."""
    return {name: partial(request.getfixturevalue, name) for name in ("caplog", "monkeypatch", "request", "tmp_path")}
