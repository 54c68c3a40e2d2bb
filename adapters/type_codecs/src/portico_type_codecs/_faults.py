"""How core describes a value that came, for faults that the codecs find themselves."""

from __future__ import annotations

from portico.compiled import Mismatch, refuse

__all__ = ["got"]


def got(value: object) -> str:
    """Describe a JSON value as core's own faults do."""
    try:
        refuse("", value)
    except Mismatch as error:
        return error.faults[0].got
