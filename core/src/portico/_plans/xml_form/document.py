"""The text of a plan in XML: what was mended in it, and the elements that stand in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, NoReturn
from xml.parsers import expat

from portico._plans.plan import MAXIMUM_STEPS
from portico.errors import PlanFormatError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LIMIT_OF_CHARACTERS = 1_000_000

_PREFIX = "function."
_LENGTH = len(_PREFIX)
_DEPTH = 8
# A goal may stand before its plan, so the text can have two roots. Inside an element there can be no document type:
# expat stops at "<!DOCTYPE" before it reads an entity.
_OPEN, _CLOSE = "<portico>", "</portico>"
_HEAD = re.compile(r"\ufeff?(?:\s*<\?xml\s[^<>]*\?>)?")
_NOT_A_BREAK = re.compile(r"[^\n]")
_TAG = re.compile(r"<[^\s<>/=\"']++")
_ATTRIBUTE = re.compile(r"\s++([^\s=<>/\"']++)\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+')")


@dataclass(frozen=True, slots=True)
class Mend:
    """Something that was put right while reading: where, counted from 1, and what."""

    line: int
    column: int
    what: str

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.what}"


class WrittenCall(NamedTuple):
    """One ``<function.…>``: what follows the dot, its attributes, the comments before it, and its byte offset."""

    function: str
    attributes: Mapping[str, str]
    reason: str
    offset: int


class Edit(NamedTuple):
    """A part of a text and what replaces it; without ``what``, it belongs to the edit before."""

    start: int
    end: int
    new: str
    what: str = ""


class Document:
    """A plan's text as it was ``written``, and as it is parsed: with the edits, which are in order."""

    def __init__(self, written: str, edits: Sequence[Edit] = ()) -> None:
        self.written = written
        self.edits = edits
        pieces: list[str] = []
        done = 0
        for edit in edits:
            pieces += (written[done : edit.start], edit.new)
            done = edit.end
        text = "".join([*pieces, written[done:]])
        head = _HEAD.match(text)
        if head is not None and head.end():
            # Inside the root there may be no byte order mark and no XML declaration; the places stay as they are.
            text = _NOT_A_BREAK.sub(" ", head[0]) + text[head.end() :]
        self.text = text

    @property
    def mends(self) -> tuple[Mend, ...]:
        """What was mended, by line and column of the text as it was written."""
        return tuple(Mend(*self._place(edit.start), edit.what) for edit in self.edits if edit.what)

    def place(self, call: WrittenCall, argument: str = "") -> tuple[int, int]:
        """Return line and column of a call, or of the attribute for an argument, where there is one."""
        start = self._character(call.offset)
        tag = _TAG.match(self.text, start)
        position = tag.end() if tag is not None and argument else len(self.text)
        lowered = argument.lower()
        while match := _ATTRIBUTE.match(self.text, position):
            if match[1].lower() == lowered:
                start = match.start(1)
                break
            position = match.end()
        return self._place(self._origin(start))

    def error(self, call: WrittenCall, problem: str, argument: str = "") -> PlanFormatError:
        """Make the error for a call, or for one of its attributes."""
        return _error(self.place(call, argument), problem)

    def error_at(self, index: int, problem: str, *, parsed: bool = True) -> PlanFormatError:
        """Make the error for a byte of what was parsed, or for a character of what was written."""
        return _error(self._place(self._origin(self._character(index)) if parsed else index), problem)

    def parse(self) -> tuple[list[WrittenCall], str]:
        """Return the calls and the goal; raises ``PlanFormatError`` with the place for what is no plan in XML."""
        return _Parser(self).parse()

    def _character(self, index: int) -> int:
        parsed = f"{_OPEN}{self.text}".encode("utf-8", "surrogatepass")
        return max(0, len(parsed[:index].decode("utf-8", "ignore")) - len(_OPEN))

    def _origin(self, offset: int) -> int:
        moved = 0
        for start, end, new, _ in self.edits:
            if offset < start + moved:
                break
            if offset < start + moved + len(new):
                return start
            moved += len(new) - (end - start)
        return offset - moved

    def _place(self, offset: int) -> tuple[int, int]:
        return self.written.count("\n", 0, offset) + 1, offset - self.written.rfind("\n", 0, offset)


def _error(place: tuple[int, int], problem: str) -> PlanFormatError:
    line, column = place
    return PlanFormatError(f"line {line}, column {column}: {problem}.", line=line, column=column)


class _Parser:
    __slots__ = ("calls", "document", "expat", "found", "goal", "open", "reasons")

    def __init__(self, document: Document) -> None:
        self.document = document
        self.calls: list[WrittenCall] = []
        self.reasons: list[str] = []
        self.goal: list[str] = []
        self.open: list[str] = []
        self.found = False

    def parse(self) -> tuple[list[WrittenCall], str]:
        text = self.document.text
        self.expat = parser = expat.ParserCreate()
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.words
        parser.CommentHandler = self.comment
        try:
            parser.Parse(f"{_OPEN}{text}{_CLOSE}", True)
        except expat.ExpatError as error:
            index = parser.CurrentByteIndex
            parsed = f"{_OPEN}{text}".encode()
            if parsed[max(0, index - 2) :][:9].upper() == b"<!DOCTYPE":
                raise self.document.error_at(index - 2, "a document type is refused") from error
            problem = f"not XML: {expat.ErrorString(error.code)}"
            if index >= len(parsed):
                problem = "the text ends before the plan does"
            raise self.document.error_at(index, problem) from error
        except UnicodeEncodeError as error:
            start = len(f"{_OPEN}{text}"[: error.start].encode("utf-8", "surrogatepass"))
            raise self.document.error_at(start, "half of a surrogate pair") from error
        del self.expat  # it holds this by its handlers
        if not self.found:
            raise self.document.error_at(len(self.document.written), "there is no <plan>", parsed=False)
        return self.calls, "".join(self.goal).strip()

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        inside = self.open[-1] if self.open else ""
        word = tag.lower()
        if inside == "plan":
            if not word.startswith(_PREFIX):
                self.fail(f"<{tag[:60]}> is no step; a step is <function.Plugin.Name …>")
            if len(self.calls) == MAXIMUM_STEPS:
                self.fail(f"more than {MAXIMUM_STEPS:,} steps")
            reason = "\n".join(self.reasons) if self.reasons else ""
            self.reasons.clear()
            self.calls.append(WrittenCall(tag[_LENGTH:], attributes, reason, self.expat.CurrentByteIndex))
            word = _PREFIX
        elif inside == _PREFIX:
            self.fail(f"<{tag[:60]}> is inside a function")
        elif word == "plan":
            if self.found:
                self.fail("a second <plan>")
            self.found = True
        elif inside and word not in ("goal", "xml"):
            self.fail(f"<{tag[:60]}> is not of a plan")
        elif len(self.open) >= _DEPTH:
            self.fail(f"elements deeper than {_DEPTH} levels")
        self.open.append(word)

    def end(self, tag: str) -> None:
        if self.open.pop() == "plan":
            self.reasons.clear()

    def words(self, words: str) -> None:
        inside = self.open[-1]
        if inside == "goal":
            self.goal.append(words)
        elif not words.isspace():
            index = self.expat.CurrentByteIndex + len(words) - len(words.lstrip())
            if inside == _PREFIX:
                self.fail("text inside a function; its arguments are attributes", index)
            self.fail("text between the steps" if inside == "plan" else "text around the plan", index)

    def comment(self, words: str) -> None:
        if self.open[-1] == "plan" and (words := words.strip()):
            self.reasons.append(words)

    def fail(self, problem: str, index: int | None = None) -> NoReturn:
        raise self.document.error_at(self.expat.CurrentByteIndex if index is None else index, problem)
