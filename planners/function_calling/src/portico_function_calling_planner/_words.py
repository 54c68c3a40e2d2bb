"""Which words of a reply are shown while they come, when a call of a function may still follow them."""

from __future__ import annotations

from portico.plans import AnswerWords

_HELD = 300


class HeldWords:
    """Holds the first words of a reply back, until it is clear that they are the answer's.

    A model that calls functions says why in a sentence or two before: that is no answer and is never shown. Longer
    words are shown as they come; should a call follow them all the same, they have been seen, and so they stay the
    beginning of the answer.
    """

    def __init__(self, words: AnswerWords, *, calls_may_follow: bool) -> None:
        self._words = words
        self._held: str | None = "" if calls_may_follow else None

    def feed(self, piece: str) -> None:
        """Take more of the reply's text."""
        if self._held is None:
            self._words.feed(piece)
            return
        self._held += piece
        if len(self._held) > _HELD:
            self.release()

    def release(self) -> None:
        """Show what was held: no call follows, or too much was said to wait."""
        held, self._held = self._held, None
        if held:
            self._words.feed(held)
