"""The settings of the planner."""

from dataclasses import dataclass, field

__all__ = ["AcmeSettings"]


@dataclass(frozen=True, slots=True)
class AcmeSettings:
    """What can be set in the table `[planner.acme]` of portico.toml.

    >>> AcmeSettings().functions
    3

    Raises ``ValueError`` for a number out of its range.
    """

    functions: int = field(
        default=3,
        metadata={"doc": "How many functions are asked, 1 to 9.", "limits": {"minimum": 1, "maximum": 9}},
    )

    def __post_init__(self) -> None:
        if not 1 <= self.functions <= 9:
            raise ValueError(f"functions is {self.functions}; it must be 1 to 9")
