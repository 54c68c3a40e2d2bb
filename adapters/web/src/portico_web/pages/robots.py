"""robots.txt as RFC 9309 has it: which paths an agent may read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self
from urllib.parse import quote, unquote_to_bytes

MOST_BYTES = 512_000
"""How much of a file is read, as RFC 9309 §2.5 asks (500 KiB at least); the rest is not."""

_MOST_RULES = 5_000
_PRODUCT = re.compile(r"[A-Za-z_-]+")
_UNRESERVED = "/?:@!$&'()*+,;=-._~%"


@dataclass(frozen=True, slots=True)
class Robots:
    r"""The rules for one agent.

    >>> rules = Robots.parse(b"User-agent: *\nDisallow: /private\nAllow: /private/open$", "Reader")
    >>> rules.allows("/private/x"), rules.allows("/private/open"), rules.allows("/")
    (False, True, True)
    """

    rules: tuple[tuple[str, bool], ...] = ()
    """Patterns with what they say, the longest first and "allow" before "disallow" (§2.2.2)."""

    @classmethod
    def parse(cls, data: bytes, agent: str) -> Self:
        """Return the rules of every group that names the agent, or else of those for ``*``; never raises.

        At most 5,000 rules count: more are not meant for reading.
        """
        text = data[:MOST_BYTES].decode("utf-8", "replace").removeprefix("\ufeff")
        own: list[tuple[str, bool]] = []
        for_all: list[tuple[str, bool]] = []
        named = False
        for agents, rules in _groups(text):
            if agent.lower() in agents:
                named = True
                own += rules
            elif "*" in agents:
                for_all += rules
        chosen = (own if named else for_all)[:_MOST_RULES]
        return cls(tuple(sorted(chosen, key=lambda rule: (-len(rule[0]), not rule[1]))))

    def allows(self, path: str) -> bool:
        """Tell whether a path, with its query, may be read; robots.txt itself always may."""
        if path == "/robots.txt":
            return True
        path = _normal(path)
        return next((allow for pattern, allow in self.rules if _matches(pattern, path)), True)


def _groups(text: str) -> Iterator[tuple[set[str], list[tuple[str, bool]]]]:
    agents: set[str] = set()
    rules: list[tuple[str, bool]] = []
    in_rules = False
    for line in re.split(r"\r\n|\r|\n", text):
        key, colon, value = line.partition("#")[0].partition(":")
        key, value = key.strip().lower(), value.strip()
        if not colon:
            continue
        if key in {"user-agent", "useragent"}:
            if in_rules:
                yield agents, rules
                agents, rules, in_rules = set(), [], False
            product = _PRODUCT.match(value)
            agents.add("*" if value.startswith("*") else product[0].lower() if product else "")
        elif key in {"allow", "disallow"}:
            in_rules = True
            if value:
                rules.append((_normal(value), key == "allow"))
    yield agents, rules


def _normal(path: str) -> str:
    """Return a path in one spelling: what need not be escaped is not, the rest is, in upper case (§2.2.2)."""
    if "%" not in path and path.isascii() and path.isprintable():
        return path
    parts: Iterable[str] = re.split(r"(%(?:2[Ff]|3[Ff]|2[Aa5]|24))", path)
    return "".join(
        part.upper() if part[:1] == "%" and len(part) == 3 else quote(unquote_to_bytes(part), safe=_UNRESERVED)
        for part in parts
    )


def _matches(pattern: str, path: str) -> bool:
    """Match from the start of the path; ``*`` is anything and a last ``$`` the end. Takes linear time."""
    ends = pattern.endswith("$")
    first, *others = (pattern[:-1] if ends else pattern).split("*")
    if not path.startswith(first):
        return False
    position = len(first)
    if not others:
        return not ends or position == len(path)
    last = others.pop() if ends else None
    for part in others:
        found = path.find(part, position)
        if found < 0:
            return False
        position = found + len(part)
    return last is None or (len(path) - len(last) >= position and path.endswith(last))
