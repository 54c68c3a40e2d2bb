"""The settings of the Jinja2 language."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from attrs import Factory, field, frozen, validators


@frozen
class Jinja2Settings:
    """What can be set of the template language ``jinja2``.

    >>> Jinja2Settings(partials={"head": "You are {{ name }}."}).max_steps
    1000000

    Each bound is a whole number of at least 1; reaching one is ``LimitExceeded``, which names it.
    """

    partials: Mapping[str, str] = field(
        default=Factory(dict), metadata={"doc": "Templates that others may include, import or extend, by name."}
    )
    folder: Path | None = field(
        default=None,
        metadata={"doc": "A folder of such templates; the name is the path inside it. Files are read when first used."},
    )
    trim_blocks: bool = field(
        default=False, metadata={"doc": "Leave out the line break that follows a block, as `{% if x %}`."}
    )
    lstrip_blocks: bool = field(
        default=False, metadata={"doc": "Leave out the blanks that stand before a block at the start of its line."}
    )
    max_characters: int = field(
        default=4_000_000,
        validator=validators.ge(1),
        metadata={"doc": "Characters of a rendered prompt, and of any text or list made on the way, at most."},
    )
    max_steps: int = field(
        default=1_000_000,
        validator=validators.ge(1),
        metadata={"doc": "Rounds of loops, elements given to filters, pieces of texts and the like, at most."},
    )
    max_seconds: float = field(
        default=5.0,
        validator=validators.gt(0),
        metadata={"doc": "Time that one rendering may take, without that of the functions it calls."},
    )
