"""What of this folder holds no tests, processes that the tests start; and a model that says what a test tells it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.model_forms import FORMS
from tests.support.replayed_model import KEY, ReplayedModel

collect_ignore = ["web_server.py"]


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ReplayedModel]:
    """Serve a model for the test, which gives it its sayings; in the end nothing was asked but what it can answer."""
    monkeypatch.setenv(KEY, "sk-test-0123456789")
    with ReplayedModel() as made:
        yield made
    paths = {each.path for each in made.exchanges}
    assert all(any(form.path.fullmatch(path) for form in FORMS) for path in paths), paths
    assert len(made.asked) <= len(made.sayings), "the model was asked more than it was told to say"
