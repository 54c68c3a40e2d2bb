"""The functions that a kernel has, and how they are found by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from portico.functions import Function, FunctionManual
from portico.naming import find_function

__all__ = ["Catalogue"]


class Catalogue:
    """Functions by full name, in the order of adding; their manuals and the spellings met are made once.

    >>> from portico.functions import Function
    >>> def shout(text: str) -> str:
    ...     return text.upper()
    >>> catalogue = Catalogue()
    >>> catalogue.add([Function.of(shout, plugin="Tone")])
    >>> catalogue.find("Tone.shout"), list(catalogue.manuals)
    (Function('Tone-shout'), ['Tone-shout'])
    """

    __slots__ = ("_manuals", "_spellings", "functions")

    def __init__(self) -> None:
        self.functions: dict[str, Function] = {}
        """The same dict as long as the catalogue lives."""
        self._spellings: dict[str, Function] = {}
        self._manuals: dict[str, FunctionManual] | None = None

    def add(self, functions: Iterable[Function]) -> None:
        """Add functions, all or none; ``ValueError`` when there is one of that name already."""
        new = {function.full_name: function for function in functions}
        for name in new:
            if name in self.functions:
                raise ValueError(f"the kernel has a function {name!r} already")
        self.functions.update(new)
        self._manuals = None
        self._spellings.clear()

    def find(self, name: str) -> Function:
        """Find a function by any spelling of its name; see `portico.naming.find_function` for what it raises."""
        found = self.functions.get(name) or self._spellings.get(name)
        if found is None:
            found = self._spellings[name] = find_function(name, self.functions)
        return found

    @property
    def manuals(self) -> Mapping[str, FunctionManual]:
        """The manuals of all functions by full name."""
        if self._manuals is None:
            self._manuals = {name: function.manual for name, function in self.functions.items()}
        return self._manuals
