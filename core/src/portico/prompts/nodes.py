"""What a template in the Semantic Kernel language consists of; printing the nodes gives the template back."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Argument", "Block", "Call", "Node", "Quoted", "Text", "Variable"]

_ESCAPED = re.compile(r"""\\(['"\\])""")


@dataclass(frozen=True, slots=True)
class Text:
    """What stands outside the blocks, as it is."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Quoted:
    r"""A value between quotes; ``written`` has the quotes and escapes, ``text`` is what it means.

    >>> Quoted(r"'it\'s'").text
    "it's"
    >>> print(Quoted.of("it's"))
    'it\'s'
    """

    written: str

    @classmethod
    def of(cls, text: str) -> Quoted:
        """Quote a text, with single quotes."""
        return cls("'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'")

    @property
    def text(self) -> str:
        """The value: a backslash stands for itself but before a quote or another backslash."""
        return _ESCAPED.sub(r"\1", self.written[1:-1]) if "\\" in self.written else self.written[1:-1]

    def __str__(self) -> str:
        return self.written


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, without its ``$``."""

    name: str

    def __str__(self) -> str:
        return f"${self.name}"


@dataclass(frozen=True, slots=True)
class Argument:
    """What a function is given: by place when ``name`` is None. ``before`` and ``equals`` hold the blanks written."""

    name: str | None
    value: Quoted | Variable
    before: str = " "
    equals: str = "="

    def __str__(self) -> str:
        return (
            f"{self.before}{self.value}" if self.name is None else f"{self.before}{self.name}{self.equals}{self.value}"
        )


@dataclass(frozen=True, slots=True)
class Call:
    """A function and its arguments; only the first argument may have no name."""

    plugin: str | None
    function: str
    arguments: tuple[Argument, ...] = ()

    @property
    def full_name(self) -> str:
        """The function's name as a kernel has it."""
        return self.function if self.plugin is None else f"{self.plugin}-{self.function}"

    def __str__(self) -> str:
        name = self.function if self.plugin is None else f"{self.plugin}.{self.function}"
        return name + "".join(map(str, self.arguments))


@dataclass(frozen=True, slots=True)
class Block:
    """What stands between ``{{`` and ``}}``, with the blanks around it."""

    content: Quoted | Variable | Call
    before: str = ""
    after: str = ""

    def __str__(self) -> str:
        return f"{{{{{self.before}{self.content}{self.after}}}}}"


Node = Text | Block
