"""The helpers that Semantic Kernel documents for its Handlebars templates.

`message`, `raw` and `set` are no values: the compiler knows them. Where Semantic Kernel leaves open what counts as
true, it is what `if` takes for true. A helper of these without arguments is the variable of its name, but for those
that mean something so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any, TypeAlias

from portico.errors import LimitExceeded
from portico_templates.handlebars.values import MISSING, is_array, is_true

# They belong to modules above this one.
Scope: TypeAlias = Any
Setup: TypeAlias = Any


Value = Callable[["Setup", "Scope", Sequence[Any], Mapping[str, Any]], Any]
Number = int | float | Decimal

BLOCKS = frozenset({"message", "raw"})
_LONGEST_NUMBER = 1_000


def _json(setup: Setup, scope: Scope, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    value = _only(arguments, "json")
    if isinstance(value, str):
        return value
    return setup.texts.json(value)


def _concat(setup: Setup, scope: Scope, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    texts = [setup.texts.text(value) for value in arguments]
    if sum(map(len, texts)) > scope.run.limits.characters:
        raise LimitExceeded(f"concat makes a text of more than {scope.run.limits.characters:,} characters.")
    return "".join(texts)


def _array(setup: Setup, scope: Scope, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    # Lists of lists of the same list grow without end on paper; counting them stops that early.
    if any(is_array(value) or isinstance(value, Mapping) for value in arguments):
        scope.run.count(setup.texts.measure(list(arguments)))
    return list(arguments)


def _range(setup: Setup, scope: Scope, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    if len(arguments) != 2:
        raise ValueError("range takes two arguments: the first number and the last.")
    first, last = (_number(value, "range") for value in arguments)
    if first != int(first) or last != int(last):
        raise ValueError("range takes whole numbers.")
    scope.run.count(max(0, int(last) - int(first) + 1))
    return list(range(int(first), int(last) + 1))


def _or(setup: Setup, scope: Scope, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    return any(is_true(value) for value in arguments)


def _and(setup: Setup, scope: Scope, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    return all(is_true(value) for value in arguments)


def _not(setup: Setup, scope: Scope, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    return not is_true(_only(arguments, "not"))


def _add(setup: Setup, scope: Scope, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    return _bounded(_sum([_number(value, "add") for value in arguments]))


def _subtract(setup: Setup, scope: Scope, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    if not arguments:
        raise ValueError("subtract takes numbers.")
    numbers = [_number(value, "subtract") for value in arguments]
    return _bounded(_sum([numbers[0], *(-number for number in numbers[1:])]))


def _equals(setup: Setup, scope: Scope, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    if len(arguments) < 2:
        raise ValueError("equals takes two arguments.")
    plain = [None if value is MISSING else value for value in arguments]
    for value in plain:
        if is_array(value) or isinstance(value, Mapping):
            scope.run.count(setup.texts.measure(value))
    return all(_same(left, right) for left, right in pairwise(plain))


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    try:
        return bool(left == right)
    except (TypeError, ValueError, RecursionError):
        return False


def _compared(name: str, holds: Callable[[Any, Any], bool]) -> Value:
    def compare(setup: Setup, scope: Scope, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        if len(arguments) != 2:
            raise ValueError(f"{name} takes two arguments.")
        left, right = arguments
        if isinstance(left, str) and isinstance(right, str) and not (_is_number(left) and _is_number(right)):
            return holds(left, right)
        return holds(_number(left, name), _number(right, name))

    return compare


def _camel_case(setup: Setup, scope: Scope, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    words = "".join(letter if letter.isalnum() else " " for letter in setup.texts.text(_only(arguments, "camelCase")))
    first, *others = words.split() or [""]
    return first[:1].lower() + first[1:] + "".join(word[:1].upper() + word[1:] for word in others)


def _get(setup: Setup, scope: Scope, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    names = [*arguments, *([named["name"]] if "name" in named else [])]
    if not 1 <= len(names) <= 2 or not all(isinstance(name, str) for name in names):
        raise ValueError("get takes the name of a variable, and perhaps that of a field in it.")
    read = setup.fields.read
    found = read(scope.root, names[0])
    if found is MISSING and len(names) == 1:
        found = scope.root
        for part in names[0].split("."):
            found = read(found, part)
    return read(found, names[1]) if len(names) == 2 else found


def _braces(text: str) -> Value:
    return lambda setup, scope, arguments, named: text


def _only(arguments: Sequence[Any], name: str) -> Any:
    if len(arguments) != 1:
        raise ValueError(f"{name} takes one argument, not {len(arguments)}.")
    return arguments[0]


def _number(value: Any, name: str) -> Number:
    if isinstance(value, str) and len(value) < _LONGEST_NUMBER:
        try:
            return int(value)
        except ValueError:
            pass
        try:
            return float(value)
        except ValueError:
            pass
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool) and value == value:  # noqa: PLR0124
        return value
    shown = "nothing" if value is None or value is MISSING else f"a {type(value).__name__}"
    raise ValueError(f"{name} takes numbers, not {repr(value)[:40] if isinstance(value, str) else shown}.")


def _is_number(text: str) -> bool:
    try:
        _number(text, "")
    except ValueError:
        return False
    return True


def _sum(numbers: Sequence[Number]) -> Number:
    if any(isinstance(number, Decimal) for number in numbers) and any(isinstance(one, float) for one in numbers):
        numbers = [float(number) for number in numbers]
    return sum(numbers)


def _bounded(number: Number) -> Number:
    if isinstance(number, int) and number.bit_length() > 4 * _LONGEST_NUMBER:
        raise ValueError("The number has too many digits.")
    return number


VALUES: Mapping[str, Value] = {
    "add": _add,
    "and": _and,
    "array": _array,
    "camelCase": _camel_case,
    "concat": _concat,
    "doubleClose": _braces("}}"),
    "doubleOpen": _braces("{{"),
    "equal": _equals,
    "equals": _equals,
    "get": _get,
    "greaterThan": _compared("greaterThan", lambda left, right: left > right),
    "greaterThanOrEqual": _compared("greaterThanOrEqual", lambda left, right: left >= right),
    "json": _json,
    "lessThan": _compared("lessThan", lambda left, right: left < right),
    "lessThanOrEqual": _compared("lessThanOrEqual", lambda left, right: left <= right),
    "not": _not,
    "or": _or,
    "range": _range,
    "subtract": _subtract,
}
"""Each is called with the language's setup, the scope, the arguments and the named ones; ``ValueError`` is a fault."""

BARE = frozenset({"doubleOpen", "doubleClose"})
"""Those that stand without arguments."""
