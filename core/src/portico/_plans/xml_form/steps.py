"""Steps of an XML plan, and their variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from portico._plans.checking.shapes import UNKNOWN, Output, Place, at_path, constant, known_of, meant, output_of, whole
from portico._plans.findings import Finding
from portico._plans.plan import INPUT, ITEM, Each, Expression, From, Step, TextOf, Value, When
from portico._plans.xml_form.control import CONTROL, FOR_EACH, RUN_IF, read_each, read_when
from portico._schema.coerce import read_literal
from portico._schema.compare import never_meet
from portico._schema.paths import EACH
from portico.errors import PlanFormatError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from portico._functions.functions import FunctionSpec
    from portico._plans.checking.expressions import FunctionNames
    from portico._plans.xml_form.document import WrittenCall

_GLOBAL = "_GLOBAL_FUNCTIONS_"


@lru_cache(maxsize=1024)
def full_name(written: str) -> str:
    """Return the kernel's name of what is written with a dot; anything with more dots is no function's name."""
    plugin, dot, function = written.partition(".")
    if not dot or "." in function:
        return written
    return function if plugin == _GLOBAL else f"{plugin}-{function}"


_REFERENCE = re.compile(r"\$(\w+)")
_WORD = re.compile(r"\w+")
_ASCII_WORD = re.compile(r"[0-9A-Za-z_]+")
_INTEGER = "(?:0|-?[1-9][0-9]{0,14})"
_SELECTOR = rf"""(?:"[^"\\\x00-\x1f]*"|'[^'\\\x00-\x1f]*'|\*|{_INTEGER}?:{_INTEGER}?(?::{_INTEGER}?)?|{_INTEGER})"""
_FIELD = re.compile(rf"\.[^\W\d]\w*|\[{_SELECTOR}(?:,{_SELECTOR})*\]")
_WHOLE = re.compile(rf"\$\w+(?:{_FIELD.pattern})+")
_ASCII_FIELD = re.compile(r"\.[A-Za-z_][0-9A-Za-z_]*")
_PLAIN = whole({"type": ["string", "number", "boolean"]})
_MOST_DOUBTS = 20
_SHORTEST_MISSPELT = 4
_NO_ROOT: Mapping[str, Any] = {}
_ARRAY: Mapping[str, Any] = {"type": "array"}
_SET, _APPEND = "setcontextvariable", "appendtoresult"

Fail: TypeAlias = Callable[..., PlanFormatError]
"""Makes the error for a call and a problem, or for one of the call's attributes, which comes last."""


class Variables:
    """The variables of a plan as its steps are read: names in lower case, and what they stand for now."""

    def __init__(self, finished: Collection[str], fail: Fail, input: Any) -> None:
        results = dict(finished) if isinstance(finished, Mapping) else {}
        if input is not None:
            results[INPUT] = input
        self.outputs = {id: Output(constant(result)) for id, result in results.items()}
        names = filter(_WORD.fullmatch, input) if isinstance(input, dict) else ()
        self.known = {name.lower(): From(INPUT, (name,)) for name in names} | {INPUT: From(INPUT)}
        self.known |= {id.lower(): From(id) for id in finished}
        self.fail = fail
        self.ever_set: dict[str, str] = {}
        """All that some step sets, also later ones, as it is written there."""
        self.doubts: list[Finding] = []
        self.step = ""
        """The step that is read."""

    def expression(
        self, value: str, call: WrittenCall, written: str, schema: Any = None, root: Mapping[str, Any] = _NO_ROOT
    ) -> Expression:
        """Return what an attribute's text stands for: variables are references, everything else is text."""
        if value[:1] == "$":
            variable = self.known.get(value[1:].lower())
            if variable is not None:
                return variable
        parts: list[str | Expression] = []
        done = 0
        for match in _REFERENCE.finditer(value) if "$" in value else ():
            start = match.start()
            found = self.find_step(match[1], value, call, written) if start >= done else None
            if found is None:
                continue
            variable, length = found
            if start > done:
                parts.append(value[done:start])
            reference, done = self.find_path(variable, value, start + 1 + length, written)
            parts.append(reference)
        if not parts:
            return Value(value if schema is None else read_literal(value, schema, root))
        if done < len(value):
            parts.append(value[done:])
        only = parts[0]
        return only if len(parts) == 1 and isinstance(only, From) else TextOf(tuple(parts))

    def find_path(self, variable: From, value: str, end: int, written: str) -> tuple[From, int]:
        """Return the part of a result that a value names up from ``end``, and where its name ends.

        A result that may be a text has parts only where they are all of the value.
        """
        step, path = variable.step, variable.path
        at, alone = self.outputs.get(step, UNKNOWN).at, _WHOLE.fullmatch(value)
        while match := _FIELD.match(value, end):
            plain = not never_meet((*at(path).shape, *_PLAIN))
            if plain and not alone:
                if step not in self.outputs:
                    self.doubt(f"it is not known what ${step} is: {match[0][:100]} after it stays text", written)
                break
            # Languages without spaces: the name may end where ASCII does.
            for field in filter(None, (match, _ASCII_FIELD.match(value, end))):
                longer = (*path, *From.parse_path(f"${field[0]}"))
                problem = at(longer).problem
                if not problem:
                    break
            if problem:
                if not plain:
                    self.doubt(f"in ${step} {problem}: {match[0][:100]} stays text", written)
                break
            path, end = longer, field.end()
        return From(step, path), end

    def written(self, names: Iterable[str]) -> list[str]:
        return [self.ever_set.get(name, name) for name in names]

    def doubt(self, what: str, written: str) -> None:
        """Note what may be misread in an argument."""
        if len(self.doubts) < _MOST_DOUBTS:
            self.doubts.append(Finding(what, self.step, f"arguments.{written}", "warning"))

    def find_step(self, word: str, value: str, call: WrittenCall, written: str) -> tuple[From, int] | None:
        """Return what ``$word`` stands for, and how much of the word is the name; None where it is text."""
        folded = word.lower()
        step = self.known.get(folded)
        if step is not None:
            return step, len(word)
        # Languages without spaces: "$POEM" and what follows are one word for a regular expression.
        ascii_word = _ASCII_WORD.match(word)
        if ascii_word is not None and ascii_word.end() < len(word):
            step = self.known.get(ascii_word[0].lower())
            if step is not None:
                return step, ascii_word.end()
        if folded in self.ever_set:
            raise self.fail(call, f"${word} is set only by this step or a later one", written)
        if word[0].isdigit():
            return None
        shown = word[:100]
        near: Sequence[str] = ()
        if len(word) >= _SHORTEST_MISSPELT and len(self.doubts) < _MOST_DOUBTS:
            # It may be one that is set later.
            near = self.written(get_close_matches(shown.lower(), {**self.known, **self.ever_set}, cutoff=0.75))
        if near or len(word) + 1 == len(value):
            hint = f"nearest: {', '.join(near)}" if near else f"there are: {', '.join(self.written(self.known)[:20])}"
            raise self.fail(call, f"there is no variable ${shown}; {hint}", written)
        self.doubt(f"there is no variable ${shown}: it stays text", written)
        return None


class Steps:
    """The steps of a plan, as its calls are read one after another."""

    def __init__(
        self, calls: Sequence[WrittenCall], functions: FunctionNames, finished: Collection[str], fail: Fail, input: Any
    ) -> None:
        self.calls = calls
        self.functions = functions
        self.fail = fail
        # What each call sets: the variable as it is written, and the name of a result with the part that it is.
        self.sets: list[tuple[str, str, str]] = []
        self.control: list[Mapping[str, str]] = []
        self.arguments = [self.separate_arguments(call) for call in calls]
        self.variables = Variables(finished, fail, input)
        self.variables.ever_set = {each.lower(): each for names in self.sets for each in names[:2] if each}
        self.ids = self.choose_ids(finished)
        # Steps with effects keep the place in which they are written: one waits for all before it, all after for it.
        self.barrier: str | None = None
        self.since: list[str] = []

    def build(self) -> tuple[tuple[Step, ...], Expression | None, list[Finding]]:
        """Return the steps, the result, and what may be misread."""
        steps: list[Step] = []
        appended: list[From] = []
        variables, known = self.variables, self.variables.known
        previous = INPUT
        calls = zip(self.calls, self.arguments, self.control, self.sets, self.ids, strict=True)
        for call, given, control, (kept, added, part), id in calls:
            name = self.functions.find(full_name(call.function)) or full_name(call.function)
            spec = self.functions.catalogue.get(name)
            variables.step = id
            each, when = self.loop(control, call) if control else (None, None)
            if spec is None:
                arguments = {key: variables.expression(value, call, key) for key, value in given.items()}
            else:
                arguments = self.fit_arguments(given, spec, call, previous)
            step = Step(id, name, arguments, (), call.reason, each=each, when=when)
            if spec is not None:
                output = known_of(spec).output
                variables.outputs[id] = Output(output_of(step, output.shape)) if control else output
                if spec.effects or self.barrier is not None:
                    step = replace(step, after=self.order(id, spec, step.depends_on()))
                else:
                    self.since.append(id)
            steps.append(step)
            if each is not None:
                known.pop(ITEM)
                known |= self.covered
            previous = id
            if kept:
                known[kept.lower()] = From(id)
            if added:
                known[added.lower()] = From(id)
                appended.append(From(id, From.parse_path(f"${part}")))
        result: Expression | None = appended[0] if appended else From(previous) if steps else None
        if len(appended) > 1:
            parts = [part for reference in appended for part in ("\n", reference)]
            result = TextOf(tuple(parts[1:]))
        return tuple(steps), result, variables.doubts

    def loop(self, control: Mapping[str, str], call: WrittenCall) -> tuple[Each | None, When | None]:
        """Return what a step runs for and when; what it runs for is a variable from here on."""
        variables = self.variables
        items = None
        try:
            if FOR_EACH in control:
                items = variables.expression(control[FOR_EACH].strip(), call, FOR_EACH, _ARRAY)
                self.covered = {ITEM: variables.known[ITEM]} if ITEM in variables.known else {}
                variables.known[ITEM] = From(ITEM)
                output = variables.outputs.get(items.step, UNKNOWN) if isinstance(items, From) else UNKNOWN
                found = at_path(output.at(items.path).shape, (EACH,)) if isinstance(items, From) else Place()
                variables.outputs[ITEM] = UNKNOWN if found.problem else Output(at_path(found.shape, (0,)).shape)
            each = read_each(control, items)
            if RUN_IF not in control:
                return each, None
            return each, read_when(control[RUN_IF], lambda side: variables.expression(side, call, RUN_IF, {}))
        except ValueError as error:
            name, problem = error.args
            raise self.fail(call, f"{name} is {control[name][:100]!r}; {problem}", name) from error

    def separate_arguments(self, call: WrittenCall) -> Mapping[str, str]:
        """Return the arguments among the attributes, and keep what the others set."""
        attributes = call.attributes
        kinds = [*map(str.lower, attributes)]
        if len({*kinds}) < len(kinds):
            attributes = self.merge_attributes(call)
            kinds = [*map(str.lower, attributes)]
        kept = added = part = ""
        arguments: dict[str, str] = {}
        control: dict[str, str] = {}
        for kind, (name, value) in zip(kinds, attributes.items(), strict=True):
            if kind in CONTROL and not self.is_parameter(name, call):
                control[CONTROL[kind]] = value
                continue
            if kind not in (_SET, _APPEND):
                arguments[name] = value
                continue
            variable = value if value.isidentifier() else value.strip().removeprefix("$")
            if kind == _APPEND and _WHOLE.fullmatch(f"${variable}"):
                name_end = _WORD.match(variable).end()  # type: ignore[union-attr]  # it has matched above
                variable, part = variable[:name_end], variable[name_end:]
            if variable and not _WORD.fullmatch(variable):
                raise self.fail(call, f"{variable[:100]!r} is no variable; a name has letters, digits and '_'", name)
            if kind == _SET:
                kept = variable
            elif variable.lower() in ("false", "no", "none"):
                raise self.fail(call, f"appendToResult is the name of a result, not {variable!r}", name)
            else:
                added = variable
        self.sets.append((kept, added, part))
        self.control.append(control)
        return arguments

    def is_parameter(self, name: str, call: WrittenCall) -> bool:
        """Tell whether the function of a call has a parameter of this name, so that it is no word of ours."""
        spec = self.functions.spec(full_name(call.function))
        return spec is not None and meant(name, spec.parameters.get("properties", _NO_ROOT)) is not None

    def merge_attributes(self, call: WrittenCall) -> Mapping[str, str]:
        """Return the attributes, each once: names that differ only in case are one, and must have one value."""
        kept: dict[str, tuple[str, str]] = {}
        for name, value in call.attributes.items():
            first, other = kept.setdefault(name.lower(), (name, value))
            if other != value:
                raise self.fail(call, f"{first} and {name} are one argument with two values")
        return dict(kept.values())

    def choose_ids(self, finished: Collection[str]) -> list[str]:
        """Give each step an id: the variable that it sets, else s and its number, or the next that is free."""
        taken = {INPUT, *(each.lower() for each in finished)}
        found: list[str] = []
        for kept, _, _ in self.sets:
            free = kept if kept.lower() not in taken else ""
            taken.add(kept.lower())
            found.append(free)
        number = 0
        for index, id in enumerate(found):
            if not id:
                number = max(number, index) + 1
                while f"s{number}" in taken:
                    number += 1
                found[index] = f"s{number}"
        return found

    def fit_arguments(
        self, given: Mapping[str, str], spec: FunctionSpec, call: WrittenCall, previous: str
    ) -> dict[str, Expression]:
        """Return the arguments under the names of the manual, with those that a variable or the last result gives."""
        parameters = spec.parameters
        properties = parameters.get("properties", _NO_ROOT)
        arguments: dict[str, Expression] = {}
        for written, value in given.items():
            name = written if written in properties else meant(written, properties, given) or written
            schema = properties.get(name)
            if "$" in value:
                arguments[name] = self.variables.expression(value, call, written, schema, parameters)
            elif schema is None or (type(schema) is dict and schema.get("type") == "string"):
                arguments[name] = Value(value)
            else:
                arguments[name] = Value(read_literal(value, schema, parameters))
        for name in parameters.get("required", ()):
            if name not in arguments:
                folded = name.lower()
                if folded == INPUT:
                    arguments[name] = From(previous)
                elif folded in self.variables.known:
                    arguments[name] = self.variables.known[folded]
        return arguments

    def order(self, id: str, spec: FunctionSpec, referred: Collection[str]) -> tuple[str, ...]:
        """Return what a step waits for beyond what it refers to, so that effects come in the order of writing."""
        before = [] if self.barrier is None else [self.barrier]
        if spec.effects:
            before += self.since
            self.barrier = id
            self.since = []
        else:
            self.since.append(id)
        if not before:
            return ()
        return tuple(each for each in before if each not in referred)
