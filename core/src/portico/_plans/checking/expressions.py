"""Checks arguments of steps: references, paths, and the schemas that they meet."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple

from portico._plans.checking.notes import KEPT, FunctionNames, Location, Notes
from portico._plans.plan import (
    INPUT,
    Expression,
    From,
    JsonPath,
    ListOf,
    ObjectOf,
    PlanTemplate,
    TextOf,
    Value,
    evaluate,
)
from portico._schema.coerce import mended_for
from portico._schema.compare import Either, Piece, Together, meeting, never_meet, paths_that_fit, pieces
from portico.errors import SchemaUnsupported, nearest

if TYPE_CHECKING:
    from portico._functions.functions import FunctionSpec
    from portico._ports.schema_validator import SchemaValidator, Validate
    from portico._prompts.calling import FunctionCall

_LISTED = 10
_VALUES = 5
_SEPARATORS = re.compile(r"[-_. ]+")
_UNREADABLE = (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Place:
    """What is known of the value at a path: its shape, or the ``problem`` that there can be nothing.

    ``mended`` is the path that is surely meant where it is another: a name with another case or other separators.
    """

    shape: Together = ()
    problem: str = ""
    nearest: tuple[str, ...] = ()
    mended: JsonPath | None = None
    doubt: str = ""
    """Why there may well be nothing, though there may be something: an open object does not declare the property."""
    certain: JsonPath | None = None
    """The path that is meant where there is a ``doubt``, if there surely is something at it."""


def whole(schema: Any) -> Together:
    """Return the shape of the values of a schema whose references are to itself."""
    return ((schema, schema),)


def constant(value: Any) -> Together:
    """Return the shape of a value that is known."""
    return (({"const": value}, None),)


def text_of(expression: TextOf) -> Together:
    """Return the shape of a text that is put together."""
    least = sum(len(part) for part in expression.parts if isinstance(part, str))
    return (({"type": "string", "minLength": least}, None),)


def array_of(items: Iterable[Together]) -> Together:
    """Return the shape of an array whose elements have shapes of their own."""
    fixed = [Either((item,)) for item in items]
    schema = {"type": "array", "prefixItems": fixed, "minItems": len(fixed), "maxItems": len(fixed)}
    return ((schema, None),)


def object_of(members: Mapping[str, Together]) -> Together:
    """Return the shape of an object whose members have shapes of their own."""
    schema = {
        "type": "object",
        "properties": {name: Either((member,)) for name, member in members.items()},
        "required": list(members),
        "additionalProperties": False,
    }
    return ((schema, None),)


def at_path(shape: Together, path: JsonPath, *, exact: bool = False) -> Place:
    """Return what is known of the value at a path into a value of ``shape``.

    Only what the shape rules out is a problem: an open schema allows every path. With ``exact`` no other spelling of
    a name is understood.
    """
    options: list[Together] = [shape]
    mended: list[str | int] = []
    doubt: _Doubt | None = None
    try:
        for depth, part in enumerate(path):
            split = [piece for option in options for piece in pieces(option)]
            inner = _inside(split, part)
            names = list(dict.fromkeys(name for piece in split for name in _names(piece)))
            written = meant(part, names) if not inner and isinstance(part, str) and not exact else None
            if written is not None:
                inner = _inside(split, written)
            if not inner:
                return _nothing(path[: depth + 1], names, options)
            if doubt is None and written is None and isinstance(part, str) and part not in names:
                doubt = _doubt(split, path, depth, names)
            mended.append(part if written is None else written)
            options = inner
    except _UNREADABLE:
        return Place()
    found = options[0] if len(options) == 1 else ((Either(tuple(options)), None),)
    place = Place(found, mended=tuple(mended) if tuple(mended) != path else None)
    if doubt is None:
        return place
    certain = doubt.certain if place.mended is None else None
    return replace(place, doubt=doubt.words, nearest=doubt.nearest, certain=certain)


def meant(name: str, names: Iterable[str]) -> str | None:
    """Return the one of the names that differs from ``name`` in case and separators only; None for several."""
    wanted = _plain(name)
    found = [each for each in names if _plain(each) == wanted]
    return found[0] if len(found) == 1 else None


def meant_alone(name: str, names: Iterable[str], given: Iterable[str]) -> str | None:
    """Return the name that is meant by one of those given, unless another one that is given means it too."""
    other = meant(name, names)
    if other is None or any(each != name and _plain(each) == _plain(other) for each in given):
        return None
    return other


def listed(names: Iterable[str]) -> str:
    """List names for a person, the first ten of them."""
    shown = list(names)
    more = f" and {len(shown) - _LISTED} more" if len(shown) > _LISTED else ""
    return ", ".join(shown[:_LISTED]) + more if shown else "none"


def described(shape: Together) -> str:
    """Say in words what the values of a shape are: the kinds of JSON, or the values where they are few."""
    kinds: dict[str, None] = {}
    values: list[str] = []
    try:
        for piece in pieces(shape):
            if piece.values is None or piece.kind in ("boolean", "null"):
                kinds["integer" if piece.kind == "number" and piece.integer else piece.kind] = None
            else:
                values += [json.dumps(value, ensure_ascii=False) for value in piece.values]
    except _UNREADABLE:
        return "a value"
    if len(values) > _VALUES or any(len(value) > 40 for value in values):
        values = [*values[:_VALUES], "…"] if max(map(len, values)) <= 40 else ["one of certain values"]
    return " or ".join([*sorted(kinds), *dict.fromkeys(values)]) or "nothing"


def _plain(name: str) -> str:
    return _SEPARATORS.sub("", name).lower()


class _Doubt(NamedTuple):
    words: str
    nearest: tuple[str, ...]
    certain: JsonPath | None


def _doubt(split: Sequence[Piece], path: JsonPath, depth: int, names: list[str]) -> _Doubt | None:
    """Doubt a property that open objects, which declare others, do not."""
    objects = [piece for piece in split if piece.kind == "object"]
    for piece in objects:
        if piece.values is not None or not piece.names():
            return None
        for part, _ in piece.parts:
            more = part.get("additionalProperties", True)
            if "patternProperties" in part or not (isinstance(more, bool) or more == {}):
                return None
    before, name = path[:depth], str(path[depth])
    other = meant(name, names)
    sure = other is not None and all(other in piece.required() for piece in objects)
    near = (*(() if other is None else (other,)), *nearest(name, names))
    return _Doubt(
        f"{name!r} is not declared; there are: {listed(sorted(names))}",
        tuple(From.print_path((*before, each)) for each in dict.fromkeys(near)),
        (*before, other, *path[depth + 1 :]) if sure and other is not None else None,
    )


def _names(piece: Piece) -> list[str]:
    if piece.kind != "object":
        return []
    known = [name for value in piece.values or () for name in value]
    return [*known, *piece.names()]


def _inside(split: Iterable[Piece], part: str | int) -> list[Together]:
    """Return what may be at one part of a path inside the pieces; nothing where nothing can be."""
    found: dict[frozenset[tuple[int, int]], Together] = {}
    constants: list[Together] = []
    for piece in split:
        if piece.kind != ("object" if isinstance(part, str) else "array"):
            continue
        if piece.values is not None:
            constants += [constant(value[part]) for value in piece.values if _has(value, part)]
            continue
        for member in [piece.member(part)] if isinstance(part, str) else _items(piece, part):
            found.setdefault(frozenset((id(schema), id(root)) for schema, root in member), member)
    return [*(member for member in found.values() if not never_meet(member)), *constants]


def _items(piece: Piece, index: int) -> list[Together]:
    most, fixed = piece.most("maxItems"), piece.positions()
    if index >= most or -index > most:
        return []
    if index >= 0:
        return [piece.item(index)]
    # From the end, it may be any of them.
    return [piece.item(each) for each in range(fixed + 1) if each < most]


def _has(value: Any, part: str | int) -> bool:
    return part in value if isinstance(part, str) else -len(value) <= part < len(value)


def _nothing(path: JsonPath, names: list[str], options: list[Together]) -> Place:
    part = path[-1]
    if isinstance(part, str) and names:
        near = tuple(From.print_path((*path[:-1], name)) for name in nearest(part, names))
        return Place(
            problem=f"there can be nothing at {From.print_path(path)}; it has: {listed(sorted(names))}", nearest=near
        )
    around = described(((Either(tuple(options)), None),))
    return Place(problem=f"there can be nothing at {From.print_path(path)}; {From.print_path(path[:-1])} is {around}")


_KEPT = 64
_KINDS = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


class Output:
    """What a step gives, or a plan is given: its shape, and what is at the paths that were asked for."""

    __slots__ = ("places", "shape")

    def __init__(self, shape: Together) -> None:
        self.shape = shape
        self.places: dict[JsonPath, Place] = {}

    def at(self, path: JsonPath) -> Place:
        """Return what is known of the value at a path; the same object for the same path, as long as it is kept."""
        place = self.places.get(path)
        if place is None:
            if len(self.places) >= _KEPT:
                self.places.clear()
            place = self.places[path] = at_path(self.shape, path)
        return place


UNKNOWN = Output(())
"""What may be anything."""


class Taken:
    """One schema that values must be valid under: that of a parameter, or of what is inside one."""

    __slots__ = ("_inside", "_meets", "_plain", "_single", "_validate", "shape")

    def __init__(self, shape: Together) -> None:
        self.shape = shape
        self._plain: dict[type, bool] = {}
        self._meets: dict[int, tuple[Place, bool]] = {}
        self._validate: tuple[SchemaValidator | None, list[Validate]] = (None, [])
        self._single: dict[str, Piece | None] = {}
        self._inside: dict[str | int, Taken] = {}

    def single(self, kind: str) -> Piece | None:
        """Return what holds for the values of one kind of JSON; None where there is no or more than one way."""
        if kind not in self._single:
            try:
                found = [piece for piece in pieces(self.shape) if piece.kind == kind]
            except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
                found = []
            self._single[kind] = found[0] if len(found) == 1 and found[0].values is None else None
        return self._single[kind]

    def inside(self, piece: Piece, part: str | int) -> Taken:
        """Return what a member or an element must be, by the `single` piece of its kind."""
        found = self._inside.get(part)
        if found is None:
            if len(self._inside) >= _KEPT:
                self._inside.clear()
            shape = piece.member(part) if isinstance(part, str) else piece.item(part)
            found = self._inside[part] = Taken(shape)
        return found

    def takes_every(self, kind: type) -> bool:
        """Tell whether every JSON value of a Python type is taken, so that none needs a look."""
        answer = self._plain.get(kind)
        if answer is None:
            name = _KINDS.get(kind)
            answer = self._plain[kind] = name is not None and all(
                meeting({"type": name}, None, schema, root) == "always" for schema, root in self.shape
            )
        return answer

    def takes_anything(self) -> bool:
        """Tell whether every JSON value is taken."""
        return all(meeting(True, None, schema, root) == "always" for schema, root in self.shape)

    def never_takes(self, place: Place) -> bool:
        """Tell whether what is at a place of an output surely is not taken."""
        known = self._meets.get(id(place))
        if known is None:
            if len(self._meets) >= _KEPT:
                self._meets.clear()
            # The place is kept too, so that no other can have its identity.
            known = self._meets[id(place)] = (place, never_meet((*place.shape, *self.shape)))
        return known[1]

    def faults(self, value: Any, validator: SchemaValidator) -> list[str]:
        """Return what a validator finds wrong with a literal; raises ``SchemaUnsupported``."""
        if self._validate[0] is not validator:
            self._validate = (validator, [validator.compile(_with_root(*each)) for each in self.shape])
        return [fault for validate in self._validate[1] for fault in validate(value)]

    def mended(self, value: Any, validator: SchemaValidator) -> tuple[Any] | None:
        """Return the value that surely was meant by one with faults, as a tuple of one; None when there is none."""
        candidates = [mended_for(_with_root(*each), value) for each in self.shape]
        if isinstance(value, str):
            candidates += [other for other in self._values() if other.lower() == value.lower()]
            if value in ("True", "False"):
                candidates.append(value == "True")
        fitting = [each for each in candidates if each != value and not self.faults(each, validator)]
        return (fitting[0],) if len({repr(each) for each in fitting}) == 1 else None

    def _values(self) -> Iterator[str]:
        """Yield the texts that are taken, where only some are."""
        for piece in pieces(self.shape):
            yield from piece.values or () if piece.kind == "string" else ()


class Known:
    """A function as the check sees it."""

    __slots__ = ("__weakref__", "closed", "effects", "name", "output", "parameters", "required")

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        """Be left out where a manual is copied or sent elsewhere: it is made anew there."""
        return NoneType, ()

    def __init__(
        self, name: str, parameters: Mapping[str, Any], returns: Any, *, effects: bool = False, closed: bool = False
    ) -> None:
        self.name = name
        self.effects = effects
        properties, required = parameters.get("properties"), parameters.get("required")
        self.parameters = {
            each: Taken(((schema, parameters),))
            for each, schema in (properties.items() if isinstance(properties, Mapping) else ())
            if schema is not False
        }
        self.required = tuple(each for each in required if isinstance(each, str)) if isinstance(required, list) else ()
        self.closed = closed or parameters.get("additionalProperties") is False
        self.output = Output(whole(returns))


def known_of(spec: FunctionSpec) -> Known:
    """Return what is known of a manual, made when it is first asked for and kept by it."""
    known: Known | None = spec.checked
    if known is None:
        known = Known(spec.name, spec.parameters, spec.returns, effects=spec.effects)
        object.__setattr__(spec, "checked", known)
    return known


def _with_root(schema: Any, root: Any) -> Any:
    """Return a schema that a validator reads alone: with the definitions of the schema that it is part of."""
    if schema is root or not isinstance(schema, Mapping) or not isinstance(root, Mapping):
        return schema
    definitions = {key: root[key] for key in ("$defs", "definitions") if key in root}
    return {**schema, **definitions} if definitions else schema


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
