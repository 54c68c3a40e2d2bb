"""Cases: what is asked, and what must come of it."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from portico.errors import ConfigurationError, PlanFormatError, nearest
from portico.plans import Plan, plan_from_json
from portico_cli.arguments import read_text

__all__ = ["Case", "Fact", "fold", "read_cases"]

KEYS = ("id", "question", "sources", "facts", "refused", "plan", "limits", "input")
LIMITS = ("seconds", "tokens", "cost", "steps")
_MOST_BYTES = 50_000_000
_LONGEST_ID = 60
_TABLE = re.compile(r"^[ \t]*\[\[[ \t]*cases[ \t]*\]\]", re.MULTILINE)
_NEXT = re.compile(r"[\s,]*([^\s,\]])")


def fold(text: str) -> str:
    r"""Return a text with its case folded and its white space as single blanks.

    >>> fold("The  Ports\nare Protocols")
    'the ports are protocols'
    """
    return " ".join(text.casefold().split())


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that an answer must say: one of the ``texts``, or what the ``pattern`` finds."""

    texts: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None

    def stands_in(self, answer: str) -> bool:
        """Tell whether an answer says it, whatever its case and its white space."""
        if self.pattern is not None:
            return self.pattern.search(" ".join(answer.split())) is not None
        folded = fold(answer)
        return any(fold(text) in folded for text in self.texts)

    def __str__(self) -> str:
        return " or ".join(self.texts) if self.pattern is None else f"/{self.pattern.pattern}/"


@dataclass(frozen=True, slots=True)
class Case:
    """A question and what must come of it; ``body`` is the case as it is written."""

    id: str
    question: str
    sources: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    refused: bool = False
    plan: Plan | None = None
    limits: Mapping[str, float] = field(default_factory=dict)
    input: Any = None
    body: Mapping[str, Any] = field(default_factory=dict)


def read_cases(name: str) -> list[Case]:
    """Read the cases of a file: JSON lines, a list in JSON, or in a file ``.toml`` the tables ``[[cases]]``.

    ``-`` is standard input. Raises ``ConfigurationError`` with the line for a file that is none, and ``Misused`` for
    one that cannot be read.
    """
    text = read_text(name, _MOST_BYTES, name)
    documents = _of_toml if Path(name).suffix.lower() == ".toml" else _of_json
    cases: dict[str, Case] = {}
    line = 1
    try:
        for at, document in documents(text):
            line = at
            case = _read_case(document)
            if case.id in cases:
                raise ValueError(f"there is a case {case.id!r} already: give each its own `id`")
            cases[case.id] = case
        if not cases:
            raise ValueError("there is no case in it")
    except PlanFormatError as error:
        raise ConfigurationError(f"{name}:{line}: plan: {error}") from error
    except _WrongLine as error:
        raise ConfigurationError(f"{name}:{error.line}: {error}.") from error
    except ValueError as error:
        raise ConfigurationError(f"{name}:{line}: {error}.") from error
    return list(cases.values())


class _WrongLine(ValueError):
    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def _of_json(text: str) -> Iterator[tuple[int, Any]]:
    """Yield the documents of a file with their lines, from 1."""
    if not text.lstrip().startswith("["):
        yield from ((line, _load(each, line)) for line, each in enumerate(text.split("\n"), 1) if each.strip())
        return
    _load(text, 1)  # a mistake is reported with its line here, so that none is left below
    place = text.index("[") + 1
    while found := _NEXT.match(text, place):
        document, place = json.JSONDecoder().raw_decode(text, found.start(1))
        yield _line_at(text, found.start(1)), document


def _load(text: str, line: int) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise _WrongLine(line + error.lineno - 1, f"not JSON: {error.msg}, column {error.colno}") from error
    except (ValueError, RecursionError) as error:
        raise _WrongLine(line, f"not JSON that can be read: {error}") from error


def _of_toml(text: str) -> Iterator[tuple[int, Any]]:
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        line = re.search(r"line (\d+)", str(error))
        raise _WrongLine(int(line[1]) if line else 1, f"not TOML: {error}") from error
    cases = document.get("cases")
    if document.keys() != {"cases"} or not isinstance(cases, list):
        raise _WrongLine(1, "a file of cases has tables [[cases]] and nothing else")
    lines = [_line_at(text, found.start()) for found in _TABLE.finditer(text)]
    yield from zip(lines if len(lines) == len(cases) else [1] * len(cases), cases, strict=True)


def _line_at(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("an object has a key twice")
    return made


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")


def _read_case(body: Any) -> Case:
    """Return the case that a document is. Raises ``ValueError`` and ``PlanFormatError`` for what is none."""
    _known(body, KEYS, "a case")
    question, refused = body.get("question"), body.get("refused", False)
    if not isinstance(question, str) or not question.strip():
        raise ValueError("a case has a `question` in words")
    id = body.get("id", " ".join(question.split())[:_LONGEST_ID])
    if not isinstance(id, str) or not id.strip():
        raise ValueError(f"`id` is a text, not {id!r}")
    if type(refused) is not bool:
        raise ValueError(f"`refused` is true or false, not {refused!r}")
    if refused and (body.get("facts") or body.get("sources")):
        raise ValueError("a case with `refused` has no `facts` and no `sources`: there is no answer to have them")
    limits = body.get("limits", {})
    _known(limits, LIMITS, "a limit")
    for name, most in limits.items():
        if type(most) not in (int, float) or most < 0:
            raise ValueError(f"the limit `{name}` is a number that is not below 0, not {most!r}")
    facts = body.get("facts", [])
    if not isinstance(facts, list):
        raise ValueError("`facts` is a list")
    plan = None if body.get("plan") is None else plan_from_json(body["plan"])
    sources = _texts(body.get("sources", []), "`sources`", empty=True)
    return Case(
        id, question.strip(), sources, tuple(map(_read_fact, facts)), refused, plan, limits, body.get("input"), body
    )


def _read_fact(body: Any) -> Fact:
    if isinstance(body, str):
        return Fact(_texts([body], "a fact"))
    if isinstance(body, dict) and body.keys() == {"any"}:
        return Fact(_texts(body["any"], "`any` of a fact"))
    if isinstance(body, dict) and body.keys() == {"pattern"} and isinstance(body["pattern"], str):
        try:
            return Fact(pattern=re.compile(body["pattern"], re.IGNORECASE))
        except re.error as error:
            raise ValueError(f"the pattern {body['pattern']!r} is no regular expression: {error}") from error
    raise ValueError(f'a fact is a text, {{"any": […]}} or {{"pattern": "…"}}, not {body!r}')


def _texts(value: Any, what: str, *, empty: bool = False) -> tuple[str, ...]:
    if isinstance(value, list) and (value or empty) and all(isinstance(each, str) and each.strip() for each in value):
        return tuple(value)
    raise ValueError(f"{what} has texts that are not blank, not {value!r}")


def _known(body: Any, known: tuple[str, ...], what: str) -> None:
    if not isinstance(body, dict):
        raise ValueError(f"{what} is an object, not {type(body).__name__}")
    for key in sorted(body.keys() - set(known)):
        near = nearest(key, known, count=1)
        meant = f"`{near[0]}` is" if near else f"known are {', '.join(known)}"
        raise ValueError(f"`{key}` is no key of {what}; {meant}")
