"""The settings of the function plugin."""

from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["AcmeSettings"]


@dataclass(frozen=True, slots=True)
class AcmeSettings:
    """What can be set in a table `[functions.<name>]` with `use = "acme"` in portico.toml.

    >>> AcmeSettings().path is None
    True
    """

    path: Path | None = field(
        default=None,
        metadata={"doc": "A JSON file of words and their meanings. Not set: the small glossary of the package."},
    )
