"""What is no page of text."""

from __future__ import annotations

__all__ = ["Unreadable"]


class Unreadable(Exception):
    """What was fetched has no text to be had; the argument says why, in the words that end a sentence on it."""
