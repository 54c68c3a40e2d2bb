"""The attributes of an XML step that say for what it runs and when."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from portico._plans.json_form import expression_to_json
from portico._plans.plan import AT_ONCE, Each, Expression, From, Step, Value, When
from portico.errors import PlanFormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FOR_EACH, AT_A_TIME, IF_FAILS, RUN_IF = "forEach", "atOnce", "ifFails", "runIf"
CONTROL = {name.lower(): name for name in (FOR_EACH, AT_A_TIME, IF_FAILS, RUN_IF)}
_PLACES = {"each.items": FOR_EACH, "each.at_once": AT_A_TIME, "each.failed": IF_FAILS, "when": RUN_IF}
_WORDS, _SIGN = re.compile(r"(not\s+)?(present\s+)?"), re.compile(r"[!=]=")


def attribute_at(place: str) -> str:
    """Return the attribute that holds a place in a step's JSON form, "" where none does.

    >>> attribute_at("arguments.text.list[0]"), attribute_at("when.not.true")
    ('text', 'runIf')
    """
    argument = re.match(r"arguments\.([^.\[]*)", place)
    found = (name for start, name in _PLACES.items() if place.startswith(start))
    return argument[1] if argument is not None else next(found, "")


def read_each(written: Mapping[str, str], items: Expression | None) -> Each | None:
    """Return what a step runs for; raises ``ValueError`` with the attribute's name and what it must be."""
    if items is None:
        for name in (AT_A_TIME, IF_FAILS):
            if name in written:
                raise ValueError(name, f"it belongs to {FOR_EACH}")
        return None
    at_once, failed = written.get(AT_A_TIME, "1"), written.get(IF_FAILS, "stop")
    if not re.fullmatch(r"[0-9]{1,3}", at_once) or not AT_ONCE.fits(int(at_once)):
        raise ValueError(AT_A_TIME, f"it is {AT_ONCE.expected}")
    if failed == "stop":
        return Each(items, int(at_once))
    if failed == "skip":
        return Each(items, int(at_once), "skip")
    raise ValueError(IF_FAILS, "it is stop or skip")


def read_when(text: str, expression: Callable[[str], Expression]) -> When:
    """Return a condition; ``expression`` returns what one side stands for.

    Raises ``ValueError`` with the attribute's name and what it must be.
    """
    words = _WORDS.match(text.strip())
    assert words is not None  # noqa: S101 - both parts of it may be missing
    negated, present, left = bool(words[1]), bool(words[2]), words.string[words.end() :]
    sign = None if present else _SIGN.search(left)
    first = expression((left if sign is None else left[: sign.start()]).strip())
    if not isinstance(first, From):
        raise ValueError(RUN_IF, "it is $NAME, present $NAME, or $NAME == a value, perhaps after not")
    if sign is None:
        return When("present" if present else "true", (first,), negated)
    right = left[sign.end() :].strip()
    if not right:
        raise ValueError(RUN_IF, f"there is nothing after {sign[0]}")
    second = expression(right) if right.startswith("$") else Value(_literal(right))
    return When("equal", (first, second), negated != (sign[0] == "!="))


def _literal(text: str) -> Any:
    """Return the JSON that a text is, or the text; single quotes are quotes too. Raises ``ValueError`` as for NaN."""
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1]
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    try:
        expression_to_json(Value(value))
    except PlanFormatError as error:
        raise ValueError(RUN_IF, f"it compares with a value that is not JSON{str(error)[len('$.value') :]}") from None
    return value


def control_attributes(step: Step, write: Callable[[Expression], str]) -> Iterator[tuple[str, str]]:
    """Yield the attributes of a step; raises ``PlanFormatError`` for what they cannot say."""
    if (each := step.each) is not None:
        yield FOR_EACH, write(each.items)
        if each.at_once != 1:
            yield AT_A_TIME, str(each.at_once)
        if each.failed != "stop":
            yield IF_FAILS, each.failed
    if (when := step.when) is not None:
        first, *rest = when.values
        if not isinstance(first, From) or not all(isinstance(value, From | Value) for value in rest):
            raise PlanFormatError(f"XML cannot hold this plan: the condition of step {step.id} is none on a result.")
        sign = "!=" if when.negated else "=="
        words = ("not " if when.negated and not rest else "") + ("present " if when.test == "present" else "")
        yield RUN_IF, words + write(first) + "".join(f" {sign} {_side(value, write)}" for value in rest)


def _side(value: Expression, write: Callable[[Expression], str]) -> str:
    return json.dumps(value.value, ensure_ascii=False) if isinstance(value, Value) else write(value)
