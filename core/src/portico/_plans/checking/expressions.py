"""Checks arguments of steps: references, paths, and the schemas that they meet."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from portico._functions.functions import FunctionSpec
from portico._plans.checking.shapes import Output, Place, Taken, array_of, constant, describe, itemize, object_of, whole
from portico._plans.findings import Finding, Fix
from portico._plans.plan import INPUT, ITEM, MAXIMUM_DEPTH, Expression, From, ListOf, ObjectOf, TextOf, Value, evaluate
from portico._schema.compare import Together, never_meet, paths_that_fit
from portico._schema.paths import is_many
from portico.errors import FunctionNotFound, LimitExceeded, SchemaUnsupported, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from portico._ports.schema_validator import SchemaValidator

_SHOWN = 60
_PATHS = 3
_TEXT = whole({"type": "string"})
_FEW = 8
_HINTS = 20
"""How many names of one plan are looked for in the whole catalogue: a thousand in a large one would take minutes."""

Location = tuple[str | int, ...]
"""A place inside a step, as its JSON form has it: ``("arguments", "day", "list", 0)``."""

KEPT: Any = object()
"""Stands for no fix: None is one."""


class FunctionNames:
    """The functions of a catalogue by any spelling of their names, and how often it may still be looked through."""

    def __init__(self, catalogue: Mapping[str, FunctionSpec]) -> None:
        self.catalogue = catalogue
        self._hints = _HINTS

    @cached_property
    def _endings(self) -> dict[str, list[str]]:
        """The functions by the end of their names, without case, by which any other spelling finds them."""
        found: dict[str, list[str]] = {}
        for name in self.catalogue:
            found.setdefault(name.replace("-", "_").rpartition("_")[2].casefold(), []).append(name)
        return found

    def find(self, name: str) -> str | None:
        """Return the function that a name means, also in another spelling; None when that is not certain."""
        if name in self.catalogue:
            return name
        ending = name.strip().casefold()
        for separator in "-._:/ ":
            ending = ending.rpartition(separator)[2]
        try:
            return FunctionSpec.find_name(name, self._endings.get(ending, ()), lenient=True)
        except FunctionNotFound:
            return None

    def spec(self, name: str) -> FunctionSpec | None:
        """Return the spec of the function that a name means."""
        found = self.find(name)
        return None if found is None else self.catalogue[found]

    def nearest(self, name: str) -> tuple[tuple[str, ...], str]:
        """Return the functions most like a name, and what to say of them or of the few that there are."""
        self._hints -= 1
        near = nearest(name, list(self.catalogue)) if self._hints >= 0 else ()
        if near:
            return near, f"; nearest: {', '.join(near)}"
        few = 0 < len(self.catalogue) <= _FEW
        return near, f"; the functions are: {', '.join(self.catalogue)}" if few else ""


@dataclass(slots=True)
class Notes:
    """Findings on a plan; ``within`` are the steps around it.

    Without ``fixes`` nothing is mended, since an id that two steps have does not tell which is meant.
    """

    found: list[Finding]
    within: tuple[str, ...] = ()
    fixes: bool = False
    step: str | None = None
    """The step at hand; None for the plan itself."""

    def add(
        self,
        message: str,
        place: Location = (),
        *,
        severity: str = "error",
        nearest: tuple[str, ...] = (),
        new: Any = KEPT,
        hint: str = "",
        unknown_function: str = "",
    ) -> None:
        """Note a finding; ``new`` is what belongs in the place instead, where that is certain: see `Fix`."""
        ids = self.within if self.step is None else (*self.within, self.step)
        words = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)[1:]
        where = " ".join([*ids[1:], words]).strip()
        fix = Fix(ids, place, new) if new is not KEPT and self.fixes else None
        step = ids[0] if ids else None
        self.found.append(Finding(message, step, where, severity, nearest, fix, hint, unknown_function))


class Expressions:
    """The expressions of one plan, which stands ``depth`` plans deep.

    ``output`` tells what a step gives, None where there is no such step; ``known`` lists the steps that there are.
    ``skippable`` tells whether a step may be skipped where the one at hand runs.
    """

    def __init__(
        self,
        output: Callable[[str], Output | None],
        known: Callable[[], list[str]],
        notes: Notes,
        validator: SchemaValidator,
        depth: int,
        *,
        skippable: Callable[[str], bool] = lambda step: False,
    ) -> None:
        self.output = output
        self.known = known
        self.notes = notes
        self.validator = validator
        self.skippable = skippable
        self.longest = 2 * (MAXIMUM_DEPTH - depth)

    def argument(self, expression: Expression, taken: Taken, taker: str, place: Location) -> Together:
        """Check an expression that ``taken``, of the function ``taker``, is to take.

        Return what it may be, without what was found wrong with it: what it is part of is not wrong for that too.
        """
        if isinstance(expression, Value):
            value = expression.value
            return constant(value) if taken.takes_every(type(value)) else self.literal(value, taken, place)
        if isinstance(expression, From):
            found = self.source(expression, place, taken)
            if taken.never_takes(found):
                return self.mismatch(found.shape, taken, taker, place, expression)
            return found.shape
        if isinstance(expression, ListOf | ObjectOf) and len(place) <= self.longest:
            shape = self.check_inside(expression, taken, taker, place)
        else:
            shape = self.shape(expression, place)
            if isinstance(expression, TextOf) and taken.takes_every(str):
                return shape
        if never_meet((*shape, *taken.shape)):
            return self.mismatch(shape, taken, taker, place)
        known = _try_evaluate(expression) if isinstance(expression, TextOf) else None
        return shape if known is None else self.literal(known[0], taken, place)

    def check_inside(self, expression: ListOf | ObjectOf, taken: Taken, taker: str, place: Location) -> Together:
        """Check what is inside an array or an object, as far as there is one way to take it only."""
        if isinstance(expression, ListOf):
            if taken.single("array") is None:
                return self.shape(expression, place)
            return array_of(
                self.argument(item, taken.inside(index), taker, (*place, "list", index))
                for index, item in enumerate(expression.items)
            )
        piece = taken.single("object")
        if piece is None:
            return self.shape(expression, place)
        members: dict[str, Together] = {}
        for name, member in expression.members.items():
            inside = (*place, "object", name)
            if name not in piece.names() and never_meet(taken.inside(name).shape):
                names = list(piece.names())
                message = f"{taker} takes no member {name!r} here; it takes: {itemize(names)}"
                self.notes.add(message, inside, nearest=nearest(name, names))
                self.shape(member, inside)
            else:
                members[name] = self.argument(member, taken.inside(name), taker, inside)
        for name in piece.required_names():
            if name not in members:
                self.notes.add(f"{taker} needs the member {name!r} here: {describe(piece.member(name))}", place)
                members[name] = ()
        return object_of(members)

    def shape(self, expression: Expression | str, place: Location) -> Together:
        """Check what an expression refers to; return what its value may be."""
        if len(place) > self.longest + 2:
            message = f"expressions nest deeper than {MAXIMUM_DEPTH} levels"
            self.notes.add(message, place[: 2 if place[0] == "arguments" else 1])
            return ()
        match expression:
            case From():
                return self.source(expression, place).shape
            case TextOf(parts):
                for index, part in enumerate(parts):
                    if not isinstance(part, str):
                        self.shape(part, (*place, "text", index))
                return _TEXT
            case ListOf(items):
                return array_of([self.shape(item, (*place, "list", index)) for index, item in enumerate(items)])
            case ObjectOf(members):
                return object_of(
                    {name: self.shape(member, (*place, "object", name)) for name, member in members.items()}
                )
            case Value(value):
                return constant(value)
        self.notes.add(f"{expression!r} is no expression", place)
        return ()

    def source(self, reference: From, place: Location, taken: Taken | None = None) -> Place:
        """Return what a reference leads to, after noting what is wrong with it, for ``taken`` to take."""
        output, step = self.output(reference.step), reference.step
        if output is None:
            self.unknown_step(step, self.known(), place)
            return _ANYTHING
        found: Place = output.at(reference.path)
        if found.problem:
            fitting = () if taken is None else _find_fitting_paths(output, taken)
            both = [each for each in found.nearest if each in fitting]
            near = tuple(dict.fromkeys([*both, *fitting, *found.nearest]))[:_PATHS]
            hint = f"; nearest: {', '.join(near)}" if near else ""
            path = From.print_path(reference.path)
            self.notes.add(f"{path} of {step}: {found.problem}{hint}", place, nearest=near)
        elif reference.path and not is_many(reference.path) and self.skippable(step):
            path = From.print_path(reference.path)
            self.notes.add(f"{step} may be skipped, and there is nothing at {path} then", place, severity="warning")
        return found

    def unknown_step(self, step: str, known: list[str], place: Location) -> None:
        if step == INPUT:
            self.notes.add(f"the plan is given nothing that {INPUT!r} could stand for", place)
            return
        if step == ITEM:
            self.notes.add(f"{ITEM!r} is the item of a step with 'each', and this one has none", place)
            return
        message = f"there is no step {step!r}; the steps are: {itemize(known)}"
        self.notes.add(message, place, nearest=nearest(step, known))

    def literal(self, value: Any, taken: Taken, place: Location) -> Together:
        """Note what a validator finds wrong with a literal, and what was meant where that is certain."""
        try:
            faults = taken.faults(value, self.validator)
            mended = taken.mend_value(value, self.validator) if faults else None
        except SchemaUnsupported as error:
            self.notes.add(f"the literal could not be checked: {error}", place, severity="warning")
            return constant(value)
        for fault in faults:
            if mended is None:
                self.notes.add(fault, place)
            else:
                text = json.dumps(mended[0], ensure_ascii=False)
                text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
                self.notes.add(f"{fault}; write {text}", place, new=Value(mended[0]))
        return constant(value) if not faults else () if mended is None else constant(mended[0])

    def mismatch(
        self, given: Together, taken: Taken, taker: str, place: Location, reference: From | None = None
    ) -> Together:
        """Note that what is given never is what is taken, and what fits in the step that a reference is to."""
        output = None if reference is None else self.output(reference.step)
        paths = () if output is None else _find_fitting_paths(output, taken)
        hint = f"of {reference.step}, {' or '.join(paths)} would do" if reference and paths else ""
        self.notes.add(unlike(given, taker, taken.shape), place, nearest=paths, hint=hint)
        return ()


_ANYTHING = Place()


def unlike(given: Together, taker: str, taken: Together) -> str:
    """Say that what is given never is what is taken; that both are an object, say, does not tell why."""
    words, wanted = describe(given), describe(taken)
    message = f"{words} is given where {taker} takes {wanted}"
    return message if words != wanted else f"{message}, but never one like this"


def _find_fitting_paths(output: Output, taken: Taken) -> tuple[str, ...]:
    """Return the paths inside an output whose values surely are taken, unless anything is."""
    if paths_that_fit((), taken.shape, depth=0):
        return ()
    return tuple(From.print_path(path) for path in paths_that_fit(output.shape, taken.shape, most=_PATHS))


def _try_evaluate(expression: Expression) -> tuple[Any] | None:
    """Return the value of an expression that refers to nothing, as a tuple of one; None for any other."""
    try:
        return (evaluate(expression, {}),)
    except (LookupError, TypeError, LimitExceeded):
        return None
