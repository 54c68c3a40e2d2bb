"""Sets of functions that selections are made from: read once each, and the next one read by what differs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from portico.functions import FunctionManual
from portico.selection.lexical import LexicalIndex

__all__ = ["KnownFunctions", "RecentFunctions", "record_key"]

_DIGITS = 32


def record_key(name: str, text: str) -> str:
    """Return the id of a function's record: its name and a hash of its text.

    >>> record_key("Mail-Send", "Send a mail.")
    'Mail-Send#31cd49fef671b8161a6c75fb6ca9f711'

    Another text is another record, so that a record never changes and means the same to every process.
    """
    return f"{name}#{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:_DIGITS]}"


class KnownFunctions:
    """One set of functions, with the text of each and the key of its record. Never changes, but for the index.

    ``index`` scores their texts. It moves on to the next set, which it is changed into; a set that is asked about
    again makes it anew.
    """

    __slots__ = ("_index", "keys", "manuals", "names", "texts")

    def __init__(
        self,
        manuals: Sequence[FunctionManual],
        text: Callable[[FunctionManual], str],
        before: KnownFunctions | None = None,
    ) -> None:
        """Read functions, all but those that are as they were ``before``; that set gives its index away."""
        self.manuals: dict[str, FunctionManual] = _by_name(manuals)
        self.texts: dict[str, str] = {}
        self.keys: dict[str, str] = {}
        new: list[str] = []
        for name, manual in self.manuals.items():
            if before is not None and name in before.manuals and _same(before.manuals[name], manual):
                self.texts[name], self.keys[name] = before.texts[name], before.keys[name]
            else:
                self.texts[name] = made = _text(manual, text)
                self.keys[name] = record_key(name, made)
                new.append(name)
        self.names: dict[str, str] = {key: name for name, key in self.keys.items()}
        self._index = None if before is None else before.taken_index()
        if before is not None and self._index is not None:
            for name in before.manuals.keys() - self.manuals.keys():
                self._index.remove(name)
            for name in new:
                self._index.put(name, self.texts[name])

    def taken_index(self) -> LexicalIndex | None:
        """Return the index, where it was made, and have it no more."""
        index, self._index = self._index, None
        return index

    @property
    def index(self) -> LexicalIndex:
        """The lexical index of the texts: to be used at once, since the next set may take it."""
        if self._index is None:
            self._index = LexicalIndex()
            for name, text in self.texts.items():
                self._index.put(name, text)
        return self._index


class RecentFunctions:
    """The sets of functions that were asked about last, and those that a selection is at work on.

    ``keep`` is how many sets are remembered: one, where functions that are not given any more are gone for good; some,
    where selections are made from parts of a catalogue in turn.
    """

    def __init__(self, text: Callable[[FunctionManual], str], *, keep: int) -> None:
        self._text = text
        self._keep = keep
        self._sets: list[tuple[tuple[FunctionManual, ...], KnownFunctions]] = []
        self._in_use: list[KnownFunctions] = []

    def of(self, functions: Sequence[FunctionManual]) -> KnownFunctions:
        """Return the set of these functions. Equal ones are found again, at once where they are the same objects.

        Raises ``ValueError`` for two different functions of one name, and what the callback for texts raises.
        """
        given = tuple(functions)  # a tuple stays the object that it is
        for place, (manuals, known) in enumerate(self._sets):
            if manuals is given or manuals == given:
                if place:
                    self._sets.insert(0, self._sets.pop(place))
                return known
        if len(self._sets) < self._keep:
            known = KnownFunctions(given, self._text)
        else:
            known = KnownFunctions(given, self._text, self._sets[-1][1])
            self._sets.pop()
        self._sets.insert(0, (given, known))
        return known

    @contextmanager
    def using(self, known: KnownFunctions) -> Iterator[None]:
        """Keep a set while a selection is at work on it, whatever else is asked meanwhile."""
        self._in_use.append(known)
        try:
            yield
        finally:
            self._in_use.remove(known)

    def sets(self) -> tuple[KnownFunctions, ...]:
        """Return the sets that are remembered, and those in use."""
        remembered = [known for _, known in self._sets]
        return (*remembered, *self.left_over())

    def left_over(self) -> tuple[KnownFunctions, ...]:
        """Return the sets that are in use and not remembered any more."""
        remembered = {id(known) for _, known in self._sets}
        return tuple({id(known): known for known in self._in_use if id(known) not in remembered}.values())


def _by_name(manuals: Iterable[FunctionManual]) -> dict[str, FunctionManual]:
    found: dict[str, FunctionManual] = {}
    for manual in manuals:
        if not _same(found.setdefault(manual.name, manual), manual):
            raise ValueError(f"two functions are called {manual.name!r}")
    return found


def _same(one: FunctionManual, other: FunctionManual) -> bool:
    return one is other or one == other


def _text(manual: FunctionManual, text: Callable[[FunctionManual], str]) -> str:
    made = text(manual)
    if not isinstance(made, str):
        raise TypeError(f"the text of the function {manual.name!r} is {type(made).__name__}, not str")
    return made
