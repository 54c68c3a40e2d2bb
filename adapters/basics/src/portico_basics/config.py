"""The settings of every adapter in this distribution."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from attrs import field, frozen, validators

MOST_BYTES = 10_000_000
"""Bytes of one plan's file."""


@frozen
class CachedEmbeddingsSettings:
    """``[embeddings.cached]`` in `portico.toml`.

    >>> CachedEmbeddingsSettings(of="openai").max_bytes
    500000000

    Raises ``ValueError`` for a number out of its range.
    """

    of: str = field(
        validator=validators.min_len(1),
        metadata={"doc": "The embedding generator whose vectors are kept, by its name in `use`."},
    )
    path: Path | None = field(
        default=None,
        metadata={"doc": "The folder of the cache. The default is `portico/embeddings` in the user's cache folder."},
    )
    max_bytes: int = field(
        default=500_000_000,
        validator=[validators.ge(1_000_000), validators.le(1_000_000_000_000)],
        metadata={"doc": "How large the cache's file may grow. The oldest vectors are removed first."},
    )
    wait: float = field(
        default=2.0,
        validator=[validators.ge(0), validators.le(60)],
        metadata={"doc": "Seconds to wait for another process that writes, before embedding without the cache."},
    )


@frozen
class ContextualSettings:
    """What can be set beside ``select = "contextual"`` under ``[functions]``.

    >>> ContextualSettings(always=("Clock-Now",)).max
    8

    Raises ``ValueError`` for a negative number and an unknown ranking.
    """

    max: int = field(
        default=8,
        validator=validators.ge(0),
        metadata={"doc": "How many functions a model sees at most, besides those in `always`."},
    )
    always: tuple[str, ...] = field(
        default=(), metadata={"doc": "Functions that are always offered: `Clock-Now`, or `Clock` for the whole plugin."}
    )
    minimum_score: float | None = field(default=None, metadata={"doc": "Functions with a lower score are left out."})
    ranking: Literal["fused", "lexical", "vector"] = field(
        default="fused",
        validator=validators.in_(("fused", "lexical", "vector")),
        metadata={"doc": "`lexical` compares words and needs no embeddings, `vector` compares vectors, `fused` both."},
    )
    namespace: str = field(
        default="functions",
        validator=validators.min_len(1),
        metadata={"doc": "The namespace of the functions' vectors in the store of `[vectors]`."},
    )
    each_round: bool = field(
        default=False, metadata={"doc": "Choose again after each round of calls, and in a run after steps."}
    )


@frozen
class ExtractiveSettings:
    """What can be set under ``[chat.extractive]``.

    >>> ExtractiveSettings().maximum_quotes
    3
    """

    maximum_quotes: int = field(
        default=3,
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


@frozen
class FusedSettings:
    """The settings of a source that uses `fused`.

    >>> FusedSettings(sources=("docs", "web")).depth
    20

    Raises ``ValueError`` for no sources, for one named twice, and for a number out of its range.
    """

    sources: tuple[str, ...] = field(
        validator=validators.min_len(1),
        metadata={"doc": "The sources to ask, by the names that they have under `[search]`.", "service": "TextSearch"},
    )
    depth: int = field(
        default=20,
        validator=[validators.ge(1), validators.le(1000)],
        metadata={
            "doc": "How many results of each source are ranked. Where more are asked for, it is a multiple of this."
        },
    )
    timeout: float | None = field(
        default=None,
        validator=validators.optional(validators.gt(0.0)),
        metadata={"doc": "Seconds that a source may take before the others answer without it. Default: its own limit."},
    )

    def __attrs_post_init__(self) -> None:
        twice = sorted({name for name in self.sources if self.sources.count(name) > 1})
        if twice:
            raise ValueError(f"sources names {', '.join(map(repr, twice))} more than once")


@frozen
class JsonschemaSettings:
    """What can be set under ``[schemas.jsonschema]``.

    >>> JsonschemaSettings().formats
    False
    """

    formats: bool = field(
        default=False, metadata={"doc": "Check the `format` of strings. By default a format is a description only."}
    )
    annotations: tuple[str, ...] = field(
        default=(), metadata={"doc": "Further keywords to ignore. Any other unknown keyword is an error."}
    )


@frozen
class LocalRunnerSettings:
    """What can be set under ``[runner.local]``.

    >>> LocalRunnerSettings().concurrency
    8
    """

    concurrency: int = field(
        default=8,
        validator=[validators.ge(1), validators.le(10_000)],
        metadata={"doc": "How many steps run at the same time, of all runs together."},
    )


@frozen
class PlanFolderSettings:
    """What can be set for the plan store `folder`, and for a function plugin that uses `plans`.

    >>> PlanFolderSettings(path=Path("plans")).path.name
    'plans'
    """

    path: Path = field(metadata={"doc": "The folder of the plans: a JSON file for each, or XML for `plans`."})


@frozen
class PromptFilesSettings:
    """What can be set for a function plugin that uses `prompts`.

    >>> PromptFilesSettings(path=Path("prompts")).path.name
    'prompts'
    """

    path: Path = field(metadata={"doc": "The directory of the prompts: a folder or a file for each."})


@frozen
class RecordedSettings:
    """``[planner.recorded]`` in `portico.toml`: one of the two.

    >>> RecordedSettings(plan=Path("poem.json")).plan.name
    'poem.json'

    Which one is missing, or that both are there, is said when something is to be replayed.
    """

    plan: Path | None = field(
        default=None,
        metadata={"doc": "The plan to replay: a file in JSON or XML, or what `portico ask --json` printed."},
    )
    run: str | None = field(
        default=None, metadata={"doc": "The run of the journal to replay, by its name; `portico runs` lists them."}
    )


@frozen
class RetrievalSettings:
    """``[planner.retrieval]`` in `portico.toml`."""

    passages: int = field(
        default=8,
        validator=[validators.ge(1), validators.le(100)],
        metadata={"doc": "How many passages a model answers from, after fusing; 1 to 100. `extractive` reads all."},
    )
    per_source: int | None = field(
        default=None,
        validator=validators.optional([validators.ge(1), validators.le(100)]),
        metadata={
            "doc": "How many passages each source is asked for; 1 to 100. Not set: 10, and 50 of a source on this "
            "machine where the answer is made of quotes."
        },
    )
    chat: str | None = field(
        default=None,
        metadata={"doc": "The chat service that writes the answer, by name; the configured one by default."},
    )


@frozen
class AnswersSettings:
    """``[functions.answers]`` in `portico.toml`."""

    chat: str | None = field(
        default=None,
        metadata={"doc": "The chat service that writes the answers, by name; the configured one by default."},
    )


@frozen
class SqliteSettings:
    """``[runs.sqlite]`` in `portico.toml`.

    >>> SqliteSettings().keep
    1000

    Raises ``ValueError`` for a number out of its range.
    """

    path: Path | None = field(
        default=None,
        metadata={"doc": "The file of the journal. The default is `portico/runs.sqlite3` in the user's state folder."},
    )
    keep: int = field(
        default=1_000,
        validator=[validators.ge(0), validators.le(10_000_000)],
        metadata={
            "doc": "How many finished runs are kept, the newest ones. Paused, uncertain and interrupted runs stay."
        },
    )
    sync: Literal["effects", "always", "never"] = field(
        default="effects",
        validator=validators.in_(("effects", "always", "never")),
        metadata={
            "doc": "When to wait for the disk, so that a power failure loses nothing: around steps with `effects`, "
            "after every entry (`always`), or `never`."
        },
    )
    wait: float = field(
        default=10.0,
        validator=[validators.ge(0), validators.le(3_600)],
        metadata={"doc": "Seconds to wait for another process that writes, before `StoreBusy`."},
    )


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
    embeddings: str | None = field(
        default=None,
        metadata={"doc": "The embeddings of this source, by name, as in `[embeddings.NAME]`; the configured ones."},
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
