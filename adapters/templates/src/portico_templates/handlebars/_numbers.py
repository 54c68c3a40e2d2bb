"""Numbers as JavaScript writes them."""

from __future__ import annotations

import math
from decimal import Decimal

_INTEGERS_TO = 1e21
_PLAIN_FROM = 1e-6


def number_text(number: float) -> str:
    """Write a number: without a fraction where it has none, with an exponent from 1e21 on and below 1e-6.

    >>> [number_text(number) for number in (1.0, 2.50, 1e21, 1e-7, float("nan"))]
    ['1', '2.5', '1e+21', '1e-7', 'NaN']

    Raises ``ValueError`` for an integer with more digits than Python writes.
    """
    if isinstance(number, int):
        return str(int(number))
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number.is_integer() and abs(number) < _INTEGERS_TO:
        return str(int(number))
    if _PLAIN_FROM <= abs(number) < 1:
        return format(Decimal(repr(number)), "f")
    text = repr(number)
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa}e{exponent[0]}{exponent[1:].lstrip('0')}" if mark else text
