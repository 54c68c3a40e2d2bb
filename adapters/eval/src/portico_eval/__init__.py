"""Measure an application on your own cases: `portico eval CASES`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic_evals import Dataset


def dataset(file: str | Path) -> Dataset[str, str, dict[str, Any]]:
    """Return the cases of a file as a dataset of pydantic-evals, which an evaluator of its facts comes with.

    The inputs are questions, the outputs answers, the metadata the cases as they are written. Raises
    ``ConfigurationError`` for a file that is none, and where `portico-eval[judge]` is not installed.
    """
    from portico_eval.judging import make_dataset, require_extra

    require_extra("A dataset")
    return make_dataset(str(file))
