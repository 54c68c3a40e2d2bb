"""Plans as JSON, and the schema of that form."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeVar

from portico._plans.plan import (
    AT_ONCE,
    MAXIMUM_DEPTH,
    MAXIMUM_STEPS,
    STEP_OPTIONS,
    TESTS,
    Each,
    Expression,
    From,
    ListOf,
    ObjectOf,
    Plan,
    PlanTemplate,
    Step,
    TextOf,
    Value,
    When,
)
from portico._schema.paths import is_many
from portico.errors import PlanFormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

T = TypeVar("T")

VERSION = 2
_DEEPEST_VALUE = 200
_MOST_VALUES = 200_000
_MOST_BITS = 14_000  # of a whole number: Python prints 4,300 digits at most
_KINDS = {dict: "object", list: "array", bool: "boolean", int: "number", float: "number", type(None): "null"}


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """Return the plan as JSON values; empty parts are left out.

    >>> plan_to_json(Plan("Tell", result=From("input", ("city",))))
    {'version': 1, 'goal': 'Tell', 'steps': [], 'result': {'from': 'input', 'path': '$.city'}}

    It is of version 2 where it has ``each``, ``when`` or a path that may select several, else of version 1, which
    older Porticos read too. Values are not copied. Raises ``PlanFormatError`` with the place for a value that JSON does
    not have, a NaN or a tuple for example: it would not come back as it was.
    """
    return _plan_to_json(plan, "$")


def _plan_to_json(plan: Plan, place: str) -> dict[str, Any]:
    newer = any(step.each or step.when for step in plan.steps) or any(is_many(each.path) for each in plan.references())
    document: dict[str, Any] = {"version": VERSION if newer else 1, "goal": plan.goal}
    if plan.input is not None:
        document["input"] = _json(dict(plan.input), f"{place}.input")
    document["steps"] = [step_to_json(step, f"{place}.steps[{index}]") for index, step in enumerate(plan.steps)]
    if plan.result is not None:
        document["result"] = expression_to_json(plan.result, f"{place}.result")
    if plan.notes is not None:
        document["notes"] = _json(plan.notes, f"{place}.notes")
    if plan.fingerprints:
        document["fingerprints"] = dict(plan.fingerprints)
    return document


def plan_from_json(document: object) -> Plan:
    """Read a plan from JSON values.

    >>> plan_from_json({"version": 1, "goal": "g", "steps": [{"id": "s1", "function": "f"}]}).steps[0].function
    'f'

    Raises ``PlanFormatError`` with the place for anything that is not of the form of version 1 or 2, more than 1,000
    steps or deeper than 50 levels, and for more than 200,000 values. It does not check the plan against a catalogue.
    """
    count, waiting = 0, [document]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict | list):
            count += len(one)
            waiting += one.values() if isinstance(one, dict) else one
        if count > _MOST_VALUES:
            raise PlanFormatError(f"$: a plan has at most {_MOST_VALUES:,} values.")
    return _plan(document, "$", 0)


def step_to_json(step: Step, place: str = "$") -> dict[str, Any]:
    """Return a step as JSON values; ``place`` is where it stands in the plan, for errors."""
    document: dict[str, Any] = {"id": step.id, "function": function_to_json(step.function, f"{place}.function")}
    if step.arguments:
        document["arguments"] = {
            name: expression_to_json(expression, f"{place}.arguments.{name}")
            for name, expression in step.arguments.items()
        }
    if step.each is not None:
        document["each"] = each_to_json(step.each, f"{place}.each")
    if step.when is not None:
        document["when"] = when_to_json(step.when, f"{place}.when")
    if step.after:
        document["after"] = list(step.after)
    if step.reason:
        document["reason"] = step.reason
    return document | step.options()


def each_to_json(each: Each, place: str = "$") -> dict[str, Any]:
    """Return what a step runs for as JSON values."""
    document: dict[str, Any] = {"items": expression_to_json(each.items, f"{place}.items")}
    if each.at_once != 1:
        document["at_once"] = each.at_once
    return document if each.failed == "stop" else {**document, "failed": each.failed}


def when_to_json(when: When, place: str = "$") -> dict[str, Any]:
    """Return a condition as JSON values; raises ``PlanFormatError`` for what is none."""
    if TESTS.get(when.test) != len(when.values):
        raise PlanFormatError(f"{place}: {len(when.values)} values and the test {when.test!r} are no condition.")
    written = [expression_to_json(value, _dotted(place, inside)) for inside, value in when.placed()]
    condition: dict[str, Any] = {when.test: written if when.test == "equal" else written[0]}
    return {"not": condition} if when.negated else condition


def _dotted(place: str, inside: Iterable[str | int]) -> str:
    return place + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in inside)


def function_to_json(function: str | Plan | PlanTemplate, place: str = "$") -> Any:
    """Return what a step calls as JSON values."""
    match function:
        case str():
            return function
        case PlanTemplate(source, language):
            return {"template": source, "language": language}
        case Plan():
            return _plan_to_json(function, place)


def expression_to_json(expression: Expression, place: str = "$") -> dict[str, Any]:
    """Return an expression as JSON values."""
    match expression:
        case Value(value):
            return {"value": _json(value, f"{place}.value")}
        case From(step, path):
            return {"from": step, "path": From.print_path(path)} if path else {"from": step}
        case TextOf(parts):
            return {
                "text": [
                    part if isinstance(part, str) else expression_to_json(part, f"{place}.text[{index}]")
                    for index, part in enumerate(parts)
                ]
            }
        case ListOf(items):
            return {"list": [expression_to_json(item, f"{place}.list[{index}]") for index, item in enumerate(items)]}
        case ObjectOf(members):
            return {
                "object": {
                    name: expression_to_json(member, f"{place}.object.{name}") for name, member in members.items()
                }
            }


def _json(value: Any, place: str, depth: int = 0) -> Any:
    """Return a value that JSON has, as it is; refuse any other, which Python's own JSON reads and writes in part."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    if kind is int:
        if value.bit_length() > _MOST_BITS:
            raise PlanFormatError(f"{place}: a whole number of more than 4,000 digits is too long.")
    elif kind is float:
        if not math.isfinite(value):
            raise PlanFormatError(f"{place}: JSON has no {value}.")
    elif depth >= _DEEPEST_VALUE:
        raise PlanFormatError(f"{place}: values nest deeper than {_DEEPEST_VALUE} levels.")
    elif kind is list:
        for index, item in enumerate(value):
            _json(item, f"{place}[{index}]", depth + 1)
    elif kind is dict:
        for name, member in value.items():
            if type(name) is not str:
                raise PlanFormatError(f"{place}: the names in a JSON object are strings, not {type(name).__name__}.")
            _json(member, f"{place}.{name}", depth + 1)
    else:
        raise PlanFormatError(f"{place}: expected a JSON value, got a Python {kind.__name__}.")
    return value


def _plan(document: object, place: str, depth: int) -> Plan:
    # Before the keys: those of another version are others.
    version = document.get("version", VERSION) if isinstance(document, dict) else VERSION
    if version not in (1, VERSION) or isinstance(version, bool):
        wrong = _error(f"{place}.version", f"1 or {VERSION}", version)
        raise PlanFormatError(f"{wrong} This Portico reads versions 1 and {VERSION} of the form.")
    body = _object(
        document, place, required={"version", "goal", "steps"}, optional={"input", "result", "notes", "fingerprints"}
    )
    if isinstance(body["steps"], list) and len(body["steps"]) > MAXIMUM_STEPS:
        raise PlanFormatError(f"{place}.steps: at most {MAXIMUM_STEPS} steps are allowed, not {len(body['steps'])}.")
    input, notes = (_json(body.get(name), f"{place}.{name}") for name in ("input", "notes"))
    if not isinstance(body.get("input", {}), dict):
        raise _error(f"{place}.input", "a JSON Schema that is an object", input)
    return Plan(
        goal=_text(body["goal"], f"{place}.goal"),
        steps=_list(body["steps"], f"{place}.steps", lambda step, place: _step(step, place, depth)),
        result=_expression(body["result"], f"{place}.result", depth) if "result" in body else None,
        notes=notes,
        fingerprints=_members(body.get("fingerprints", {}), f"{place}.fingerprints", _text),
        input=input,
    )


def _step(document: object, place: str, depth: int) -> Step:
    body = _object(
        document,
        place,
        required={"id", "function"},
        optional={"arguments", "after", "reason", "each", "when", *STEP_OPTIONS},
    )
    if depth >= MAXIMUM_DEPTH:
        raise PlanFormatError(f"{place}: plans nest deeper than {MAXIMUM_DEPTH} levels.")
    options = {name: body[name] for name in STEP_OPTIONS if name in body}
    for name, number in options.items():
        option = STEP_OPTIONS[name]
        if type(number) not in (int, float) or not option.fits(number):
            raise _error(f"{place}.{name}", option.expected, number)
        if option.whole:
            options[name] = int(number)  # JSON Schema takes 2.0 for a whole number, as JSON itself does.
    return Step(
        id=_text(body["id"], f"{place}.id"),
        function=_function(body["function"], f"{place}.function", depth),
        arguments=_members(
            body.get("arguments", {}), f"{place}.arguments", lambda each, place: _expression(each, place, depth)
        ),
        after=_list(body.get("after", []), f"{place}.after", _text),
        reason=_text(body.get("reason", ""), f"{place}.reason"),
        each=_each(body["each"], f"{place}.each", depth) if "each" in body else None,
        when=_when(body["when"], f"{place}.when", depth) if "when" in body else None,
        **options,
    )


def _each(document: object, place: str, depth: int) -> Each:
    body = _object(document, place, required={"items"}, optional={"at_once", "failed"})
    at_once, failed = body.get("at_once", 1), body.get("failed", "stop")
    if type(at_once) not in (int, float) or not AT_ONCE.fits(at_once):
        raise _error(f"{place}.at_once", AT_ONCE.expected, at_once)
    if failed not in ("stop", "skip"):
        raise _error(f"{place}.failed", '"stop" or "skip"', failed)
    return Each(_expression(body["items"], f"{place}.items", depth), int(at_once), failed)


def _when(document: object, place: str, depth: int) -> When:
    negated = False
    if isinstance(document, dict) and document.keys() == {"not"}:
        document, place, negated = document["not"], f"{place}.not", True
    body = _object(document, place, required=set(), optional={*TESTS} if negated else {*TESTS, "not"})
    if len(body) != 1:
        raise PlanFormatError(f'{place}: exactly one of "true", "equal", "present" and "not" is needed.')
    test: Any = next(iter(body))
    content, inside = body[test], f"{place}.{test}"
    if TESTS[test] == 1:
        return When(test, (_expression(content, inside, depth),), negated)
    values = _list(content, inside, lambda each, place: _expression(each, place, depth))
    if len(values) != 2:
        raise PlanFormatError(f"{inside}: two expressions are compared, not {len(values)}.")
    return When(test, values, negated)


def _function(document: object, place: str, depth: int) -> str | Plan | PlanTemplate:
    if isinstance(document, str):
        return document
    if isinstance(document, dict) and "template" in document:
        body = _object(document, place, required={"template", "language"}, optional=set())
        return PlanTemplate(_text(body["template"], f"{place}.template"), _text(body["language"], f"{place}.language"))
    return _plan(document, place, depth + 1)


def _expression(document: object, place: str, depth: int) -> Expression:
    if depth > MAXIMUM_DEPTH:
        raise PlanFormatError(f"{place}: expressions nest deeper than {MAXIMUM_DEPTH} levels.")
    body = _object(document, place, required=set(), optional={"value", "from", "path", "text", "list", "object"})
    tags = [tag for tag in body if tag != "path"]
    if len(tags) != 1 or ("path" in body and tags != ["from"]):
        raise PlanFormatError(
            f'{place}: exactly one of "value", "from" (with "path"), "text", "list" and "object" is needed.'
        )
    tag, content = tags[0], body[tags[0]]
    inside = f"{place}.{tag}"

    def inner(document: object, place: str) -> Expression:
        return _expression(document, place, depth + 1)

    match tag:
        case "value":
            return Value(_json(content, inside))
        case "from":
            return From(_text(content, inside), From.parse_path(_text(body.get("path", "$"), f"{place}.path")))
        case "text":
            return TextOf(
                _list(content, inside, lambda part, place: part if isinstance(part, str) else inner(part, place))
            )
        case "list":
            return ListOf(_list(content, inside, inner))
        case _:
            return ObjectOf(_members(content, inside, inner))


def _object(document: object, place: str, *, required: set[str], optional: set[str]) -> Mapping[str, Any]:
    if not isinstance(document, dict):
        raise _error(place, "an object", document)
    missing = required - document.keys()
    if missing:
        raise PlanFormatError(f"{place}: {', '.join(sorted(missing))} {'is' if len(missing) == 1 else 'are'} missing.")
    unknown = document.keys() - required - optional
    if unknown:
        known = ", ".join(sorted(required | optional))
        raise PlanFormatError(f"{place}: unknown key {sorted(map(str, unknown))[0]!r}; known are {known}.")
    return document


def _list(document: object, place: str, read: Callable[[object, str], T]) -> tuple[T, ...]:
    if not isinstance(document, list):
        raise _error(place, "an array", document)
    return tuple(read(item, f"{place}[{index}]") for index, item in enumerate(document))


def _members(document: object, place: str, read: Callable[[object, str], T]) -> dict[str, T]:
    if not isinstance(document, dict):
        raise _error(place, "an object", document)
    return {name: read(member, f"{place}.{name}") for name, member in document.items()}


def _text(document: object, place: str) -> str:
    if not isinstance(document, str):
        raise _error(place, "a string", document)
    return document


def _error(place: str, expected: str, got: object) -> PlanFormatError:
    # Not repr() of all: what came may be nested too deeply for it, or a number too long to print.
    if isinstance(got, str):
        shown = repr(got[:60])
    elif isinstance(got, int | float) and not isinstance(got, bool) and abs(got) < 1e9:
        shown = repr(got)
    else:
        shown = f"a JSON {_KINDS.get(type(got), 'value')}"
    return PlanFormatError(f"{place}: expected {expected}, got {shown}.")
