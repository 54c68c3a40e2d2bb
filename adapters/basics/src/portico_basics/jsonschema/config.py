"""The settings of the validator."""

from __future__ import annotations

from attrs import field, frozen, validators


@frozen
class JsonschemaSettings:
    """What can be set under ``[schemas.jsonschema]``.

    >>> JsonschemaSettings().formats
    False
    """

    formats: bool = field(
        default=False,
        metadata={"doc": "Refuse a string that is not of its `format`; by default a format is only said."},
    )
    annotations: tuple[str, ...] = field(
        default=(),
        metadata={"doc": "Further keywords that say nothing of validity. Any other unknown one is an error."},
    )
    maximum_pattern_text: int = field(
        default=10_000,
        validator=validators.ge(1),
        metadata={"doc": "Characters of a string that is matched with a `pattern` that repeats something."},
    )
    maximum_steps: int = field(
        default=1_000_000,
        validator=validators.ge(1),
        metadata={"doc": "Keywords applied to one value; a check that needs more is given up as a fault."},
    )
