"""Which words of a reply are the answer's, told while they come."""

from __future__ import annotations

from typing import Any

from portico.plans import AnswerWords
from portico.plugins import PartialJson
from portico_stepwise_planner._reading import marks_in
from portico_stepwise_planner._schema import TurnSchema

_BEFORE_A_MARK = " \t>*_#-["
_CUT = "observation"


class LinesWatch:
    """Watches a reply of lines: what follows "Final answer:" is shown, unless an action came first.

    A line that may become a mark of its own, such as "Observation:", waits until that is known.
    """

    def __init__(self, words: AnswerWords) -> None:
        self._words = words
        self._text = ""
        self._shown: int | None = None
        """How far the text was shown, None before the answer began."""
        self._over = False

    def feed(self, piece: str) -> None:
        """Take more of the reply."""
        if self._over:
            return
        self._text += piece
        if self._shown is None:
            first = next((mark for mark in marks_in(self._text) if mark.name != "thought"), None)
            # What stands at the very end may still belong to the mark.
            if first is None or first.end >= len(self._text):
                # A mark is within a line: of all that came only the line under way matters.
                self._text = self._text[self._text.rfind("\n") + 1 :]
                return
            if first.name != "final answer":
                self._over = True
                return
            self._text, self._shown = self._text[first.end :], 0
        self._show()

    def close(self) -> None:
        """Show what waited, now that nothing follows."""
        if self._shown is not None and not self._over:
            self._show(end=True)

    def _show(self, *, end: bool = False) -> None:
        assert self._shown is not None  # noqa: S101 - called when the answer has begun
        line = self._text.rfind("\n", 0, self._shown) + 1
        cut = next((mark.start for mark in marks_in(self._text[line:]) if mark.name == _CUT), None)
        if cut is not None:
            self._over = True
            ready = line + cut
        else:
            last = self._text.rfind("\n") + 1
            ready = last if not end and _may_be_cut(self._text[last:]) else len(self._text)
        if ready > self._shown:
            self._words.feed(self._text[self._shown : ready])
            self._shown = ready
        # Only the line under way matters from here on.
        line = self._text.rfind("\n", 0, self._shown) + 1
        self._text, self._shown = self._text[line:], self._shown - line


class SchemaWatch:
    """Watches a reply under a schema: the text of ``final`` is shown as it grows."""

    def __init__(self, words: AnswerWords, schema: TurnSchema) -> None:
        self._words = words
        self._schema = schema
        self._reader: PartialJson | None = PartialJson()
        self._shown = 0

    def feed(self, piece: str) -> None:
        """Take more of the reply."""
        if self._reader is None:
            return
        try:
            value = self._reader.feed(piece)
        except (ValueError, RecursionError):
            self._reader = None  # reading it whole says what is wrong
            return
        final = _final(self._schema.draft(value)) if value is not PartialJson.NOTHING else None
        if isinstance(final, str) and len(final) > self._shown:
            self._words.feed(final[self._shown :])
            self._shown = len(final)

    def close(self) -> None:
        """Nothing waits here."""


def _final(value: Any) -> Any:
    action = value.get("action") if isinstance(value, dict) else None
    return action.get("final") if isinstance(action, dict) else None


def _may_be_cut(line: str) -> bool:
    begun = line.lstrip(_BEFORE_A_MARK).casefold()
    return begun[: len(_CUT)] == _CUT[: len(begun)]
