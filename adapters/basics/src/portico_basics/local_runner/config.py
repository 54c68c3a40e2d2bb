"""The settings of the runner."""

from __future__ import annotations

from attrs import field, frozen, validators


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
