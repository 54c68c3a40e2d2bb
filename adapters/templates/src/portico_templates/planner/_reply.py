"""From a model's reply to the template in it, or to why there is none."""

from __future__ import annotations

import re
from dataclasses import dataclass

from portico.plans import Infeasible, ReplyProblem

MARK = "CANNOT:"
"""How a reply begins that says that the goal is out of reach; the reason follows."""

MISSING_MARK = "MISSING:"
"""How each line begins that names a capability that would be needed."""

_OF_SEMANTIC_KERNEL = "additional helpers or information may be required"
_FENCE = re.compile(
    r"^[ \t]*(`{3,}|~{3,})[ \t]*([^\n`]*)\n(.*?)(?:(^[ \t]*\1[`~]*[ \t]*$)|\Z)", re.MULTILINE | re.DOTALL
)
_LANGUAGES = {"handlebars", "hbs", "mustache"}
_BEFORE_THE_MARK = re.compile(r"^[\s`~*_#>{!-]*(?:handlebars\b|hbs\b)?[\s*_{!-]*")
_AROUND_A_LINE = " \t*_`}>-"
_ALONE = re.compile(
    r"(^[ \t]*\{\{~?\s*set\b(?:[^{}'\"]|'[^'{}]*'|\"[^\"{}]*\")*?)(~?\}\})(?=[ \t]*(?:\n|\Z))", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Written:
    """The template in a reply, and what was done to get at it."""

    source: str
    recovered: tuple[str, ...] = ()


def read_reply(text: str) -> Written | Infeasible:
    r"""Take the template out of a reply. Raises `ReplyProblem` when there is none, or more than one.

    >>> read_reply("Here it is:\n```handlebars\n{{json (Tone-shout text='hey')}}\n```").source
    "{{json (Tone-shout text='hey')}}"
    >>> read_reply("CANNOT: Nothing here sends mail.\nMISSING: sending mail")
    Infeasible(reason='Nothing here sends mail.', missing=('sending mail',))
    """
    infeasible = _infeasible(text)
    if infeasible is not None:
        return infeasible
    fences = list(_FENCE.finditer(text))
    named = [fence for fence in fences if fence[2].strip().lower() in _LANGUAGES]
    templates = named or [fence for fence in fences if "{{" in fence[3]]
    if len(templates) > 1:
        raise ReplyProblem(f"It has {len(templates)} templates. Write the whole plan as one template.")
    if templates:
        recovered = [] if named else ["the code fence does not say handlebars"]
        if templates[0][4] is None:
            recovered.append("the code fence has no end")
        return _written(templates[0][3], tuple(recovered))
    if text.lstrip().startswith("{{"):
        return _written(text, ("there is no code fence around the template",))
    if "{{" in text:
        raise ReplyProblem("It has no code fence. Write the template between ```handlebars and ```, and nothing else.")
    raise ReplyProblem("It has no template. Write one between ```handlebars and ```.")


def _written(source: str, recovered: tuple[str, ...]) -> Written:
    source = source.strip()
    if "{{" not in source:
        raise ReplyProblem("The template calls nothing: use the helpers to reach the goal.")
    # A line with nothing but {{set …}} gives an empty line, of which the answer would have many.
    return Written(_ALONE.sub(lambda match: f"{match[1].rstrip()}~}}}}", source), recovered)


def _infeasible(text: str) -> Infeasible | None:
    begin = _BEFORE_THE_MARK.match(text)
    rest = text[begin.end() :] if begin else text
    if rest[: len(MARK)].upper() != MARK:
        gives_up = _OF_SEMANTIC_KERNEL in text.lower() and "{{" not in text
        return Infeasible(" ".join(text.split()).strip("`")) if gives_up else None
    reasons: list[str] = []
    missing: list[str] = []
    for line in rest[len(MARK) :].splitlines():
        said = line.strip(_AROUND_A_LINE)
        if said[: len(MISSING_MARK)].upper() == MISSING_MARK:
            missing += [each.strip(_AROUND_A_LINE) for each in said[len(MISSING_MARK) :].split(";")]
        elif said:
            reasons.append(said)
    return Infeasible(" ".join(reasons) or "The functions do not suffice.", tuple(filter(None, missing)))
