"""Names that are hardly another by chance."""

from __future__ import annotations

__all__ = ["one_letter_off"]


def one_letter_off(one: str, other: str) -> bool:
    """Tell whether two words are the same but for one letter more, less or other, or two that are swapped.

    >>> one_letter_off("peom", "poem"), one_letter_off("poems", "poem"), one_letter_off("plan", "poem")
    (True, True, False)
    """
    short, long = sorted((one, other), key=len)
    if len(long) - len(short) > 1:
        return False
    same = next((i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(short) < len(long):
        return short[same:] == long[same + 1 :]
    if short[same + 1 :] == long[same + 1 :]:
        return True
    return short[same : same + 2] == long[same : same + 2][::-1] and short[same + 2 :] == long[same + 2 :]
