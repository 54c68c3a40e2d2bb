"""Where in a package an error arose, as its author looks for it."""

from __future__ import annotations

from pathlib import PurePath
from traceback import walk_tb

__all__ = ["raised_at"]

_DEEPEST = 5


def raised_at(error: BaseException, module: str) -> str:
    """Return the innermost line of the package of ``module`` that an error went through, as " See FILE:LINE.".

    Empty where it went through none. The file is named from its package on, ``portico_acme/_plugin.py:16``. A
    SyntaxError says by itself where it is.
    """
    package = module.partition(".")[0]
    cause: BaseException | None = error
    for _ in range(_DEEPEST):
        if cause is None or isinstance(cause, SyntaxError):
            break
        places = [
            _place(frame.f_code.co_filename, line, package)
            for frame, line in walk_tb(cause.__traceback__)
            if _is_of(frame.f_globals.get("__name__"), package)
        ]
        if places:
            return f" See {places[-1]}."
        cause = cause.__cause__
    return ""


def _is_of(name: object, package: str) -> bool:
    return isinstance(name, str) and name.partition(".")[0] == package


def _place(file: str, line: int, package: str) -> str:
    parts = PurePath(file).parts
    # A folder of the checkout may have the name of the package in it.
    start = next((index for index in reversed(range(len(parts))) if parts[index] == package), len(parts) - 1)
    return f"{'/'.join(parts[start:])}:{line}"
