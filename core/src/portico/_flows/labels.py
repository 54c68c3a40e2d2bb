"""Labels of values: where they come from, and who may read them; and what functions say of theirs.

The model is that of CaMeL (Debenedetti and others, 2025) and FIDES (Costa and others, 2025): the sources of values that
meet are united, their readers are those of both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import TypeAlias

from portico._schema.paths import EACH, JsonPath, Many, Selector, parse_path, print_path
from portico.errors import ConfigurationError, PlanFormatError

_READABLE = re.compile(r"readable_by\(([^()]+)\)")
_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Label:
    """Where a value comes from: the ``untrusted`` places that had a part in it, none for one of the user's.

    ``private`` is what only certain readers may see: steps, each with the path in its result to who may read it.
    """

    untrusted: frozenset[str] = _NONE
    private: frozenset[tuple[str, JsonPath]] = frozenset()

    def join(self, *others: Label) -> Label:
        """Return the label of what is made of several values."""
        every = (self, *(each for each in others if each.untrusted or each.private))
        if len(every) == 1:
            return self
        return Label(
            frozenset().union(*(each.untrusted for each in every)), frozenset().union(*(each.private for each in every))
        )


TRUSTED = Label()

Shade: TypeAlias = Callable[[JsonPath, bool], Label]
"""The labels of a value: what is the label of the part at a path, with all that is inside it, or of its outside only.

The outside of a list is how many items it has and in which order; that of an object is which members it has."""


@dataclass(frozen=True, slots=True)
class Gives:
    """What one part of a result is: ``trusted`` or not, or ``as_given``: as the arguments are that it was made of.

    ``readers`` is the path, in the same result, to those who may read it; None for all.
    """

    trusted: bool = False
    as_given: bool = False
    readers: JsonPath | None = None


@dataclass(frozen=True, slots=True)
class Takes:
    """What a parameter takes: ``trusted`` values only, or any; with ``readers``, only what that argument may read.

    What only some may read needs those ``readers``, or a parameter that is ``private``: it shows the value to no other.
    Other values need a person's agreement; with ``refuse`` they are refused. With ``outside`` this is said of how many
    parts the value has, and of which, and not of the parts.
    """

    trusted: bool = True
    readers: str | None = None
    refuse: bool = False
    private: bool = False
    outside: bool = False


@dataclass(frozen=True, slots=True)
class FunctionLabels:
    """What a function says of its results and of its parameters, both by path.

    >>> labels = FunctionLabels.read({"[*].id": "trusted"}, {"to": "trusted", "body": "anything"})
    >>> labels.takes["body",].trusted
    False

    A parameter without a word takes trusted values only if the function has effects or ``reaches_out``. What is given
    as ``trusted`` is so where trusted arguments chose it: who chooses a name to look for chooses what is found. An
    argument that ``anything`` is said of chooses nothing.
    """

    gives: Mapping[JsonPath, Gives] = field(default_factory=dict)
    takes: Mapping[JsonPath, Takes] = field(default_factory=dict)
    reaches_out: bool = False

    @staticmethod
    def read(
        gives: Mapping[str, str] | str | None = None,
        takes: Mapping[str, str] | None = None,
        *,
        reaches_out: bool = False,
    ) -> FunctionLabels:
        """Read the words for a function's results and parameters.

        ``gives`` maps paths to ``trusted``, ``untrusted`` or ``as given``, and perhaps ``readable_by(path)`` after a
        comma; one text is for the whole result. ``takes`` maps parameters, or parts of them such as ``message.to``, to
        ``trusted`` or ``anything``, perhaps ``readable_by(parameter)`` or ``private``, and, at the end,
        ``else refuse``. Raises ``ConfigurationError`` for other words.
        """
        written = {"$": gives} if isinstance(gives, str) else gives or {}
        return FunctionLabels(
            {_path(path): _read_gives(path, words) for path, words in written.items()},
            {_path(name): _read_takes(name, words) for name, words in (takes or {}).items()},
            reaches_out,
        )

    def parameters(self) -> list[str]:
        """Return the names of the parameters of which something is said."""
        readers = (takes.readers for takes in self.takes.values())
        return list(dict.fromkeys(str(each) for each in (*(path[0] for path in self.takes if path), *readers) if each))


def _path(text: str) -> JsonPath:
    whole = text if text.startswith("$") else f"${text}" if text.startswith("[") else f"$.{text}"
    try:
        path = parse_path(whole)
    except PlanFormatError as error:
        raise ConfigurationError(str(error)) from error
    if any((isinstance(part, Many) and part != EACH) or (isinstance(part, int) and part < 0) for part in path):
        raise ConfigurationError(f"The path {text!r} may have names, numbers from 0 and [*] only.")
    return path


def _read_gives(path: str, words: str) -> Gives:
    trusted, as_given, readers = False, False, None
    for word in _words(words, f"gives of {path!r}"):
        if match := _READABLE.fullmatch(word):
            readers = _path(match[1].strip())
        elif word in ("trusted", "untrusted", "as given"):
            trusted, as_given = word == "trusted", word == "as given"
        else:
            expected = "trusted, untrusted, as given, or readable_by(path)"
            raise ConfigurationError(f"gives of {path!r}: {word!r} is not known; expected {expected}.")
    return Gives(trusted, as_given, readers)


def _read_takes(name: str, words: str) -> Takes:
    before, refuse, _ = words.partition("else refuse") if words.rstrip().endswith("else refuse") else (words, "", "")
    trusted, readers, private = False, None, False
    for word in _words(before, f"takes of {name!r}"):
        if match := _READABLE.fullmatch(word):
            readers = match[1].strip()
        elif word == "private":
            private = True
        elif word in ("trusted", "anything"):
            trusted = word == "trusted"
        else:
            expected = "trusted, anything, readable_by(parameter), private, and at the end: else refuse"
            raise ConfigurationError(f"takes of {name!r}: {word!r} is not known; expected {expected}.")
    return Takes(trusted, readers, bool(refuse), private)


def _words(text: object, where: str) -> list[str]:
    if not isinstance(text, str) or not text.strip():
        raise ConfigurationError(f"{where}: expected words such as 'trusted', not {text!r}.")
    return [word.strip() for word in text.split(",")]


@dataclass(slots=True)
class _Node:
    """What is said of one place of a result, and of those inside it."""

    gives: Gives | None = None
    named: dict[str | int, _Node] = field(default_factory=dict)
    every: _Node | None = None

    def inside(self) -> Iterable[_Node]:
        return (*self.named.values(), *(() if self.every is None else (self.every,)))


def shade_of(labels: FunctionLabels, origin: str, given: Mapping[str, Label], *, within: JsonPath = ()) -> Shade:
    """Return the labels of what a function gives; ``origin`` names it, ``given`` are the labels of its arguments.

    Who chooses the arguments chooses among the results: also what is trusted is no more trusted than those, except for
    arguments that anything is taken for. What only some may read stays so. ``within`` is where one result is in all
    that ``origin`` gives.
    """
    joined = reduce(Label.join, given.values(), TRUSTED)
    selecting = (label for name, label in given.items() if (labels.takes.get((name,)) or Takes()).trusted)
    trusted = Label(reduce(Label.join, selecting, TRUSTED).untrusted, joined.private)
    root = _Node()
    for path, gives in labels.gives.items():
        node = root
        for part in path:
            if isinstance(part, Many):
                node.every = node = node.every or _Node()
            else:
                node = node.named.setdefault(part, _Node())
        node.gives = gives

    def label(gives: Gives, path: JsonPath) -> Label:
        place = frozenset((origin + print_path(path)[1:],))
        base = joined if gives.as_given else trusted if gives.trusted else Label(place, joined.private)
        readers = gives.readers
        return base if readers is None else base.join(Label(private=frozenset(((origin, (*within, *readers)),))))

    def shade(path: JsonPath, whole: bool) -> Label:
        found: list[Label] = []
        # The most special node comes first; what is said of a place holds for what is inside it.
        waiting: list[tuple[int, tuple[_Node, ...], Gives]] = [(0, (root,), root.gives or Gives())]
        while waiting:
            depth, nodes, gives = waiting.pop()
            if depth == len(path):
                found.append(label(gives, path))
                inside = list(nodes) if whole else []
                while inside:
                    node = inside.pop()
                    inside += node.inside()
                    if node.gives is not None and node not in nodes:
                        found.append(label(node.gives, path))
                continue
            part = path[depth]
            for selector in part.selectors if isinstance(part, Many) else (part,):
                for following in _following(nodes, selector):
                    said = next((node.gives for node in following if node.gives is not None), gives)
                    waiting.append((depth + 1, following, said))
        return reduce(Label.join, found, TRUSTED)

    return shade if labels.gives else lambda path, whole: label(Gives(), path)


def _following(nodes: tuple[_Node, ...], selector: Selector) -> Iterable[tuple[_Node, ...]]:
    """Yield what is said of the places that a selector may lead to, each the most special first."""
    every = tuple(node.every for node in nodes if node.every is not None)
    if isinstance(selector, str) or (isinstance(selector, int) and selector >= 0):
        yield (*(node.named[selector] for node in nodes if selector in node.named), *every)
        return
    # Any of them: from the end, of a slice, or all.
    yield every
    for name in dict.fromkeys(name for node in nodes for name in node.named):
        if selector is None or isinstance(name, int):
            yield (*(node.named[name] for node in nodes if name in node.named), *every)
