"""The settings of the Handlebars language."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from attrs import field, frozen, validators


@frozen
class HandlebarsSettings:
    """What can be set for the template language `handlebars`.

    >>> HandlebarsSettings().escape
    'none'
    """

    escape: Literal["none", "html"] = field(
        default="none",
        validator=validators.in_(("none", "html")),
        metadata={"doc": "`html` escapes values and writes them as handlebars.js does; a prompt needs `none`."},
    )
    partials: dict[str, str] = field(factory=dict, metadata={"doc": "Partials: templates by the name they are called."})
    folder: Path | None = field(
        default=None, metadata={"doc": "A folder of `*.hbs` files that are partials, named for their files."}
    )
    max_steps: int = field(
        default=1_000_000,
        validator=validators.ge(1),
        metadata={"doc": "Rounds of loops and calls of partials in one rendering, times the tags in them."},
    )
    max_characters: int = field(
        default=16_000_000,
        validator=validators.ge(1),
        metadata={"doc": "Characters of a rendered prompt, and of all texts made for it."},
    )
