"""Mends the damage that models do to a plan in XML, where only one reading is possible."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from portico._plans.xml_form.document import Document, Edit
from portico._schema.values import read_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from portico.errors import PlanFormatError

_LIMIT_OF_MENDS = 1_000

_COMMENT = r"<!--(?:(?!-->).)*+(?:-->|\Z)"
_THOUGHT = re.compile(r"\s*+<(think|thinking|reasoning)>(?:.*?</\1>|())", re.IGNORECASE | re.DOTALL)
_PLAN = re.compile(rf"{_COMMENT}|<(plan)(?:\s[^<>]*+|/)?>(\s*+(?:<|\Z))?", re.IGNORECASE | re.DOTALL)
_GOAL = re.compile(r"<goal>([^<]*+)(?:(</goal>)|\Z)", re.IGNORECASE)
# What the parser takes around a plan.
_AROUND = re.compile(r"\ufeff?\s*+(?:<\?xml\s[^<>]*\?>)?\s*+(?:<!--(?:(?!--).)*+-->\s*+)*+", re.DOTALL)
_OUT_OF_PLACE = re.compile(r"<(?:!DOCTYPE|!ENTITY|/?\s*+(?:function\.|plan\b))", re.IGNORECASE)
_BEFORE_THE_PLAN = re.compile(r"<(?:!DOCTYPE|!ENTITY|/?\s*+function\.|/\s*+plan\b)", re.IGNORECASE)

_STEP = re.compile(r"<(function\.)?+(\w[\w.\-]*+)", re.IGNORECASE)
_TAG_END = re.compile(r"\s*+(/?+)(\s*+)>|(?=\s*+</?(?:function\.|plan\b))", re.IGNORECASE)
_END_TAG = re.compile(r"\s*+</([\w.\-]++)\s*+>")
_BARE_TAG = re.compile(r"\s*+<(function\.[\w.\-]++)\s*+>", re.IGNORECASE)
_END_OF_PLAN = re.compile(r"</(plan)\s*+>|</p(?:l(?:an?)?)?\s*+\Z", re.IGNORECASE)
_FORMATTING = re.compile(r"</?(?:b|br|div|em|i|li|ol|p|span|strong|ul)\s*+/?>|<\?[^<>]*+>", re.IGNORECASE)
_DASHES = re.compile(r"-{2,}|-\Z")
_WORDS = re.compile(r"[^<]++")
_LIKE_A_TAG = re.compile(r"[>\"=]|&\w++;")


def _value(quote: str, more: str = "") -> str:
    """Return the pattern of a value up to its last quote; unescaped quotes inside must be pairs around words."""
    opening = rf"(?<=[\s(\[{{:,{quote}]){quote}(?![\s{quote}])"
    closing = rf"(?<![\s\\=]){quote}(?=[\s)\]}}:,;.!?{quote}])"
    return rf"{quote}((?:[^{quote}]++|{opening}[^{quote}]*+{closing}{more})*){quote}"


_NAME = r"[^\W\d][\w.\-:]*+"
_APOSTROPHE = r"|(?<=[^\W\d_])'(?=[^\W\d_])"
_QUOTED = "|".join((_value('"'), _value("'", _APOSTROPHE)))
_ATTRIBUTE = re.compile(
    rf"\s++({_NAME})\s*+=\s*+(?:{_QUOTED})"
    rf"(?=\s*+/?+>|\s++{_NAME}\s*+=\s*+[\"'])"
)
_JSON = r"(?!)"
for _ in range(5):  # as many levels of brackets are understood
    _JSON = rf"""[{{\[](?:[^"'{{}}\[\]]++|"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|{_JSON})*+[}}\]]"""
# A value without quotes inside, or with those of JSON; what stands around it may be wrong.
_LOOSE_ATTRIBUTE = re.compile(
    rf"(\s*+(?:,\s*+)?)({_NAME})\s*+=\s*+"
    rf"(?:([\"'])([^\"'<>]*+|{_JSON})(?<!\\)\3|[“”]([^“”\"<>]*+)[“”]|([^\s\"'“”<>=,/]++|{_JSON}))"
    rf"(?=(\s*+(?:,\s*+)?){_NAME}\s*+=|\s*+/?\s*+>|\s*+</?(?:function\.|plan\b))",
    re.IGNORECASE | re.DOTALL,
)
_INSIDE_A_VALUE = re.compile(r"<(?:!\[CDATA\[|/?+\s*+(?:function\.|plan\b))", re.IGNORECASE)
_OPENING = re.compile(rf"\s*+{_NAME}\s*+=\s*+([\"'])")
_UNESCAPED = re.compile(r"[<\"']|&(?!#|(?:lt|gt|amp|quot|apos);)")
_UNCLEAR = re.compile(r"&(?:\w{2,}+;|(?:lt|gt|amp|quot|apos)\b)")
_ESCAPES = {"<": "&lt;", "&": "&amp;", '"': "&quot;", "'": "&apos;"}


def mend(text: str, is_function: Callable[[str], bool]) -> Document:
    """Return the plan in a text as XML; what cannot be mended for certain is left for the parser to refuse.

    Raises ``PlanFormatError`` with the place where a mend could be wrong.
    """
    return _Mender(text, is_function).mend()


class _Mender:
    def __init__(self, text: str, is_function: Callable[[str], bool]) -> None:
        self.text = text
        self.is_function = is_function
        self.edits: list[Edit] = []
        self.unclosed: set[str] = set()

    def mend(self) -> Document:
        text = self.text
        position = 0
        thought = _THOUGHT.match(text)
        if thought is not None:
            # A plan in a thought is a draft.
            if thought[2] is not None:
                raise self.fail(thought.start(1), f"<{thought[1]}> does not end")
            position = thought.end()
            self.edit(0, position, "", "text around the plan")
        plans = [match for match in _PLAN.finditer(text, position) if match[1]]
        # Prose may name the tag before the plan: after the tag of a plan comes another one.
        plan = next((match for match in plans if match[2] is not None), plans[0] if plans else None)
        if plan is None:
            raise self.fail(len(text), "there is no <plan>")
        goal = _GOAL.search(text, position, plan.start())
        if goal is not None:
            self.around(position, goal.start())
            self.escape(goal.start(1), goal.end(1))
            position = goal.end()
            if goal[2] is None:
                self.edit(position, position, "</goal>", "</goal> is missing")
        self.around(position, plan.start(), _BEFORE_THE_PLAN)
        begin = plan.end() if plan[2] is None else plan.start(2)
        end = begin if text[begin - 2] == "/" else self.steps(begin, plan[1])
        if text[end:].strip() == text[plan.start() : end]:
            self.cut(end, len(text), "the same plan again")
        else:
            self.around(end, len(text))
        return Document(text, self.edits)

    def around(self, start: int, end: int, out_of_place: re.Pattern[str] = _OUT_OF_PLACE) -> None:
        if _AROUND.fullmatch(self.text, start, end):
            return
        odd = out_of_place.search(self.text, start, end)
        if odd is not None:
            raise self.fail(odd.start(), f"{odd[0]} outside the plan")
        self.cut(start, end, "text around the plan")

    def steps(self, position: int, spelled: str) -> int:
        """Mend the steps up to the end of the plan, and return the offset after it."""
        text, called, words, unfinished = self.text, False, None, True
        while position < len(text):
            if match := _WORDS.match(text, position):
                if match[0].strip():
                    words = match
                    if odd := _LIKE_A_TAG.search(match[0]):
                        raise self.fail(position + odd.start(), f"{odd[0]!r} belongs to no tag")
                    self.cut(position, match.end(), "text between the steps")
                position = match.end()
            elif text.startswith("<!--", position):
                end = text.find("-->", position)
                end = len(text) if end < 0 else end + 3
                # A comment says why a step is there. Where the text ends after it, that step is missing.
                unfinished = not called or text[position + 4 : end - 3].strip().upper() != "END"
                first = _DASHES.search(text, position + 4, end - 3)
                if first and _OUT_OF_PLACE.search(text, first.end(), end):
                    raise self.fail(position, "where the comment ends is not certain: it has '--' and a tag inside")
                for dashes in _DASHES.finditer(text, position + 4, end - 3):
                    self.edit(*dashes.span(), "—", "'--' inside a comment")
                position = end
            elif match := _END_OF_PLAN.match(text, position):
                if words is not None and not called:
                    raise self.fail(words.start(), "the plan is of text and has no step")
                if match[1] is None:
                    self.edit(*match.span(), f"</{spelled}>", "</plan> is missing")
                elif match[1] != spelled:
                    self.edit(match.start(1), match.end(1), spelled, f"</{match[1]}> ends <{spelled}>")
                return match.end()
            elif (match := _STEP.match(text, position)) and (match[1] or self.is_function(match[2])):
                position, called, unfinished = self.step(match), True, False
            elif match := _FORMATTING.match(text, position):
                self.edit(position, match.end(), "", f"{match[0]} between the steps")
                position = match.end()
            else:
                tag = text[position : position + 60].partition(">")[0]
                raise self.fail(position, f"{tag}> is no step; a step is <function.Plugin.Name …>")
        if unfinished:
            raise self.fail(position, "the text ends before the plan does")
        self.edit(position, position, f"</{spelled}>", "</plan> is missing")
        return position

    def step(self, match: re.Match[str]) -> int:
        """Mend one tag of a function, with its end tag, and return the offset after it."""
        text, position = self.text, match.end()
        name = f"{match[1] or 'function.'}{match[2]}"
        if not match[1]:
            self.edit(match.start(2), match.start(2), "function.", f"{match[2]} lacks 'function.'")
        values: dict[str, str] = {}
        while True:
            attribute = _ATTRIBUTE.match(text, position)
            if attribute is None:
                loose = _LOOSE_ATTRIBUTE.match(text, position)
                if loose is None:
                    break
                key, value, position = self.loose(loose)
                if key in values:
                    raise self.fail(loose.start(2), f"{key} is there twice")
                values[key] = value
                continue
            key, position = attribute[1], attribute.end()
            group = 2 if attribute[2] is not None else 3
            if values.get(key) == attribute[group]:
                self.edit(attribute.start(), position, "", f"{key} is there twice, with one value")
                continue
            values[key] = attribute[group]
            self.value(attribute.start(group), attribute.end(group))
        tag = _TAG_END.match(text, position)
        if tag is None:
            if opening := _OPENING.match(text, position):
                inside = text.find(opening[1], opening.end())
                if inside >= 0:
                    raise self.fail(inside, "a quote is not escaped, and where the value ends is not certain")
                raise self.fail(opening.end() - 1, "the value does not end")
            raise self.fail(position, f'the tag of {name} does not go on with attribute="value" and does not end')
        end = _END_TAG.match(text, tag.end())
        ends = end is not None and end[1].lower() in ("function", name.lower(), match[2].lower())
        if tag[1] is None:
            self.edit(position, position, "/>", f"the tag of {name} does not end")
            return position
        if tag[1]:
            if tag[2]:
                self.edit(tag.start(1), tag.end(), "/>", "a space between '/' and '>'")
            if end is not None and ends and name.lower() not in self.unclosed:
                self.edit(*end.span(), "", f"</{end[1]}> ends what is closed")
                return end.end()
            return tag.end()
        if end is not None and ends:
            if end[1] != name:
                self.edit(end.start(1), end.end(1), name, f"</{end[1]}> ends <{name}>")
            return end.end()
        same = _BARE_TAG.match(text, tag.end())
        if same is not None and same[1].lower() == name.lower():
            raise self.fail(same.start(1) - 1, f"<{same[1]}> is a step, or an end tag without its '/'")
        self.unclosed.add(name.lower())
        self.edit(tag.end() - 1, tag.end() - 1, "/", f"the tag of {name} is not closed")
        return tag.end()

    def loose(self, match: re.Match[str]) -> tuple[str, str, int]:
        """Mend what stands around one attribute; return its name, its value, and the offset after it."""
        gap, name, _, plain, typographic, bare, following = match.groups()
        if following == "" and "=" in (plain or ""):
            raise self.fail(match.end() - 1, "a quote is not escaped, and where the value ends is not certain")
        written = plain or typographic or bare or ""
        if not {'"', "'"}.isdisjoint(written) and typographic is None:
            try:
                read_json(written)
            except (ValueError, RecursionError) as error:
                raise self.fail(match.start(2), f"the value of {name} is not quoted, and no JSON: {error}") from error
        if not gap.isspace():
            what = "a comma between attributes" if gap else "no space between two attributes"
            self.edit(match.start(1), match.end(1), " ", what)
        if bare is not None:
            self.edit(match.start(6), match.start(6), '"', f"the value of {name} has no quotes")
            self.value(match.start(6), match.end(6), '"')
            self.edit(match.end(6), match.end(6), '"', "")
        elif typographic is not None:
            self.edit(match.start(5) - 1, match.start(5), '"', "typographic quotes")
            self.escape(match.start(5), match.end(5))
            self.edit(match.end(5), match.end(5) + 1, '"', "")
        else:
            self.value(match.start(4), match.end(4))
        return name, written, match.end()

    def value(self, start: int, end: int, quote: str = "") -> None:
        if inside := _INSIDE_A_VALUE.search(self.text, start, end):
            problem = f"the value has {inside[0]} inside: '<' is not escaped, or the last quote is missing"
            raise self.fail(start - 1, problem)
        self.escape(start, end, quote)

    def escape(self, start: int, end: int, quote: str = "") -> None:
        """Escape what a value has unescaped, with one note for each kind: a value may be a page of HTML."""
        noted: set[str] = set()
        quote = quote or self.text[start - 1]
        for match in _UNESCAPED.finditer(self.text, start, end):
            character = match[0]
            if unclear := _UNCLEAR.match(self.text, match.start()):
                raise self.fail(match.start(), f"{unclear[0]} is no name that XML has, or '&' is not escaped")
            if character in ("<", "&", quote):
                what = "" if character in noted else f"{character} is not escaped"
                self.edit(match.start(), match.end(), _ESCAPES[character], what)
                noted.add(character)

    def cut(self, start: int, end: int, what: str) -> None:
        words = self.text[start:end]
        self.edit(start + len(words) - len(words.lstrip()), end, "", what)

    def edit(self, start: int, end: int, new: str, what: str) -> None:
        if len(self.edits) == _LIMIT_OF_MENDS:
            raise self.fail(start, f"more than {_LIMIT_OF_MENDS:,} things to mend")
        self.edits.append(Edit(start, end, new, what))

    def fail(self, offset: int, problem: str) -> PlanFormatError:
        return Document(self.text).error_at(offset, problem, parsed=False)
