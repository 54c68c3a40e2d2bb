"""The strict parser: expat, nothing beyond a ``<plan>`` with its ``<goal>``, and no document type."""

from __future__ import annotations

import re
from typing import NoReturn
from xml.parsers import expat

from portico.plans.xml_form.written import LIMIT_OF_STEPS, WrittenCall, WrittenPlan, format_error

__all__ = ["parse_strictly"]

_PREFIX = "function."
_LENGTH = len(_PREFIX)
_DEPTH = 8
_WRAPPERS = frozenset({"goal", "xml"})
# A goal may stand before its plan, so that there are two roots; and inside of an element no document type can be:
# expat stops at "<!DOCTYPE" before it would read a single entity of it.
_ROOT = "portico"
_OPEN, _CLOSE = f"<{_ROOT}>", f"</{_ROOT}>"
_HEAD = re.compile(r"\ufeff?(?:\s*<\?xml\s[^<>]*\?>)?")
_NOT_A_BREAK = re.compile(r"[^\n]")


class _TextFound(Exception):
    """There is text where none may be."""


def parse_strictly(text: str) -> WrittenPlan:
    """Parse well-formed XML; raises ``PlanFormatError`` with the place for anything else."""
    head = _HEAD.match(text)
    body = text
    if head is not None and head.end():
        # Inside of the root neither a byte order mark nor an XML declaration may be; the places stay as they are.
        body = _NOT_A_BREAK.sub(" ", head[0]) + text[head.end() :]
    try:
        return _Parser(body).parse(merged=True)
    except _TextFound:
        # Merged text has no place of its own.
        return _Parser(body).parse(merged=False)


class _Parser:
    __slots__ = ("body", "calls", "depth", "expat", "found", "goal", "in_call", "in_goal", "in_plan", "reasons")

    def __init__(self, body: str) -> None:
        self.body = body
        self.calls: list[WrittenCall] = []
        self.reasons: list[str] = []
        self.goal: list[str] = []
        self.found = self.in_plan = self.in_call = self.in_goal = False
        self.depth = 0

    def parse(self, *, merged: bool) -> WrittenPlan:
        self.expat = parser = expat.ParserCreate()
        parser.buffer_text = merged
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.words if merged else self.placed_words
        parser.CommentHandler = self.comment
        try:
            parser.Parse(f"{_OPEN}{self.body}{_CLOSE}", True)
        except expat.ExpatError as error:
            self.fail(expat.ErrorString(error.code), cause=error)
        except UnicodeEncodeError as error:
            raise format_error(self.body, error.start - len(_OPEN), "half of a surrogate pair") from error
        if not self.found:
            raise format_error(self.body, len(self.body), "there is no <plan>")
        return WrittenPlan(self.calls, "".join(self.goal).strip(), self.offset)

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if self.in_plan:
            if tag[:_LENGTH].lower() != _PREFIX:
                self.fail(f"<{_shown(tag)}> is no step; a step is <function.Plugin.Name …>")
            if self.in_call:
                self.fail(f"<{_shown(tag)}> is inside of another function")
            if len(self.calls) == LIMIT_OF_STEPS:
                self.fail(f"more than {LIMIT_OF_STEPS:,} steps")
            reason = "\n".join(self.reasons) if self.reasons else ""
            self.reasons.clear()
            self.calls.append(WrittenCall(tag[_LENGTH:], attributes, reason, self.expat.CurrentByteIndex))
            self.in_call = True
            return
        self.depth += 1
        if self.depth == 1:
            return
        word = tag.lower()
        if word == "plan":
            if self.found:
                self.fail("a second <plan>")
            self.found = self.in_plan = True
        elif word not in _WRAPPERS:
            self.fail(f"<{_shown(tag)}> is not of a plan")
        elif self.depth > _DEPTH:
            self.fail(f"elements deeper than {_DEPTH} levels")
        elif word == "goal":
            self.in_goal = True

    def end(self, tag: str) -> None:
        if self.in_call:
            self.in_call = False
            return
        self.depth -= 1
        if self.in_plan:
            self.in_plan = False
            self.reasons.clear()
        elif tag.lower() == "goal":
            self.in_goal = False

    def words(self, words: str) -> None:
        if not words.isspace():
            if not self.in_goal or self.in_plan:
                raise _TextFound
            self.goal.append(words)

    def placed_words(self, words: str) -> None:
        """Refuse text where none may be; there is some, as it has been found before."""
        if not words.isspace() and (not self.in_goal or self.in_plan):
            index = self.expat.CurrentByteIndex + len(words) - len(words.lstrip())
            self.fail(_words_where(in_call=self.in_call, in_plan=self.in_plan), index)

    def comment(self, words: str) -> None:
        if self.in_plan and not self.in_call:
            words = words.strip()
            if words:
                self.reasons.append(words)

    def fail(self, problem: str, index: int | None = None, cause: Exception | None = None) -> NoReturn:
        """Raise the error for the place of a byte, by default where the parser is."""
        offset = self.offset(self.expat.CurrentByteIndex if index is None else index)
        if cause is not None:
            problem, offset = _named(problem, self.body, offset)
        raise format_error(self.body, offset, problem) from cause

    def offset(self, index: int) -> int:
        """Return how many characters of the text are before a byte of what was parsed."""
        return max(0, len(f"{_OPEN}{self.body}".encode()[:index].decode(errors="ignore")) - len(_OPEN))


def _named(problem: str, text: str, offset: int) -> tuple[str, int]:
    """Say in words of plans what expat says in those of XML."""
    start = max(0, offset - 2)
    if text[start : start + 9].upper() == "<!DOCTYPE":
        return "a document type is refused", start
    if offset >= len(text):
        return "the text ends before the plan does", offset
    return f"not XML: {problem}", offset


def _words_where(*, in_call: bool, in_plan: bool) -> str:
    if in_call:
        return "text inside of a function; its arguments are attributes"
    return "text between the steps" if in_plan else "text around the plan"


def _shown(tag: str) -> str:
    return tag if len(tag) <= 60 else f"{tag[:60]}…"
