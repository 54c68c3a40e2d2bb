"""The settings of the service that quotes."""

from __future__ import annotations

from typing import Literal

from attrs import field, frozen, validators


@frozen
class ExtractiveSettings:
    """What can be set under ``[chat.extractive]``.

    >>> ExtractiveSettings().maximum_quotes
    4
    """

    maximum_quotes: int = field(
        default=4,
        validator=validators.ge(1),
        metadata={"doc": "Quotes in one answer at most. Adjacent sentences are one quote."},
    )
    maximum_characters: int = field(
        default=1500,
        validator=validators.ge(1),
        metadata={"doc": "Characters of all quotes of an answer at most. The best quote is always given."},
    )
    minimum_relevance: float = field(
        default=0.42,
        validator=[validators.ge(0.0), validators.le(1.0)],
        metadata={"doc": "How much of the question a sentence must cover to be quoted, from 0 to 1."},
    )
    embeddings: bool = field(
        default=True, metadata={"doc": "Whether the configured embedding generator compares meanings too."}
    )
    language: Literal["auto", "english", "german", "french", "spanish", "italian", "dutch", "portuguese"] = field(
        default="auto",
        metadata={"doc": "Language of question and sources. auto finds it by the stop words of the question."},
    )
