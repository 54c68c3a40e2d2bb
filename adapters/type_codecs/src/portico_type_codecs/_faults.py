"""Words of faults that the codecs find themselves: core's own, as far as it has them."""

from __future__ import annotations

from portico.types.compiled import Mismatch, refuse

__all__ = ["counted", "got", "line"]


def got(value: object) -> str:
    """Describe a JSON value as core's own faults do."""
    try:
        refuse("", value)
    except Mismatch as error:
        return error.faults[0].got


def counted(number: int, unit: str) -> str:
    """Write a number of things."""
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"


def line(text: str) -> str:
    """Put a text on one line, as what is told of a fault is."""
    return " ".join(text.split())
