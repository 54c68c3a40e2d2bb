"""Where in a JSON text its values stand, as line and column."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

_TOKEN = re.compile(r'[\s:,]*("(?:[^"\\]|\\.)*"|[{}\[\]]|[^\s:,{}\[\]"]+)', re.DOTALL)

_INDEX = re.compile(r"\[(\d+)\]")


@dataclass(slots=True)
class _Node:
    offset: int
    members: dict[str, _Node] | None = None
    items: list[_Node] | None = None
    text: str | None = None
    """What a string says."""
    key: str | None = None
    """The key of an object whose value comes next."""


class JsonPlaces:
    r"""The places of the values in a text that is JSON; lines and columns count from 1.

    >>> places = JsonPlaces('{"steps": [\n  {"id": "s1"}\n]}')
    >>> places.of(["steps", 0, "id"])
    (2, 10)

    What is not there has the place of what it would be in.
    """

    def __init__(self, text: str) -> None:
        self._lines = list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))
        self._twice: dict[str, int] = {}
        self._root = _read(text, self._twice)

    def of(self, path: Sequence[str | int]) -> tuple[int, int]:
        """Return the line and column at which the value at ``path`` begins."""
        node = self._root
        for part in path:
            inner = _inside(node, part)
            if inner is None:
                break
            node = inner
        return self._place(node)

    def second(self, key: str) -> tuple[int, int]:
        """Return the place of a key that an object has already; that of the whole where there is none."""
        return self._place(_Node(self._twice.get(key, self._root.offset)))

    def of_finding(self, step: str | None, place: str) -> tuple[int, int]:
        """Return the place of what a check found in a plan: in which step, and where inside of it."""
        node = self._root
        for id in step.split("/") if step else ():
            node = _step(node, id) or node
        return self._place(_walked(node, place))

    def _place(self, node: _Node) -> tuple[int, int]:
        line = bisect_right(self._lines, node.offset)
        return line, node.offset - self._lines[line - 1] + 1


def _read(text: str, twice: dict[str, int]) -> _Node:
    stack: list[_Node] = []
    root = _Node(0)
    for token in _TOKEN.finditer(text):
        word, offset = token[1], token.start(1)
        if word in ("}", "]"):
            stack.pop()
            continue
        inside = stack[-1] if stack else None
        if inside is not None and inside.members is not None and inside.key is None:
            inside.key = json.loads(word)
            if inside.key in inside.members:
                twice.setdefault(inside.key, offset)
            continue
        text_of = json.loads(word) if word[0] == '"' else None
        node = _Node(offset, {} if word == "{" else None, [] if word == "[" else None, text_of)
        if inside is None:
            root = node
        elif inside.members is not None and inside.key is not None:
            inside.members[inside.key] = node
            inside.key = None
        elif inside.items is not None:
            inside.items.append(node)
        if word in ("{", "["):
            stack.append(node)
    return root


def _inside(node: _Node, part: str | int) -> _Node | None:
    if isinstance(part, str):
        return None if node.members is None else node.members.get(part)
    return node.items[part] if node.items is not None and 0 <= part < len(node.items) else None


def _step(plan: _Node, id: str) -> _Node | None:
    """Find a step by its id in a plan, or in the plan that a step holds."""
    nested = _inside(plan, "function")
    steps = _inside(nested if nested is not None and nested.members is not None else plan, "steps")
    for step in steps.items or () if steps is not None else ():
        written = _inside(step, "id")
        if written is not None and written.text == id:
            return step
    return None


def _walked(node: _Node, place: str) -> _Node:
    """Follow a place such as ``arguments.city.list[2]``; a name may hold any character, also a dot."""
    while place:
        index = _INDEX.match(place)
        inner: _Node | None
        if index is not None:
            inner, rest = _inside(node, int(index[1])), place[index.end() :]
        else:
            names = [name for name in node.members or () if _begins(place, name)]
            name = max(names, key=len, default="")
            inner, rest = _inside(node, name) if names else None, place[len(name) :]
            if inner is None:
                id, _, rest = place.partition(" ")
                inner = _step(node, id)
        if inner is None:
            return node
        node, place = inner, rest.lstrip(".")
    return node


def _begins(place: str, name: str) -> bool:
    return bool(name) and place.startswith(name) and place[len(name) : len(name) + 1] in ("", ".", "[")
