"""How many tokens a text takes, where nobody counts them exactly."""

from __future__ import annotations

import math

__all__ = ["estimated_tokens"]

_BYTES_A_TOKEN = 3


def estimated_tokens(text: str) -> int:
    """Estimate, rather too high, how many tokens a text is: one for three bytes of UTF-8.

    English has about four characters to a token, and a character of Chinese or Japanese is three bytes and about
    one token, in the vocabularies of today's models.
    """
    return math.ceil(len(text.encode("utf-8", "surrogatepass")) / _BYTES_A_TOKEN)
