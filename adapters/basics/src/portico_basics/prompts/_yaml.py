"""YAML to JSON values: what a stranger's file may hold is bounded before anything is made of it.

Only plain data is taken, with few surprises: ``true`` and ``false`` are the only truth values, a number is written in
decimal digits, and a date is text.
"""

from __future__ import annotations

import math
import re
from typing import Any

import yaml

from portico_basics.prompts._wrong import Wrong

MOST_VALUES = 20_000
"""Values in a document, what aliases repeat counted each time."""

DEEPEST = 64

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_PLAIN = ("str", "int", "float", "bool", "null", "timestamp", "merge", "value", "map", "seq")
_KNOWN = frozenset(f"{_TAG}{name}" for name in _PLAIN)
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]{1,300}")
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]{1,300}|[0-9]{1,300}(?:\.[0-9]{0,300})?)(?:[eE][-+]?[0-9]{1,5})?")


def read_yaml(text: str) -> Any:
    r"""Return the value of the only document in ``text``; raises `Wrong` with the line.

    >>> read_yaml("name: Summarise\ninputs: {words: {default: 100}}")
    {'name': 'Summarise', 'inputs': {'words': {'default': 100}}}
    """
    try:
        _refuse_depth(text)
        root = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        # At its end the parser names the line after the last.
        place = f"line {min(mark.line, text.rstrip().count(chr(10))) + 1}: " if mark else ""
        raise Wrong(f"{place}this is not YAML: {problem}") from error
    except ValueError as error:
        raise Wrong(f"this is not YAML: {error}") from error
    return None if root is None else _Reading().value(root, 0)


def _refuse_depth(text: str) -> None:
    """Look at the events first: composing calls itself for each level."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEEPEST:
                raise Wrong(f"{_line(event)}: it nests deeper than {DEEPEST} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


class _Reading:
    def __init__(self) -> None:
        self.left = MOST_VALUES

    def value(self, node: Any, depth: int) -> Any:
        self.left -= 1
        if self.left < 0:
            raise Wrong(f"{_line(node)}: it holds more than {MOST_VALUES:,} values, aliases counted")
        if depth > DEEPEST:
            raise Wrong(f"{_line(node)}: it nests deeper than {DEEPEST} levels, or contains itself")
        if node.tag not in _KNOWN:
            raise Wrong(f"{_line(node)}: the tag {node.tag.removeprefix(_TAG)[:60]!r} is not plain data")
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(each, depth + 1) for each in node.value]
        made: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise Wrong(f"{_line(key)}: a key is text, not a list or a table")
            if key.tag == f"{_TAG}merge":
                raise Wrong(f"{_line(key)}: '<<' is not understood here: write the keys out")
            if key.value in made:
                raise Wrong(f"{_line(key)}: the key {key.value[:60]!r} stands twice")
            made[key.value] = self.value(value, depth + 1)
        return made


def _scalar(node: Any) -> Any:
    word: str = node.value
    if node.style:  # None or empty for a plain one
        return word
    if word in _WORDS:
        return _WORDS[word]
    if _INTEGER.fullmatch(word):
        return int(word)
    if _NUMBER.fullmatch(word) and math.isfinite(number := float(word)):
        return number
    return word


def _line(where: Any) -> str:
    return f"line {where.start_mark.line + 1}"
