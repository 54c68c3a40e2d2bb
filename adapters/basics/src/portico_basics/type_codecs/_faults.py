"""Words of faults that the codecs find themselves: core's own, as far as it has them."""

from __future__ import annotations

from portico.plugins import Mismatch


def got(value: object) -> str:
    """Describe a JSON value as core's own faults do."""
    try:
        Mismatch.refuse("", value)
    except Mismatch as error:
        return error.faults[0].got


def counted(number: int, unit: str) -> str:
    """Write a number of things."""
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"


def line(text: str) -> str:
    """Put a text on one line, as what is said of a fault is."""
    return " ".join(text.split())


def reason(error: Exception) -> str:
    """Return what an error says: those of attrs carry the attribute and the value behind their text.

    An error that was not raised to be read, as a KeyError is not, says little without its kind.
    """
    first = error.args[0] if error.args else None
    try:
        text = line(first if isinstance(first, str) else str(error))
    except ValueError:  # an integer of more digits than Python writes
        text = ""
    kind = type(error).__name__
    return text if text and isinstance(error, ValueError | TypeError) else f"{kind}: {text}" if text else kind
