"""Classes that contain themselves: each becomes a definition that its inner occurrences refer to."""

from __future__ import annotations

import hashlib
import itertools
import threading
import typing
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from portico.plugins import Compiled, Mismatch


@dataclass(slots=True)
class _Open:
    """A class that is being compiled; ``cell`` is filled when it is done."""

    cell: list[Compiled] = field(default_factory=list)
    reference: str | None = None


@dataclass(slots=True)
class _Session:
    """One outermost class with what is compiled inside of it, and the definitions made meanwhile.

    The outermost class carries all of them, so that each reference and its target are in one schema.
    """

    open: dict[object, _Open] = field(default_factory=dict)
    made: dict[str, Any] = field(default_factory=dict)


class _Names:
    """A name for each class that contains itself: none that another class has, of whatever module or codec.

    Core renames definitions that clash, but a reference may have been used before the clash shows.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owners: dict[str, weakref.ref[Any]] = {}

    def name(self, hint: object) -> str:
        """Return the name of a class with its arguments, the same in every process."""
        kind: Any = typing.get_origin(hint) or hint
        whole = f"{kind.__module__}.{kind.__qualname__}{typing.get_args(hint) or ''}"
        digest = hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()[:6]
        arguments = [getattr(argument, "__name__", "") for argument in typing.get_args(hint)]
        name = "_".join(word for word in [kind.__name__, *arguments, digest] if word)
        with self._lock:
            # Classes that a function makes again and again are of one name; those that are gone give theirs back.
            free = next(
                candidate
                for candidate in itertools.chain([name], (f"{name}_{number}" for number in itertools.count(2)))
                if candidate not in self._owners or self._owners[candidate]() in (None, kind)
            )
            self._owners[free] = weakref.ref(kind)
            return free


class _Sessions(threading.local):
    """What is being compiled on this thread, for each ``inner`` that the codec was given."""

    def __init__(self) -> None:
        self.by_inner: dict[object, _Session] = {}


class Definitions:
    """The classes that a codec is compiling, and the names of those that contain themselves."""

    def __init__(self) -> None:
        self._sessions = _Sessions()
        self._names = _Names()

    def compile(self, hint: object, inner: object, build: Callable[[], Compiled]) -> Compiled:
        """Build a class, or refer to it where it is being built further out."""
        sessions = self._sessions.by_inner
        outermost = inner not in sessions
        session = sessions.setdefault(inner, _Session())
        if hint in session.open:
            return self._within(session.open[hint], hint)
        opened = session.open[hint] = _Open()
        try:
            compiled = build()
        finally:
            del session.open[hint]
            if outermost:
                del sessions[inner]
        opened.cell.append(compiled)
        schema = compiled.schema
        if opened.reference is not None:
            session.made[opened.reference] = schema
            schema = {"$ref": f"#/$defs/{opened.reference}"}
        if outermost and session.made:
            schema = {**schema, "$defs": session.made}
        if schema is compiled.schema:
            return compiled
        draft = compiled.draft or compiled.structure
        return replace(compiled, schema=schema, structure=_bounded(compiled.structure), draft=_bounded(draft))

    def _within(self, opened: _Open, hint: object) -> Compiled:
        if opened.reference is None:
            opened.reference = self._names.name(hint)
        cell = opened.cell
        return Compiled(
            {"$ref": f"#/$defs/{opened.reference}"},
            lambda value: cell[0].structure(value),  # noqa: PLW0108 - the cell is filled later
            lambda value: cell[0].unstructure(value),  # noqa: PLW0108
            lambda value: (cell[0].draft or cell[0].structure)(value),  # noqa: PLW0108
        )


def _bounded(structure: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Give the values of a class that contains itself an end."""

    def bounded(value: Any) -> Any:
        try:
            return structure(value)
        except RecursionError:
            Mismatch.refuse("a value that is nested less deeply", value)

    return bounded
