"""The templates of the pages, and the words in them for times, sums and places."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import unified_diff
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from portico_cli.invocation import short_name
from portico_cli.runs import parse_time
from portico_cli.show.layout import count_words
from portico_cli.show.runs import age
from portico_serve._pages.markdown import is_web_address, to_html

if TYPE_CHECKING:
    from jinja2 import Environment

_TITLES = {
    401: "This browser has no session",
    403: "This is not allowed",
    404: "There is nothing here",
    409: "This cannot be done now",
    422: "This cannot be done",
    429: "Too much at once",
    500: "Something went wrong",
}
_JUST_NOW = 5
_NUMBER = re.compile(r"^(\s*)\d+\. (?=\S+: )")
PAGES = Path(__file__).parent / "templates"

STATES: Mapping[str, str] = {
    "waiting": "waiting",
    "running": "at work",
    "done": "done",
    "failed": "failed",
    "infeasible": "cannot be done",
    "held": "waits for you",
    "uncertain": "needs your word",
    "interrupted": "interrupted",
    "cancelled": "cancelled",
    "unreadable": "unreadable",
}
"""The states of runs, in the words that a page has for them."""

STEP_STATES: Mapping[str, str] = {
    "waiting": "waiting",
    "running": "at work",
    "retrying": "trying again",
    "done": "done",
    "failed": "failed",
    "skipped": "skipped",
    "held": "waits for you",
    "uncertain": "needs your word",
}
"""The states of steps; the scripts of a page have the words from it."""


def render(template: str, **values: Any) -> str:
    """Return a page made of a template."""
    text = _environment().get_template(template).render(**values)
    return text.encode(errors="replace").decode()  # half of a character has no place in a page


def error_page(status: int, message: str, findings: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return a page that says why there is nothing to see."""
    title = _TITLES.get(status, "This did not work")
    return render("error.html", title=title, status=status, error=message, findings=findings)


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of two texts compared: ``kind`` is "added", "removed", "same" or "gap"."""

    kind: str
    text: str


def diff_lines(before: str, after: str) -> list[DiffLine]:
    r"""Return what differs between two texts, with the lines around it.

    >>> [(each.kind, each.text) for each in diff_lines("a\nb", "a\nc")]
    [('same', 'a'), ('removed', 'b'), ('added', 'c')]
    """
    return list(_diff_lines(before, after))


def _diff_lines(before: str, after: str) -> Iterator[DiffLine]:
    kinds = {"+": "added", "-": "removed", " ": "same"}
    # Of a step that only moved nothing is shown: its number is not compared.
    old, new = ([_NUMBER.sub(r"\1", line) for line in text.splitlines()] for text in (before, after))
    found = unified_diff(old, new, lineterm="", n=2)
    for number, line in enumerate(found):
        if line.startswith("@@"):
            if number > 2:
                yield DiffLine("gap", "")
        elif number >= 2:
            yield DiffLine(kinds[line[0]], line[1:])


def duration(seconds: float | None) -> str:
    """Return how long something took, as people say it.

    >>> duration(0.0123), duration(3.21), duration(75), duration(7320)
    ('12 ms', '3.2 s', '1 min 15 s', '2 h 2 min')
    """
    if seconds is None:
        return ""
    if seconds < 1:
        return f"{round(seconds * 1000)} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def money(dollars: float | None) -> str:
    """Return a sum of US dollars.

    >>> money(2.5), money(0.00312), money(0)
    ('$2.50', '$0.0031', '$0')
    """
    if dollars is None:
        return ""
    return f"${dollars:.2f}" if dollars >= 1 else f"${max(dollars, 0.0001):.4f}" if dollars else "$0"


def seconds_between(start: str | None, end: str | None) -> float | None:
    """Return the seconds from one time to another, None where one is not known."""
    return (parse_time(end) - parse_time(start)).total_seconds() if start and end else None


def place_words(place: Mapping[str, Any]) -> str:
    """Return where in its document a passage stands.

    >>> place_words({"line": 3}), place_words({"page": 2}), place_words({})
    ('line 3', 'page 2', '')
    """
    return next((f"{word} {place[word]}" for word in ("line", "page") if place.get(word) is not None), "")


def shown_json(value: Any) -> str:
    """Return a value as a page shows it: text as it is, the rest as JSON in lines."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def coded(text: str) -> Markup:
    """Return words with what stands in backticks as code.

    >>> coded("`a` & b")
    Markup('<code>a</code> &amp; b')
    """
    parts = (text if text.count("`") % 2 == 0 else text.replace("`", "'")).split("`")
    return Markup().join(
        Markup("<code>{}</code>").format(each) if number % 2 else escape(each) for number, each in enumerate(parts)
    )


def key_of(*values: Any) -> str:
    """Return a short mark that differs where the values do."""
    return blake2b(json.dumps(values, sort_keys=True, default=str).encode(), digest_size=8).hexdigest()


def clock(at: str | None) -> str:
    """Return a time of day here, with the date where it is another day."""
    if not at:
        return ""
    time, now = parse_time(at).astimezone(), datetime.now().astimezone()
    return time.strftime("%H:%M:%S" if time.date() == now.date() else "%Y-%m-%d %H:%M:%S")


def _ago(at: str | None) -> str:
    if not at:
        return ""
    now = datetime.now(UTC)
    return "just now" if (now - parse_time(at)).total_seconds() < _JUST_NOW else f"{age(at, now)} ago"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader  # not at import: the command line starts without it

    made = Environment(
        loader=FileSystemLoader(PAGES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {
        "ago": _ago,
        "clock": clock,
        "coded": coded,
        "duration": duration,
        "money": money,
        "counted": count_words,
        "short": short_name,
        "shown": shown_json,
        "markdown": to_html,
        "place": place_words,
    }
    made.globals |= {
        "states": STATES,
        "step_states": STEP_STATES,
        "key_of": key_of,
        "diff_lines": diff_lines,
        "is_web_address": is_web_address,
        "seconds_between": seconds_between,
    }
    return made
