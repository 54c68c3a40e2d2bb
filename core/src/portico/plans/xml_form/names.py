"""Names of functions as plans in XML have them: ``Plugin.Function``, in any case."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from portico.functions import FunctionManual

__all__ = ["FunctionNames"]

_GLOBAL = "_GLOBAL_FUNCTIONS_"


class FunctionNames:
    """Finds functions by what follows ``function.``; the catalogue is looked through only for other spellings."""

    __slots__ = ("_alike", "_catalogue")

    def __init__(self, catalogue: Mapping[str, FunctionManual] | None) -> None:
        self._catalogue = catalogue
        self._alike: dict[str, str | None] | None = None

    def find(self, written: str) -> tuple[str, FunctionManual | None]:
        """Return the full name, and the manual where the catalogue has that function.

        What no function is called stays as it is written, but for the dot, so that the check can say what is nearest.
        """
        name = _full_name(written)
        if self._catalogue is None:
            return name, None
        manual = self._catalogue.get(name)
        if manual is not None:
            return name, manual
        other = self._spelled_alike(self._catalogue).get(_folded(name))
        return (name, None) if other is None else (other, self._catalogue[other])

    def _spelled_alike(self, catalogue: Mapping[str, FunctionManual]) -> Mapping[str, str | None]:
        """Return the names by their spelling without case and separators; None for what may be several."""
        if self._alike is None:
            self._alike = {}
            for name in catalogue:
                for spelling in {_folded(name), _folded(name.partition("-")[2] or name)}:
                    self._alike[spelling] = None if spelling in self._alike else name
        return self._alike


@lru_cache(maxsize=1024)
def _full_name(written: str) -> str:
    """Return the kernel's name of what is written with a dot; anything with more dots is no function's name."""
    plugin, dot, function = written.partition(".")
    if not dot or "." in function:
        return written
    return function if plugin == _GLOBAL else f"{plugin}-{function}"


def _folded(name: str) -> str:
    return name.replace("-", "_").replace(".", "_").lower()
