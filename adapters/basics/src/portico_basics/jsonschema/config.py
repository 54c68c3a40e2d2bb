"""The settings of the validator."""

from __future__ import annotations

from attrs import field, frozen


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
