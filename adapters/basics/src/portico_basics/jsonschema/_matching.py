"""Texts and the patterns of a schema: those that are too long for one are refused, not tried."""

from __future__ import annotations

import re

from portico_basics.jsonschema._run import Runs


class Matching:
    """Matches with patterns that `prepare` has put in Python's words."""

    def __init__(self, runs: Runs, maximum_text: int) -> None:
        self._runs = runs
        self._maximum_text = maximum_text

    def is_too_long(self, pattern: str, text: str) -> bool:
        """Tell whether matching might take too long."""
        known = self._runs.now.patterns.get(pattern)
        return len(text) > self._maximum_text and (known is None or known.repeats)

    def problem(self, pattern: str, text: str) -> str | None:
        """Return why a text does not match, None where it does."""
        if self.is_too_long(pattern, text):
            return f"too long for a pattern: {len(text)} characters, more than {self._maximum_text}"
        if re.search(pattern, text):
            return None
        known = self._runs.now.patterns.get(pattern)
        return f"expected a string that matches {known.written if known else pattern!r}"
