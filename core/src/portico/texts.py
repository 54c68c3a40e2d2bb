"""What is checked of texts that a caller gives."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["several_texts"]


def several_texts(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the texts that a caller gave; a string would be a sequence of its characters.

    >>> several_texts(["a red door", "a red roof"])
    ('a red door', 'a red roof')
    >>> several_texts("a red door")
    Traceback (most recent call last):
    ...
    TypeError: wanted is a sequence of texts, not one string

    Raises ``TypeError`` for one string, and for an item that is none, with its position from 0.
    """
    if isinstance(texts, str):
        raise TypeError("wanted is a sequence of texts, not one string")
    texts = tuple(texts)
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"text {position} is {type(text).__name__}, not str")
    return texts
