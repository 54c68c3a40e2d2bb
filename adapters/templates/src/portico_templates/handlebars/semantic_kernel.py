"""The helpers that Semantic Kernel documents for its Handlebars templates.

The compiler knows `message`, `raw` and `set`, which give no values. Where Semantic Kernel leaves open what counts as
true, it is what `if` takes for true. Without arguments the name of such a helper is a variable, but for those in
`BARE`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any

from portico.errors import LimitExceeded
from portico_templates.handlebars._running import Run
from portico_templates.handlebars.values import MISSING, Values, is_array, is_true

Helper = Callable[[Values, Run, Sequence[Any], Mapping[str, Any]], Any]
"""Called with the values of the language, the run, the arguments and the named ones; ``ValueError`` is a mistake in
the template."""

Number = int | float | Decimal

BLOCKS = frozenset({"message", "raw"})
_LONGEST_NUMBER = 1_000


def _json(values: Values, run: Run, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    value = _only(arguments, "json")
    if isinstance(value, str):
        return value
    return values.json(value)


def _concat(values: Values, run: Run, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    texts = [values.text(value) for value in arguments]
    if sum(map(len, texts)) > run.limits.characters:
        raise LimitExceeded(f"concat makes a text of more than {run.limits.characters:,} characters.")
    return "".join(texts)


def _array(values: Values, run: Run, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    _count_parts(values, run, arguments)
    return list(arguments)


def _count_parts(values: Values, run: Run, arguments: Sequence[Any]) -> None:
    """Count the parts of lists and mappings: lists of lists of the same list grow without end on paper."""
    if any(is_array(value) or isinstance(value, Mapping) for value in arguments):
        run.count(values.measure(list(arguments)))


def _range(values: Values, run: Run, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    if len(arguments) != 2:
        raise ValueError("range takes two arguments: the first number and the last.")
    first, last = (_number(value, "range") for value in arguments)
    if first != int(first) or last != int(last):
        raise ValueError("range takes whole numbers.")
    run.count(max(0, int(last) - int(first) + 1))
    return list(range(int(first), int(last) + 1))


def _not(values: Values, run: Run, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    return not is_true(_only(arguments, "not"))


def _add(values: Values, run: Run, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    return _bounded(_sum([_number(value, "add") for value in arguments]))


def _subtract(values: Values, run: Run, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    if not arguments:
        raise ValueError("subtract takes numbers.")
    numbers = [_number(value, "subtract") for value in arguments]
    return _bounded(_sum([numbers[0], *(-number for number in numbers[1:])]))


def _equals(values: Values, run: Run, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    if len(arguments) < 2:
        raise ValueError("equals takes two arguments.")
    _count_parts(values, run, arguments)
    plain = [None if value is MISSING else value for value in arguments]
    return all(_same(left, right) for left, right in pairwise(plain))


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    try:
        return bool(left == right)
    except (TypeError, ValueError, RecursionError):
        return False


def _compared(name: str, holds: Callable[[Any, Any], bool]) -> Helper:
    def compare(values: Values, run: Run, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        if len(arguments) != 2:
            raise ValueError(f"{name} takes two arguments.")
        left, right = arguments
        if isinstance(left, str) and isinstance(right, str) and not (_is_number(left) and _is_number(right)):
            return holds(left, right)
        return holds(_number(left, name), _number(right, name))

    return compare


def _camel_case(values: Values, run: Run, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    words = "".join(letter if letter.isalnum() else " " for letter in values.text(_only(arguments, "camelCase")))
    first, *others = words.split() or [""]
    return first[:1].lower() + first[1:] + "".join(word[:1].upper() + word[1:] for word in others)


def _get(values: Values, run: Run, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    names = [*arguments, *([named["name"]] if "name" in named else [])]
    if not 1 <= len(names) <= 2 or not all(isinstance(name, str) for name in names):
        raise ValueError("get takes the name of a variable, and perhaps that of a field in it.")
    read = values.read
    found = read(run.root, names[0])
    if found is MISSING and len(names) == 1:
        found = run.root
        for part in names[0].split("."):
            found = read(found, part)
    return read(found, names[1]) if len(names) == 2 else found


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


VALUES: Mapping[str, Helper] = {
    "add": _add,
    "and": lambda values, run, arguments, named: all(map(is_true, arguments)),
    "array": _array,
    "camelCase": _camel_case,
    "concat": _concat,
    "doubleClose": lambda values, run, arguments, named: "}}",
    "doubleOpen": lambda values, run, arguments, named: "{{",
    "equal": _equals,
    "equals": _equals,
    "get": _get,
    "greaterThan": _compared("greaterThan", lambda left, right: left > right),
    "greaterThanOrEqual": _compared("greaterThanOrEqual", lambda left, right: left >= right),
    "json": _json,
    "lessThan": _compared("lessThan", lambda left, right: left < right),
    "lessThanOrEqual": _compared("lessThanOrEqual", lambda left, right: left <= right),
    "not": _not,
    "or": lambda values, run, arguments, named: any(map(is_true, arguments)),
    "range": _range,
    "subtract": _subtract,
}
BARE = frozenset({"doubleOpen", "doubleClose"})
"""Those that stand without arguments."""
