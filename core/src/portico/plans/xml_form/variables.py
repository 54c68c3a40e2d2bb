"""What ``$name`` stands for in the text of an attribute."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from portico._schema.coerce import read_literal
from portico.errors import PlanFormatError, nearest
from portico.functions import FunctionManual
from portico.plans.plan import INPUT, Expression, From, TextOf, Value
from portico.plans.xml_form.spelling import one_letter_off
from portico.plans.xml_form.written import WrittenCall

__all__ = ["Doubt", "Fail", "Variables"]

_REFERENCE = re.compile(r"\$(\w+)")
_WORD = re.compile(r"\w+")
_ASCII_WORD = re.compile(r"[0-9A-Za-z_]+")
_FIELD = re.compile(r"\.[A-Za-z_]\w*|\[[^\]]{0,40}\]")
_MOST_DOUBTS = 100
_SHORTEST_MISSPELT = 4
_NO_ROOT: Mapping[str, Any] = {}


class Fail(Protocol):
    """Makes the error for a call, or for one of its attributes."""

    def __call__(self, call: WrittenCall, problem: str, attribute: str | None = None) -> PlanFormatError:
        """Return the error, for somebody to raise."""
        ...


class Doubt(NamedTuple):
    """Something that is read as text and may be meant as a variable: in which step and argument."""

    step: str
    argument: str
    what: str


class Variables:
    """The variables of a plan as its steps are read: names in lower case, and the steps that set them last.

    ``sets`` has what each step sets, as it is written and in lower case, also of those that come later.
    """

    __slots__ = ("_ever_set", "doubts", "fail", "known", "made_by", "sets", "step", "unclear")

    def __init__(
        self,
        finished: Collection[str],
        sets: Sequence[tuple[str, str, str]],
        fail: Fail,
        made_by: Callable[[str], FunctionManual | None],
    ) -> None:
        self.known = {INPUT: INPUT, **{each.lower(): each for each in finished}}
        self.fail = fail
        self.made_by = made_by
        self.sets = sets
        self._ever_set: dict[str, None] | None = None
        self.unclear: set[str] = set()
        self.doubts: list[Doubt] = []
        self.step = ""
        """The step that is read."""

    @property
    def ever_set(self) -> dict[str, None]:
        """All that some step sets, also those that come later."""
        if self._ever_set is None:
            self._ever_set = dict.fromkeys(each for _, kept, added in self.sets for each in (kept, added) if each)
        return self._ever_set

    def name(self, written: str) -> str:
        """Return the name of a variable that a step sets."""
        if written.isidentifier():
            return written
        name = written.strip().removeprefix("$")
        word = _WORD.match(name)
        if word is None or word.end() == len(name):
            return name
        # "$my-key" would be the variable "my" and a text, so that nobody can refer to this one.
        self.unclear.add(word[0].lower())
        return name

    def expression(
        self, value: str, call: WrittenCall, written: str, schema: Any = None, root: Mapping[str, Any] = _NO_ROOT
    ) -> Expression:
        """Return what an attribute's text stands for: variables are references, everything else is text."""
        if value[:1] == "$" and not self.unclear:
            step = self.known.get(value[1:].lower())
            if step is not None:
                return From(step)
        parts: list[str | Expression] = []
        done = 0
        for match in _REFERENCE.finditer(value) if "$" in value else ():
            found = self.referred(match[1], value, call, written)
            if found is None:
                continue
            start = match.start()
            step, length = found
            if start > done:
                parts.append(value[done:start])
            parts.append(From(step))
            done = start + 1 + length
            if value[done : done + 1] in (".", "["):
                self.field(step, _FIELD.match(value, done), written)
        if not parts:
            return Value(value if schema is None else read_literal(value, schema, root))
        if done < len(value):
            parts.append(value[done:])
        only = parts[0]
        return only if len(parts) == 1 and isinstance(only, From) else TextOf(tuple(parts))

    def referred(self, word: str, value: str, call: WrittenCall, written: str) -> tuple[str, int] | None:
        """Return the step that ``$word`` stands for, and how much of the word is the name; None where it is text."""
        folded = word.lower()
        if folded in self.unclear:
            raise self.fail(call, f"${word} may be the beginning of another variable's name", written)
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
        near = self.misspelt(folded)
        if near or len(word) + 1 == len(value):
            known = list(self.known)
            near = near or nearest(word[:100], known)
            hint = f"nearest: {', '.join(near)}" if near else f"there are: {', '.join(known[:20])}"
            raise self.fail(call, f"there is no variable ${word[:100]}; {hint}", written)
        self.doubt(written, f"there is no variable ${word[:100]}: it stays text")
        return None

    def misspelt(self, folded: str) -> tuple[str, ...]:
        """Return the variables, set so far or later, that a word differs from in one letter or in its underscores."""
        if len(folded) < _SHORTEST_MISSPELT or len(self.doubts) >= _MOST_DOUBTS:
            return ()
        plain = folded.replace("_", "")
        known = dict.fromkeys([*self.known, *self.ever_set])
        return tuple(
            each
            for each in known
            if len(each) >= _SHORTEST_MISSPELT and (plain == each.replace("_", "") or one_letter_off(folded, each))
        )[:3]

    def field(self, step: str, field: re.Match[str] | None, written: str) -> None:
        """Doubt the name of a member after a variable whose step gives an object or an array."""
        manual = None if field is None else self.made_by(step)
        if field is not None and manual is not None and manual.returns.get("type") in ("object", "array"):
            self.doubt(written, f"{field[0]!r} after the whole output of {step} stays text; variables have no paths")

    def doubt(self, written: str, what: str) -> None:
        """Note what is read as text, of the attribute ``written``."""
        if len(self.doubts) < _MOST_DOUBTS:
            self.doubts.append(Doubt(self.step, written, what))
