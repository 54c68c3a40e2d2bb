"""The settings of a search of a vector store."""

from __future__ import annotations

from typing import Literal

from attrs import field, frozen, validators


@frozen
class VectorsSettings:
    """The settings of a source that uses `vectors`; its records are mappings.

    >>> VectorsSettings(namespace="notes").text
    'text'

    Raises ``ValueError`` for an empty namespace and a score that no cosine reaches.
    """

    namespace: str = field(
        validator=validators.min_len(1), metadata={"doc": "The namespace of the vector store that holds the records."}
    )
    key: str = field(
        default="id",
        metadata={"doc": "The field that tells records apart: what is added with a known one replaces it."},
    )
    text: str = field(default="text", metadata={"doc": "The field with the text, which is embedded and found."})
    title: str | None = field(
        default="name", metadata={"doc": "The field with what to call a record; one without it has no name."}
    )
    link: str | None = field(
        default="link", metadata={"doc": "The field with where a record opens; one without it has no link."}
    )
    minimum_score: float | None = field(
        default=None,
        validator=validators.optional([validators.ge(-1.0), validators.le(1.0)]),
        metadata={"doc": "Leave out what is less like the query than this cosine. Default: nothing is left out."},
    )
    offered: tuple[str, ...] = field(
        default=(), metadata={"doc": "Fields that a model may filter by, beside what the application does."}
    )
    lexical: Literal["none", "store"] = field(
        default="none",
        validator=validators.in_(("none", "store")),
        metadata={
            "doc": "With `store` records are found by the words of their texts too, in one query; the vector store "
            "must have hybrid search. What was added without it is found by its vector only."
        },
    )
