"""The helpers that Semantic Kernel documents for its Handlebars templates.

The compiler knows `message`, `raw` and `set`, which give no values. Where Semantic Kernel leaves open what counts as
true, it is what `if` takes for true. Without arguments the name of such a helper is a variable, but for those in
`BARE`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from portico_templates.handlebars._running import Run
from portico_templates.handlebars.values import MISSING, Values, is_array, is_hidden, is_true

Helper = Callable[[Values, Run, Sequence[Any], Mapping[str, Any]], Any]
"""Called with the values of the language, the run, the arguments and the named ones. ``ValueError`` is a mistake in
the template; its message follows the helper's name."""

BLOCKS = frozenset({"message", "raw"})
_MOST_BITS = 4_000


def _taking(count: int, function: Callable[..., Any]) -> Helper:
    """Return a helper that takes so many arguments, after the values and the run."""

    def helper(values: Values, run: Run, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        if len(arguments) != count:
            raise ValueError(f"takes {count} argument{'s' if count > 1 else ''}, not {len(arguments)}.")
        return function(values, run, *arguments)

    return helper


def _concat(values: Values, run: Run, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    texts = [values.text(value) for value in arguments]
    for text in texts:
        run.grow(text)
    return "".join(texts)


def _array(values: Values, run: Run, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    _count_parts(values, run, arguments)
    return list(arguments)


def _count_parts(values: Values, run: Run, arguments: Sequence[Any]) -> None:
    """Count the parts of lists and mappings: lists of lists of the same list can have a text without end."""
    if any(is_array(value) or isinstance(value, Mapping) for value in arguments):
        run.count(values.measure(list(arguments)))


def _range(values: Values, run: Run, first: Any, last: Any) -> list[int]:
    first, last = _number(first), _number(last)
    if first != int(first) or last != int(last):
        raise ValueError("takes whole numbers.")
    run.count(max(0, int(last) - int(first) + 1))
    return list(range(int(first), int(last) + 1))


def _add(values: Values, run: Run, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    return _check_size(sum(map(_number, arguments)))


def _subtract(values: Values, run: Run, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    first, *others = [_number(value) for value in arguments] or [0]
    return _check_size(first - sum(others))


def _equals(values: Values, run: Run, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    if len(arguments) < 2:
        raise ValueError("takes two arguments.")
    _count_parts(values, run, arguments)
    plain = [None if value is MISSING else value for value in arguments]
    try:
        return all(isinstance(a, bool) == isinstance(b, bool) and bool(a == b) for a, b in pairwise(plain))
    except (TypeError, ValueError, RecursionError):
        return False


def _make_comparison(holds: Callable[[Any, Any], bool]) -> Helper:
    def compare(values: Values, run: Run, left: Any, right: Any) -> bool:
        try:
            return holds(_number(left), _number(right))
        except ValueError:
            if isinstance(left, str) and isinstance(right, str):
                return holds(left, right)
            raise

    return _taking(2, compare)


def _camel_case(values: Values, run: Run, value: Any) -> str:
    words = "".join(letter if letter.isalnum() else " " for letter in run.grow(values.text(value)))
    first, *others = words.split() or [""]
    return first[:1].lower() + first[1:] + "".join(word[:1].upper() + word[1:] for word in others)


def _get(values: Values, run: Run, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    names = [*arguments, *([named["name"]] if "name" in named else [])]
    if not 1 <= len(names) <= 2 or not all(isinstance(name, str) for name in names):
        raise ValueError("takes the name of a variable, and perhaps that of a field in it.")
    read = values.read
    found = run.root.get(names[0], MISSING) if is_hidden(names[0]) else read(run.root, names[0])
    if found is MISSING and len(names) == 1:
        found = run.root
        for part in names[0].split("."):
            found = read(found, part)
    return read(found, names[1]) if len(names) == 2 else found


def _number(value: Any) -> int | float:
    for kind in (int, float) if isinstance(value, str) else ():
        try:
            value = kind(value)
            break
        except ValueError:
            continue
    if isinstance(value, int | float) and not isinstance(value, bool) and value == value:  # noqa: PLR0124
        return value
    shown = "nothing" if value is None or value is MISSING else f"a {type(value).__name__}"
    raise ValueError(f"takes numbers, not {repr(value)[:40] if isinstance(value, str) else shown}.")


def _check_size(number: int | float) -> int | float:
    if isinstance(number, int) and number.bit_length() > _MOST_BITS:
        raise ValueError("makes a number with too many digits.")
    return number


VALUES: Mapping[str, Helper] = {
    "add": _add,
    "and": lambda values, run, arguments, named: all(map(is_true, arguments)),
    "array": _array,
    "camelCase": _taking(1, _camel_case),
    "concat": _concat,
    "doubleClose": lambda values, run, arguments, named: "}}",
    "doubleOpen": lambda values, run, arguments, named: "{{",
    "equal": _equals,
    "equals": _equals,
    "get": _get,
    "greaterThan": _make_comparison(operator.gt),
    "greaterThanOrEqual": _make_comparison(operator.ge),
    "json": _taking(1, lambda values, run, value: value if isinstance(value, str) else run.grow(values.json(value))),
    "lessThan": _make_comparison(operator.lt),
    "lessThanOrEqual": _make_comparison(operator.le),
    "not": _taking(1, lambda values, run, value: not is_true(value)),
    "or": lambda values, run, arguments, named: any(map(is_true, arguments)),
    "range": _taking(2, _range),
    "subtract": _subtract,
}
BARE = frozenset({"doubleOpen", "doubleClose"})
"""Those that stand without arguments."""
