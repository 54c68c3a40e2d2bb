"""Checks arguments of steps: references, paths, and the schemas that they meet."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from portico._plans.checking.notes import KEPT, FunctionNames, Location, Notes
from portico._plans.plan import INPUT, Expression, From, ListOf, ObjectOf, PlanTemplate, TextOf, Value, evaluate
from portico._schema.compare import Together, never_meet, paths_that_fit
from portico.errors import SchemaUnsupported, nearest

if TYPE_CHECKING:
    from portico._functions.functions import FunctionSpec
    from portico._ports.schema_validator import SchemaValidator
    from portico._prompts.calling import FunctionCall

from portico._plans.checking.shapes import (
    Known,
    Output,
    Place,
    Taken,
    array_of,
    constant,
    described,
    known_of,
    listed,
    meant,
    meant_alone,
    object_of,
    text_of,
)

_MAXIMUM_DEPTH = 50
_SHOWN = 60
_PATHS = 3
_ANYTHING = Place()
_DEEP = "nested too deeply to be checked"


class Expressions:
    """The expressions of one plan, which stands ``depth`` plans deep.

    ``output`` tells what a step gives, None where there is no such step; ``known`` lists the steps that there are.
    """

    def __init__(
        self,
        output: Callable[[str], Output | None],
        known: Callable[[], list[str]],
        notes: Notes,
        validator: SchemaValidator,
        depth: int,
    ) -> None:
        self.output = output
        self.known = known
        self.notes = notes
        self.validator = validator
        self.depth = depth
        self.renamed: dict[str, str] = {}
        """The steps that other spellings in the plan mean."""

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
        if not isinstance(expression, ListOf | ObjectOf) or len(place) > 2 * (_MAXIMUM_DEPTH - self.depth):
            shape = self.shape(expression, place)
            if isinstance(expression, TextOf) and taken.takes_every(str):
                return shape
        else:
            if not _refers(expression):
                value = evaluate(expression, {})
                if self.is_fine(value, taken):
                    return constant(value)
            shape = self.composed(expression, taken, taker, place)
        if never_meet((*shape, *taken.shape)):
            return self.mismatch(shape, taken, taker, place)
        if isinstance(expression, TextOf) and not _refers(expression):
            # Put together of literals alone, it is known as one is.
            return self.literal(evaluate(expression, {}), taken, place)
        return shape

    def composed(self, expression: ListOf | ObjectOf, taken: Taken, taker: str, place: Location) -> Together:
        """Check what is inside an array or an object, as far as there is one way to take it only."""
        piece = taken.single("array" if isinstance(expression, ListOf) else "object")
        if piece is None:
            return self.shape(expression, place)
        if isinstance(expression, ListOf):
            return array_of(
                self.argument(item, taken.inside(piece, index), taker, (*place, "list", index))
                for index, item in enumerate(expression.items)
            )
        members: dict[str, Together] = {}
        names = list(piece.names())
        for name, member in expression.members.items():
            inside = (*place, "object", name)
            written = name
            if name not in names and never_meet(taken.inside(piece, name).shape):
                other = meant_alone(name, names, expression.members)
                if other is None:
                    message = f"{taker} takes no member {name!r} here; it takes: {listed(names)}"
                    self.notes.add(message, inside, nearest=nearest(name, names))
                    self.shape(member, inside)
                    continue
                message = f"{taker} takes no member {name!r} here; it is written {other!r}"
                self.notes.add(message, inside, nearest=(other,), new=other)
                written = other
            members[written] = self.argument(member, taken.inside(piece, written), taker, inside)
        for name in piece.required():
            if name not in members:
                self.notes.add(f"{taker} needs the member {name!r} here: {described(piece.member(name))}", place)
                members[name] = ()
        return object_of(members)

    def shape(self, expression: Expression | str, place: Location) -> Together:
        """Check what an expression refers to; return what its value may be."""
        if len(place) > 2 * (_MAXIMUM_DEPTH - self.depth) + 2:
            self.notes.add(
                f"expressions nest deeper than {_MAXIMUM_DEPTH} levels", place[: 2 if place[0] == "arguments" else 1]
            )
            return ()
        match expression:
            case From():
                return self.source(expression, place).shape
            case TextOf(parts):
                for index, part in enumerate(parts):
                    if not isinstance(part, str):
                        self.shape(part, (*place, "text", index))
                return text_of(expression)
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
            known = self.known()
            other = meant(step, known)
            if other is None or (output := self.output(other)) is None:
                self.unknown_step(step, known, place)
                return _ANYTHING
            self.renamed[step] = step = other
        if not reference.path and step == reference.step:
            return output.at(())
        found = output.at(reference.path)
        new = From(step, found.mended or reference.path)
        if step != reference.step:
            message = f"there is no step {reference.step!r}; it is written {step!r}"
            if found.problem:
                self.notes.add(message, place, nearest=(step,))
            else:
                self.notes.add(message, place, nearest=(step,), new=new)
        path = From.print_path(reference.path)
        if found.problem:
            near = found.nearest
            if taken is not None:
                fitting = _fitting(output, taken)
                near = tuple(dict.fromkeys([*(each for each in near if each in fitting), *fitting, *near]))[:_PATHS]
            hint = f"; nearest: {', '.join(near)}" if near else ""
            self.notes.add(f"{path} of {step}: {found.problem}{hint}", place, nearest=near)
        elif found.mended is not None:
            written = From.print_path(found.mended)
            self.notes.add(f"{path} of {step}: it is written {written}", place, nearest=(written,), new=new)
        if found.doubt:
            self.doubted(From(step, found.mended or reference.path), found, output, place, taken)
        return found

    def doubted(self, reference: From, found: Place, output: Output, place: Location, taken: Taken | None) -> None:
        """Warn of a property that nothing declares, with what is surely meant, if that fits."""
        new: Any = KEPT
        if taken is not None and found.certain is not None and not taken.never_takes(output.at(found.certain)):
            new = From(reference.step, found.certain)
        message = f"{From.print_path(reference.path)} of {reference.step}: {found.doubt}"
        self.notes.add(message, place, severity="warning", nearest=found.nearest, new=new)

    def unknown_step(self, step: str, known: list[str], place: Location) -> None:
        """Note that there is no such step."""
        if step == INPUT:
            self.notes.add(f"the plan is given nothing that {INPUT!r} could stand for", place)
            return
        near = nearest(step, known)
        self.notes.add(f"there is no step {step!r}; the steps are: {listed(known)}", place, nearest=near)

    def literal(self, value: Any, taken: Taken, place: Location) -> Together:
        """Note what a validator finds wrong with a literal, and what was meant where that is certain."""
        try:
            faults = taken.faults(value, self.validator)
            mended = taken.mended(value, self.validator) if faults else None
        except SchemaUnsupported as error:
            self.notes.add(f"the literal could not be checked: {error}", place, severity="warning")
            return constant(value)
        except RecursionError:
            self.notes.add(f"the literal is {_DEEP}", place)
            return ()
        for fault in faults:
            if mended is None:
                self.notes.add(fault, place)
            else:
                self.notes.add(f"{fault}; write {_shown(mended[0])}", place, new=Value(mended[0]))
        return constant(value) if not faults else () if mended is None else constant(mended[0])

    def is_fine(self, value: Any, taken: Taken) -> bool:
        """Tell whether a literal surely is taken."""
        try:
            return not taken.faults(value, self.validator)
        except (SchemaUnsupported, RecursionError):
            return False

    def mismatch(
        self, given: Together, taken: Taken, taker: str, place: Location, reference: From | None = None
    ) -> Together:
        """Note that what is given never is what is taken, and what fits in the step that a reference is to."""
        paths: tuple[str, ...] = ()
        hint = ""
        if reference is not None:
            output = self.output(self.renamed.get(reference.step, reference.step))
            paths = _fitting(output, taken) if output else ()
            hint = f"of {reference.step}, {' or '.join(paths)} would do" if paths else ""
        self.notes.add(unlike(given, taker, taken.shape), place, nearest=paths, hint=hint)
        return ()


def unlike(given: Together, taker: str, taken: Together) -> str:
    """Say that what is given never is what is taken; that both are an object, say, does not tell why."""
    words, wanted = described(given), described(taken)
    message = f"{words} is given where {taker} takes {wanted}"
    return message if words != wanted else f"{message}, but never one like this"


def _fitting(output: Output, taken: Taken) -> tuple[str, ...]:
    """Return the paths inside an output whose values surely are taken, unless anything is."""
    if taken.takes_anything():
        return ()
    return tuple(From.print_path(path) for path in paths_that_fit(output.shape, taken.shape, most=_PATHS))


def _refers(expression: Expression) -> bool:
    """Tell whether an expression has no value yet; one that is none at all never has."""
    match expression:
        case Value():
            return False
        case TextOf(parts):
            return any(_refers(part) for part in parts if not isinstance(part, str))
        case ListOf(items):
            return any(_refers(item) for item in items)
        case ObjectOf(members):
            return any(_refers(member) for member in members.values())
    return True


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


@dataclass(frozen=True, slots=True)
class CallProblem:
    """What is wrong with a call in a template, a sentence with line and column."""

    message: str
    nearest: tuple[str, ...] = ()


def call_problems(
    template: PlanTemplate,
    calls: Sequence[FunctionCall],
    variables: Collection[str],
    catalogue: Mapping[str, FunctionSpec],
    names: FunctionNames,
) -> Iterator[CallProblem]:
    """Yield what surely fails when the template is rendered with ``variables``, by `portico._prompts.calling`.

    A parameter is missing for sure only if the template does not even contain its name: it may set a variable.
    """
    for call in calls:
        where = f"line {call.line}, column {call.column}"
        # A template that writes a name in another case, or with another separator, is understood.
        found = call.function if call.function in catalogue else names.meant(call.function)
        if found is None:
            near = names.nearest(call.function)
            hint = names.hint(near)
            yield CallProblem(f"{where}: there is no function {call.function!r}{hint}", near)
            continue
        known = known_of(catalogue[found])
        yield from (CallProblem(f"{where}: {problem}") for problem in _faults(call, known, template, variables))


def _faults(call: FunctionCall, known: Known, template: PlanTemplate, variables: Collection[str]) -> Iterator[str]:
    parameters = list(known.parameters)
    if call.positional > len(parameters):
        yield f"{known.name} takes {len(parameters)} arguments, not {call.positional} without a name"
    given = {name.casefold() for name in (*parameters[: call.positional], *call.named)}
    by_case = {name.casefold() for name in parameters}
    for name in call.named:
        if known.closed and name.casefold() not in by_case:
            yield f"{known.name} has no parameter {name!r}; it has: {listed(parameters)}"
    bare = not call.positional and not call.named
    for name in known.required:
        if name.casefold() in given or name in variables or name in template.source:
            continue
        if bare and name == parameters[0] and (INPUT in variables or INPUT in template.source):
            continue
        yield f"{known.name} needs the argument {name!r}"
