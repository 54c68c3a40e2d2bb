"""Keywords for jsonschema whose work ends, whatever a stranger's schema and value are.

Patterns run on RE2, which does not backtrack. Sets are compared by hash. All other work is counted. Adapters hand in
the two libraries, since core imports none.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from portico._schema.values import freeze
from portico._types.compiled import Compiled
from portico.errors import LimitExceeded

_STEPS = 50_000
_STEPS_OF_A_PART = 3
_MOST_STATES, _SHORT = 400, 64

_ESCAPE = r"\\u\{\w+\}|\\u[Dd][89ABab]\w\w\\u[Dd][C-Fc-f]\w\w|\\u\w{4}|\\[pP]\{\w+\}|\\."
_OUTSIDE = re.compile(rf"{_ESCAPE}|\[\^?(?:\\.|[^\]\\])*+\]?|\(\?<(?=\w+>)|[.$]", re.DOTALL | re.ASCII)
_INSIDE = re.compile(rf"{_ESCAPE}|\[|(?<=\\[dDwWsS])-|-(?=\\[dDwWsS])", re.DOTALL | re.ASCII)
_SPACES = r"\t-\r \x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}"
_WRITTEN = {
    _OUTSIDE: {
        ".": r"[^\n\r\x{2028}\x{2029}]", "$": r"\z", "(?<": "(?P<", r"\s": f"[{_SPACES}]", r"\S": f"[^{_SPACES}]",
        "[]": r"[^\x{0}-\x{10FFFF}]", "[^]": r"[\x{0}-\x{10FFFF}]",
    },
    _INSIDE: {"[": r"\[", "-": r"\-", r"\s": _SPACES, r"\b": r"\x08"},
}  # fmt: skip


def re2_pattern(written: str, where: re.Pattern[str] = _OUTSIDE) -> str:
    r"""Return a pattern of ECMA-262 in the syntax of RE2. Raises ``ValueError`` for an escape that only looks alike.

    >>> re2_pattern(r"^[\w-.]+$")
    '^[\\w\\-.]+\\z'
    """

    def write(match: re.Match[str]) -> str:
        text = match[0]
        if text in _WRITTEN[where]:
            return _WRITTEN[where][text]
        if text[0] == "[" and text[-1] == "]":
            return f"[{re2_pattern(text[1:-1], _INSIDE)}]"
        if text[:2] == r"\u":
            code = int(text[3:-1], 16) if text[2:3] == "{" else ord(json.loads(f'"{text}"'))
            return f"\\x{{{code:X}}}"
        if text[1:].isalpha() and text[1] not in "AbBdDfknrsStvwWxz":
            raise ValueError(f"{text} means something else to RE2")
        return text

    return where.sub(write, written)


def _parts(value: Any) -> list[Any]:
    parts = [value]
    for part in parts:  # it grows meanwhile
        if isinstance(part, dict | list):
            parts += part.values() if isinstance(part, dict) else part
    return parts


class Bounded:
    """What a validator class of jsonschema is extended with: ``keywords``, by ``jsonschema.validators.extend``.

    ``vendor`` are the keywords of such a class, ``error`` is its ``ValidationError`` and ``engine`` the module ``re2``.
    Call ``begin`` with a value before its check, and with a schema before its patterns are compiled. What needs more
    steps than it may take raises `LimitExceeded`, what goes too deep ``RecursionError``.
    """

    def __init__(self, vendor: Mapping[str, Any], error: Callable[..., Exception], engine: Any) -> None:
        self._additional_properties = vendor["additionalProperties"]
        self._check, self._error, self._engine = threading.local(), error, engine
        self._options = engine.Options()
        self._options.max_mem, self._options.never_capture, self._options.log_errors = 1 << 18, True, False
        self.compile = lru_cache(1_024)(self._compile)
        own = {
            "additionalProperties": self._additional, "anyOf": self._any_of, "enum": self._enum,
            "pattern": self._pattern, "patternProperties": self._patterns, "uniqueItems": self._unique,
        }  # fmt: skip
        self.keywords = {name: self.bound(name, keyword) for name, keyword in {**vendor, **own}.items()}

    @staticmethod
    def is_plain(schema: Any) -> bool:
        """Tell whether ``unevaluatedProperties`` is checked: the vendor's engine for patterns of names backtracks."""
        named = [part.get("patternProperties") for part in _parts(schema) if isinstance(part, dict)]
        return not any(set("*+?{|") & set(name) for names in named if isinstance(names, dict) for name in names)

    def begin(self, value: Any, *, plain: bool = True, definitions: Mapping[str, Any] | None = None) -> None:
        """Begin the check of a value, whose size says how many steps it may take.

        ``plain`` is what `is_plain` told, ``definitions`` are those of the whole schema.
        """
        steps = (_STEPS_OF_A_PART + (7 + (len(part) >> 5) if isinstance(part, str) else 0) for part in _parts(value))
        self._check.left, self._check.calls, self._check.plain = _STEPS + sum(steps), 0, plain
        self._check.sizes, self._check.listed, self._check.definitions = {}, {}, definitions or {}

    def spend(self, steps: int) -> None:
        """Count steps. Raises `LimitExceeded` when there were too many."""
        check = self._check
        check.left -= steps
        check.calls += 1
        if check.left < 0:
            raise LimitExceeded("too large or too entangled to be checked: it takes more steps than it may")
        if check.calls % 8:
            return
        # Below the vendor is native code that panics when Python's stack ends in it, and a panic is no Exception: it
        # would pass by every handler. So the last quarter of the stack is not entered.
        try:
            sys._getframe(sys.getrecursionlimit() * 3 // 4)  # noqa: SLF001
        except ValueError:
            return
        raise RecursionError

    def bound(self, name: str, keyword: Any) -> Any:
        """Return a keyword whose work is counted."""

        def apply(validator: Any, argument: Any, value: Any, schema: Any) -> Iterator[Any]:
            self.spend(1 + (len(argument) >> 6 if isinstance(argument, dict | list) else 0))
            if name[:11] == "unevaluated" and isinstance(value, dict | list):
                self.spend(len(value) ** 2 >> 9)
                if isinstance(value, dict) and not self._check.plain:
                    return
            for error in keyword(validator, argument, value, schema) or ():
                if not error.schema_path:  # It was made here, with a text of the whole value in its message.
                    self.spend(4 + (self._size(value) + (self._size(argument) if name in ("not", "oneOf") else 0) >> 7))
                yield error

        return apply

    def _size(self, value: Any) -> int:
        """Return about how many characters a value has."""
        if not isinstance(value, dict | list):
            return len(value) if isinstance(value, str) else 4
        if id(value) not in self._check.sizes:
            inside = [*value, *value.values()] if isinstance(value, dict) else value
            self._check.sizes[id(value)] = 2 + sum(map(self._size, inside))
        return int(self._check.sizes[id(value)])

    def _compile(self, written: str) -> Any:
        """Return a pattern as the engine has it; None for one that it cannot hold, which is not evaluated."""
        try:
            pattern = self._engine.compile(re2_pattern(written), self._options)
        except (ValueError, self._engine.error) as error:
            self.spend(1_000 if "too large" in str(error) else 1)
            return None
        self.spend(4 + (pattern.programsize >> 4))
        return pattern

    def finds(self, pattern: Any, text: str) -> bool:
        """Tell whether a compiled pattern is in a text."""
        written = text.encode("utf-8", "replace")  # half of a surrogate pair is not written
        # In the worst case each character meets all states. A short text ends before there are many.
        states = min(pattern.programsize, _MOST_STATES)
        self.spend(1 + (len(text) * states >> (9 if len(text) > _SHORT else 10)))
        return pattern.search(written.decode()) is not None

    def others(self, value: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return the members of an object that neither ``properties`` nor ``patternProperties`` may speak of."""
        names = [name for name in value if name not in schema.get("properties", ())]
        patterns = [self.compile(written) for written in schema.get("patternProperties", ()) if names]
        if None in patterns:
            return {}
        return {name: value[name] for name in names if not any(self.finds(pattern, name) for pattern in patterns)}

    def _additional(self, validator: Any, argument: Any, value: Any, schema: Any) -> Iterator[Any]:
        if isinstance(value, dict) and argument is not True:
            yield from self._additional_properties(validator, argument, self.others(value, schema), {})

    def _any_of(self, validator: Any, argument: Any, value: Any, schema: Any) -> Iterator[Any]:
        # The alternative that is meant comes first: most values are done with it.
        self.spend(len(argument) >> 1 if isinstance(value, dict) else 0)
        likely = Compiled.likely(argument, value, self._check.definitions)
        faults: list[Any] = []
        for index in dict.fromkeys((*likely, *range(len(argument)))):
            found = list(validator.descend(value, argument[index], schema_path=index))
            if not found:
                return
            faults += found
        yield self._error("it is none of the alternatives", context=faults)

    def _pattern(self, validator: Any, argument: Any, value: Any, schema: Any) -> Iterator[Any]:
        if isinstance(value, str) and (pattern := self.compile(argument)) and not self.finds(pattern, value):
            yield self._error("the pattern does not match")

    def _patterns(self, validator: Any, argument: Any, value: Any, schema: Any) -> Iterator[Any]:
        for written, inner in argument.items() if isinstance(value, dict) and value else ():
            if pattern := self.compile(written):
                for name in value:
                    if self.finds(pattern, name):
                        yield from validator.descend(value[name], inner, path=name, schema_path=written)

    def _enum(self, validator: Any, argument: Any, value: Any, schema: Any) -> Iterator[Any]:
        listed = self._check.listed
        if id(argument) not in listed:
            self.spend(self._size(argument) >> 5)
            listed[id(argument)] = set(map(freeze, argument))
        self.spend(self._size(value) >> 5)
        if freeze(value) not in listed[id(argument)]:
            yield self._error("it is not listed")

    def _unique(self, validator: Any, argument: Any, value: Any, schema: Any) -> Iterator[Any]:
        if argument and isinstance(value, list):
            self.spend(self._size(value) >> 5)
            if len(set(map(freeze, value))) < len(value):
                yield self._error("the elements are not all different")
