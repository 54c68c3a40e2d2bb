"""Errors of templates: where it is, what is wrong, and the line with a mark under it."""

from __future__ import annotations

from unicodedata import east_asian_width

from portico.errors import TemplateError

__all__ = ["fault"]

_BEFORE = 40
_SHOWN = 80


def fault(message: str, source: str, at: int, length: int = 1, *, name: str = "prompt") -> TemplateError:
    """Return the error of ``length`` characters of a template's ``source``, from the index ``at`` on.

    >>> print(fault("There is no name.", "Dear {{$}},", 7))
    prompt, line 1, column 8: There is no name.
      Dear {{$}},
             ^

    Of a long line only what stands around the place is shown, at most 80 characters. Under a wide letter, such as
    東, stands a wide blank: so the mark is in its place on the screen too.
    """
    line = source.count("\n", 0, at) + 1
    begin = source.rfind("\n", 0, at) + 1
    end = source.find("\n", at)
    column = at - begin
    first = max(0, column - _BEFORE)
    last = min(len(source) if end < 0 else end, begin + first + _SHOWN)
    shown = "".join(letter if letter.isprintable() else " " for letter in source[begin + first : last])
    left = "… " if first else ""
    marked = max(1, min(length, last - at))
    under = "".join("\u3000" if east_asian_width(letter) in "FW" else " " for letter in shown[: column - first])
    return TemplateError(
        f"{name}, line {line}, column {column + 1}: {message}\n"
        f"  {left}{shown.rstrip()}\n"
        f"  {' ' * len(left)}{under}{'^' * marked}",
        line=line,
        column=column + 1,
    )
