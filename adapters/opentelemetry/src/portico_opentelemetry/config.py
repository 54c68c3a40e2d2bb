"""The settings of the observer."""

from __future__ import annotations

from pathlib import Path

from attrs import field, frozen


@frozen(kw_only=True)
class OpenTelemetrySettings:
    """What is written into traces, and where.

    >>> OpenTelemetrySettings().content
    False
    """

    content: bool = field(
        default=False, metadata={"doc": "Write prompts, replies, arguments, results and queries into the spans too."}
    )
    file: Path | None = field(
        default=None,
        metadata={
            "doc": "A file to which the spans are appended, as OTLP in JSON lines. By default they go to the tracer "
            "provider of the process, where it has one."
        },
    )
