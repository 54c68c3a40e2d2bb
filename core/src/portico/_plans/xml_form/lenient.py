"""Reads XML plans as models write them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NoReturn
from xml.parsers import expat

from portico._plans.xml_form.tags import (
    LIMIT_OF_STEPS,
    Tag,
    WrittenCall,
    WrittenPlan,
    end_of_goal,
    end_of_thoughts,
    format_error,
    read_tag,
    words_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from portico.errors import PlanFormatError

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


def parse_strictly(text: str) -> WrittenPlan:
    """Parse well-formed XML; raises ``PlanFormatError`` with the place for anything else."""
    head = _HEAD.match(text)
    if head is not None and head.end():
        # Inside of the root neither a byte order mark nor an XML declaration may be; the places stay as they are.
        text = _NOT_A_BREAK.sub(" ", head[0]) + text[head.end() :]
    return _Parser(text).parse()


class _Parser:
    __slots__ = ("body", "calls", "depth", "expat", "found", "goal", "in_call", "in_goal", "in_plan", "reasons")

    def __init__(self, body: str) -> None:
        self.body = body
        self.calls: list[WrittenCall] = []
        self.reasons: list[str] = []
        self.goal: list[str] = []
        self.found = self.in_plan = self.in_call = self.in_goal = False
        self.depth = 0

    def parse(self) -> WrittenPlan:
        self.expat = parser = expat.ParserCreate()
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.words
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
        if self.in_goal and not self.in_plan:
            self.goal.append(words)
        elif not words.isspace():
            index = self.expat.CurrentByteIndex + len(words) - len(words.lstrip())
            self.fail(_where_text_stands(in_call=self.in_call, in_plan=self.in_plan), index)

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


def _where_text_stands(*, in_call: bool, in_plan: bool) -> str:
    if in_call:
        return "text inside of a function; its arguments are attributes"
    return "text between the steps" if in_plan else "text around the plan"


def _shown(tag: str) -> str:
    return tag if len(tag) <= 60 else f"{tag[:60]}…"


_TAG = re.compile(r"<\s*+/?+\s*+[^\s<>/=\"']++")
_ATTRIBUTE = re.compile(r"\s++([^\s=<>/\"']++)\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+')")


def attribute_offset(text: str, start: int, argument: str, offsets: Mapping[str, int]) -> int | None:
    """Return where an argument of the call that begins at ``start`` is written, in whatever case; None if it is not.

    ``offsets`` are those of the attributes in a text that was mended; in any other they are found here.
    """
    found = dict(offsets)
    tag = _TAG.match(text, start)
    position = tag.end() if tag is not None and not found else len(text)
    while match := _ATTRIBUTE.match(text, position):
        found.setdefault(match[1], match.start(1))
        position = match.end()
    lowered = argument.lower()
    return found.get(argument, next((found[name] for name in found if name.lower() == lowered), None))


_LIMIT_OF_MENDS = 1_000
_WORD = re.compile(r"<(/?+)\s*+([A-Za-z_][\w.\-]*+)")
_NOT_WORDS = re.compile(r"/>|=\s*+[\"'“‘]|[\"'”’]\s*+>|\]\]>|-->")
_MARKUP = re.compile(r"<(?:!--|\s*+/?+\s*+(?:function\.|plan\b))", re.IGNORECASE)
_FORMATTING = frozenset({"b", "br", "code", "em", "i", "p", "pre", "strong"})
_INSTRUCTION = re.compile(r"<\?(?:[^<>?]|\?(?!>))*+\?>")
_CUT = re.compile(r"<[^\s<>]*+\Z")
_CUT_BRACKET = re.compile(r"<(/?)\s*+\Z")
_END_OF_PLAN = "</plan>"
_END_MARK = "END"


def parse_leniently(text: str, catalogue: Mapping[str, Any] | None, mends: list[tuple[int, str]]) -> WrittenPlan:
    """Read the plan in ``text``; what was mended is added to ``mends``, by offsets.

    ``catalogue`` tells functions whose tag lacks ``function.``. Raises ``PlanFormatError`` with the place.
    """
    return _Scanner(text, catalogue or {}, mends).scan()


class _Scanner:
    def __init__(self, text: str, catalogue: Mapping[str, Any], mends: list[tuple[int, str]]) -> None:
        self.text = text
        self.catalogue = catalogue
        self.mends = mends
        self.calls: list[WrittenCall] = []
        self.reasons: list[str] = []
        self.goal = ""
        self.in_goal = False
        # Where the plan began and ended; where the tag of the function ends that is open; its offset and name.
        self.began: int | None = None
        self.spelled = "plan"
        self.prose: int | None = None
        self.ended: int | None = None
        self.open: tuple[int, str] | None = None
        self.after_tag = 0
        self.unclosed: list[str] = []
        self.stray: int | None = None
        self.around: int | None = None

    def scan(self) -> WrittenPlan:
        text = self.text
        thought = end_of_thoughts(text, self.fail)
        position = 0
        if thought is not None:
            self.around, position = thought
        while (found := text.find("<", position)) >= 0:
            self.words(position, found)
            position = self.markup(found)
            if len(self.mends) > _LIMIT_OF_MENDS:
                raise self.fail(found, f"more than {_LIMIT_OF_MENDS:,} things to mend")
        self.words(position, len(text))
        self.finish()
        if self.around is not None:
            self.mends.append((self.around, "text around the plan"))
        return WrittenPlan(self.calls, self.goal, int)

    @property
    def inside(self) -> bool:
        return self.began is not None and self.ended is None

    def words(self, start: int, end: int) -> None:
        words = self.text[start:end]
        stripped = words.strip()
        if not stripped:
            return
        offset = start + words.index(stripped)
        if not self.inside:
            if stripped != "\ufeff" and self.around is None:
                self.around = offset
            return
        if self.stray is not None:
            raise self.fail(self.stray, "a quote is not escaped, and where the value ends is not certain")
        if self.open is not None:
            raise self.fail(offset, "text inside of a function; its arguments are attributes")
        odd = _NOT_WORDS.search(words)
        if odd:
            raise self.fail(start + odd.start(), f"{odd[0]!r} belongs to no tag")
        if self.prose is None:
            self.prose = offset
        self.note(offset, "text between the steps")

    def markup(self, offset: int) -> int:
        text = self.text
        if text.startswith("<!", offset):
            return self.declaration(offset)
        if text.startswith("<?", offset):
            return self.instruction(offset)
        match = _WORD.match(text, offset)
        if match is None:
            if self.inside and (cut := _CUT_BRACKET.match(text, offset)):
                if not cut[1] or self.open is not None:
                    raise self.fail(offset, "the text ends inside of a tag")
                return len(text)
            # An opening bracket in prose: what follows is text.
            self.words(offset, offset + 1)
            return offset + 1
        if self.inside and (cut := _CUT.match(text, offset)):
            if not _END_OF_PLAN.startswith(cut[0].lower()):
                raise self.fail(offset, "the text ends inside of a tag")
            return len(text)
        closing, name = bool(match[1]), match[2]
        word = name.lower()
        if word == "plan":
            return self.plan_end(match) if closing else self.plan_start(match)
        # The end tag of what is open may be written as its tag is: without "function.", or with nothing else.
        if word.startswith(_PREFIX) or (
            closing and self.open is not None and word in ("function", self.open[1].lower())
        ):
            return self.function_end(match) if closing else self.function(match, name[len(_PREFIX) :])
        if self.inside and not closing and name.replace(".", "-", 1) in self.catalogue:
            self.note(offset, f"{name} lacks 'function.'")
            return self.function(match, name)
        if word == "goal":
            return self.goal_tag(match)
        if not self.inside:
            self.words(offset, match.end())
            return match.end()
        return self.other(match, word)

    def declaration(self, offset: int) -> int:
        text = self.text
        if text.startswith("<!--", offset):
            end = text.find("-->", offset + 4)
            if end < 0:
                if self.ended is not None or (self.began is None and "<plan" not in text[offset:].lower()):
                    self.words(offset, len(text))
                    return len(text)
                raise self.fail(offset, "the comment does not end")
            if text.find("--", offset + 4, end) >= 0 or text.startswith("--->", end - 1):
                if _MARKUP.search(text, offset + 4, end):
                    raise self.fail(offset, "where the comment ends is not certain: it has '--' and tags inside")
                self.note(offset, "'--' inside of a comment")
            if self.inside and self.open is None and (words := text[offset + 4 : end].strip()):
                self.reasons.append(words)
            return end + 3
        if text.startswith("<![CDATA[", offset):
            return self.cdata(offset)
        if text[offset + 2 : offset + 9].upper() in ("DOCTYPE", "ENTITY ") or self.inside:
            raise self.fail(offset, "a document type or an entity is refused")
        self.words(offset, offset + 2)
        return offset + 2

    def cdata(self, offset: int) -> int:
        """Take a section away that is around the whole plan; one inside of it may hold words only."""
        start = offset + len("<![CDATA[")
        if not self.inside:
            self.words(offset, start)
            return start
        end = self.text.find("]]>", start)
        if end < 0 or "<" in self.text[start:end] or self.open is not None:
            raise self.fail(offset, "CDATA inside of the plan: it is not certain whether it is text or steps")
        self.note(offset, "CDATA between the steps")
        return end + 3

    def instruction(self, offset: int) -> int:
        match = _INSTRUCTION.match(self.text, offset)
        if match is None:
            if self.inside:
                raise self.fail(offset, "the processing instruction does not end")
            return offset + 2
        if self.inside or not match[0].lower().startswith("<?xml"):
            self.note(offset, "a processing instruction")
        return match.end()

    def plan_start(self, match: re.Match[str]) -> int:
        text, offset = self.text, match.start()
        if self.ended is not None:
            first = text[self.began : self.ended]
            if text.startswith(first, offset):
                self.note(offset, "the same plan again")
                return offset + len(first)
            raise self.fail(offset, "a second plan")
        if self.began is not None:
            if self.calls or self.open is not None:
                raise self.fail(offset, "a plan inside of a plan")
            # The first was only spoken of, as in "here is the <plan>:".
            self.around = self.began if self.around is None else self.around
            while self.mends and self.mends[-1][0] > self.began:
                self.mends.pop()
        tag = read_tag(text, match.end(), "the plan", self.mends, self.fail)
        if tag.attributes:
            self.note(match.end(), "attributes of the plan")
        self.began, self.spelled, self.prose = offset, match[2], None
        self.reasons.clear()
        if tag.closed:
            self.ended = tag.end
        return tag.end

    def plan_end(self, match: re.Match[str]) -> int:
        if not self.inside:
            raise self.fail(match.start(), "</plan> without a <plan>")
        end = self.closing_bracket(match)
        self.close_all()
        self.ended = end
        if match[2] != self.spelled:
            self.note(match.start(), f"</{match[2]}> ends <{self.spelled}>")
        if not self.calls and self.prose is not None:
            raise self.fail(self.prose, "the plan is of text and has no step")
        return end

    def function(self, match: re.Match[str], name: str) -> int:
        offset = match.start()
        if not self.inside:
            raise self.fail(offset, "a function outside of the plan")
        if not name:
            raise self.fail(offset, "a function without a name")
        if len(self.calls) == LIMIT_OF_STEPS:
            raise self.fail(offset, f"more than {LIMIT_OF_STEPS:,} steps")
        offsets: dict[str, int] = {}
        tag = read_tag(self.text, match.end(), match[2], self.mends, self.fail, offsets=offsets)
        if self.open is not None:
            if not tag.closed and not tag.attributes and self.open[1].lower() == match[2].lower():
                raise self.fail(offset, f"<{match[2]}> is a step, or an end tag without its '/'")
            self.unclosed.append(self.open[1].lower())
        self.calls.append(WrittenCall(name, tag.attributes, "\n".join(self.reasons), offset, offsets))
        self.reasons.clear()
        self.opened(tag, match)
        return tag.end

    def opened(self, tag: Tag, match: re.Match[str]) -> None:
        if self.open is not None:
            self.note(self.open[0], f"the tag of {self.open[1]} is not closed")
        self.open = None if tag.closed else (match.start(), match[2])
        self.stray = tag.stray
        self.after_tag = tag.end

    def function_end(self, match: re.Match[str]) -> int:
        name = match[2].lower()
        if not self.inside:
            raise self.fail(match.start(), "the end of a function outside of the plan")
        if name in self.unclosed:
            raise self.fail(match.start(), f"{match[2]} ends after another function began, which would be inside of it")
        if self.open is None:
            if not self.calls or name != f"{_PREFIX}{self.calls[-1].function}".lower():
                raise self.fail(match.start(), f"</{match[2]}> ends nothing")
            if self.text[self.after_tag : match.start()].strip():
                raise self.fail(match.start(), f"</{match[2]}> ends what is closed, and there is text before it")
            self.note(match.start(), f"</{match[2]}> ends what is closed")
        elif name not in ("function", self.open[1].lower()):
            raise self.fail(match.start(), f"</{match[2]}> ends {self.open[1]}")
        elif match[2] != self.open[1]:
            self.note(match.start(), f"</{match[2]}> ends {self.open[1]}")
        self.open = None
        return self.closing_bracket(match)

    def goal_tag(self, match: re.Match[str]) -> int:
        """Take the goal's text up to its end or to the plan that it is around."""
        start, text = match.end(), self.text
        if match[1]:
            self.in_goal = False
            return self.closing_bracket(match)
        if not text.startswith(">", start):
            return start
        if self.inside and self.open is not None:
            raise self.fail(match.start(), "a goal inside of a function")
        stop = end_of_goal(text, start)
        if not self.goal:
            self.goal = words_of(text[start + 1 : stop])
        self.in_goal = True
        return stop

    def other(self, match: re.Match[str], word: str) -> int:
        if word not in _FORMATTING or self.open is not None:
            shown = f"<{match[1]}{match[2][:60]}>"
            raise self.fail(match.start(), f"{shown} is no step; a step is <function.Plugin.Name …>")
        end = self.text.find(">", match.end())
        if end < 0 or self.text[match.end() : end].strip() not in ("", "/"):
            raise self.fail(match.start(), f"<{match[2]}> does not end")
        self.note(match.start(), f"<{match[1]}{match[2]}> between the steps")
        return end + 1

    def closing_bracket(self, match: re.Match[str]) -> int:
        text, end = self.text, match.end()
        while end < len(text) and text[end].isspace():
            end += 1
        if text.startswith(">", end):
            return end + 1
        self.note(match.start(), f"</{match[2]} lacks its '>'")
        return match.end()

    def close_all(self) -> None:
        if self.open is not None:
            self.note(self.open[0], f"the tag of {self.open[1]} is not closed")
            self.open = None

    def finish(self) -> None:
        """End the plan with the text: what is missing is a ``</plan>`` at most."""
        if self.began is None:
            raise self.fail(len(self.text), "there is no <plan>")
        if self.in_goal:
            self.note(len(self.text), "</goal> is missing")
        if self.ended is not None:
            return
        if not self.calls:
            raise self.fail(len(self.text), "the text ends before the plan has a step")
        if self.reasons and self.reasons[-1].upper() != _END_MARK:
            # A comment says why a step is there: that step is not.
            raise self.fail(len(self.text), "the text ends after a comment, before the step that it is of")
        self.close_all()
        self.note(len(self.text), "</plan> is missing")

    def note(self, offset: int, what: str) -> None:
        self.mends.append((offset, what))

    def fail(self, offset: int, problem: str) -> PlanFormatError:
        return format_error(self.text, offset, problem)
