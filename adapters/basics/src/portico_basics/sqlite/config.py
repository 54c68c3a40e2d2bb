"""The settings of the journal."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from attrs import field, frozen, validators


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
