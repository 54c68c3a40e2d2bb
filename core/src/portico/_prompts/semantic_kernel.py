"""The template language of Semantic Kernel."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from portico._functions.middleware import run_together
from portico._prompts.calling import FunctionCall, TextForm
from portico._prompts.prompt import Prompt, Trusted
from portico.errors import ArgumentsInvalid, FunctionNotFound, LimitExceeded

if TYPE_CHECKING:
    from portico._ports.template_language import CallFunction
    from portico._ports.type_codec import TypeCodec


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, without its ``$``."""

    name: str


Value: TypeAlias = str | Variable
"""A quoted value, as what it means, or a variable."""


@dataclass(frozen=True, slots=True)
class Call:
    """A function, by its full name, and its arguments; only the first one may have no name."""

    function: str
    positional: tuple[Value, ...] = ()
    named: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """What stands between ``{{`` and ``}}``, and from where to where in the source."""

    content: Value | Call
    start: int
    end: int


Node: TypeAlias = str | Block
"""Text outside of blocks, as it is, or a block."""


_LONGEST = 4_000_000
_MOST_BLOCKS = 10_000
_MOST_ARGUMENTS = 256

# Possessive, so that a quote that is never closed is looked through once.
_QUOTE = r"""'[^'\\]*+(?:\\.[^'\\]*+)*+'|"[^"\\]*+(?:\\.[^"\\]*+)*+\""""
_VALUE = rf"(?P<quoted>{_QUOTE})|\$(?P<variable>[0-9A-Za-z_]++)(?!\S)"
_QUOTED = re.compile(_QUOTE, re.DOTALL)
_MARKS = re.compile(r"""\{\{+|\}\}|['"]""")
_CONTENT = re.compile(rf"(?:{_VALUE}|(?:(?P<plugin>[0-9A-Za-z_]++)\.)?(?P<function>[0-9A-Za-z_]++)(?!\S))", re.DOTALL)
_ARGUMENT = re.compile(rf"\s++(?:(?P<name>[0-9A-Za-z_]++)\s*+=\s*+)?+(?:{_VALUE})", re.DOTALL)
_WORD = re.compile(r"\s*+(\S++)")
_ESCAPED = re.compile(r"""\\(['"\\])""")
_IN_BLOCK = "A block holds a $variable, a 'value' or plugin.function; a name has letters, digits and '_' only."
_IN_CALL = "An argument is 'quoted', a $variable or name=value; a name has letters, digits and '_' only."


def parse(source: str, *, name: str = "prompt") -> tuple[Node, ...]:
    """Read a template.

    Raises ``TemplateError`` with line and column, and ``LimitExceeded`` above 4,000,000 characters or 10,000 blocks.
    """
    if len(source) > _LONGEST:
        raise LimitExceeded(f"{name}: a template has at most {_LONGEST:,} characters, not {len(source):,}.")
    nodes: list[Node] = []
    text_from = position = blocks = 0
    while (start := source.find("{{", position)) >= 0:
        bounds = _bounds(source, start)
        if bounds is None:
            break
        begin, end = bounds
        position = end + 2
        if begin == end or source[begin:end].isspace():
            continue  # An empty block is text.
        if text_from < begin - 2:
            nodes.append(source[text_from : begin - 2])
        blocks += 1
        if blocks > _MOST_BLOCKS:
            raise LimitExceeded(f"{name}: a template has at most {_MOST_BLOCKS:,} blocks.")
        nodes.append(_read_block(source, begin, end, name))
        text_from = position
    if text_from < len(source):
        nodes.append(source[text_from:])
    return tuple(nodes)


def _bounds(source: str, start: int) -> tuple[int, int] | None:
    """Find where the next block begins and ends, without its braces; None when there is no further one.

    It begins at the last ``{{`` before its ``}}``. Braces between quotes do not count, and a quote that is not
    closed takes everything up to the end of the template.
    """
    begin = position = start
    while mark := _MARKS.search(source, position):
        position = mark.end()
        match mark[0][0]:
            case "{":
                begin = position
            case "}":
                return begin, mark.start()
            case _:
                quoted = _QUOTED.match(source, mark.start())
                if quoted is None:
                    return None
                position = quoted.end()
    return None


def _read_block(source: str, begin: int, end: int, name: str) -> Block:
    """Read a block that is not empty."""

    def refuse(message: str, at: int) -> NoReturn:
        word = _WORD.match(source, at, end)
        start, stop = word.span(1) if word else (at, end)
        raise Prompt.fault(message, source, start, stop - start, name=name)

    written = source[begin:end]
    begin += len(written) - len(written.lstrip())
    end -= len(written) - len(written.rstrip())
    first = _CONTENT.match(source, begin, end)
    if first is None:
        refuse(_IN_BLOCK, begin)
    position = first.end()
    if first["function"] is None:
        if position < end:
            refuse("Nothing may follow a variable or a value in its block.", position)
        return Block(_value(first), begin, end)
    positional: list[Value] = []
    named: list[tuple[str, Value]] = []
    while position < end:
        argument = _ARGUMENT.match(source, position, end)
        if argument is None:
            refuse(_IN_CALL, position)
        if argument["name"] is not None:
            named.append((argument["name"], _value(argument)))
        elif positional or named:
            refuse("Only the first argument may go without a name: write name=value.", position)
        else:
            positional.append(_value(argument))
        if len(positional) + len(named) > _MOST_ARGUMENTS:
            refuse(f"A call has at most {_MOST_ARGUMENTS} arguments.", position)
        position = argument.end()
    function = f"{first['plugin']}-{first['function']}" if first["plugin"] else first["function"]
    return Block(Call(function, tuple(positional), tuple(named)), begin, end)


def _value(found: re.Match[str]) -> Value:
    """Return what was written: a backslash stands for itself but before a quote or another backslash."""
    quoted = found["quoted"]
    return Variable(found["variable"]) if quoted is None else _ESCAPED.sub(r"\1", quoted[1:-1])


class SemanticKernelTemplates:
    """Compile prompts in Semantic Kernel's own template language, as its .NET version reads it.

    >>> import asyncio
    >>> from portico._prompts.calling import FunctionCall
    >>> from portico import Kernel
    >>> template = SemanticKernelTemplates().compile("Dear {{$name}}, {{'welcome'}}!")
    >>> asyncio.run(template.render({"name": "Ada"}, call=FunctionCall.caller(Kernel())))
    'Dear Ada, welcome!'

    ``codecs`` are asked how to write values of types that the standard library does not know.
    """

    name = "semantic-kernel"

    def __init__(self, codecs: Iterable[TypeCodec] = ()) -> None:
        self._text_form = TextForm(codecs)

    def compile(self, source: str, *, name: str = "prompt") -> SemanticKernelTemplate:
        """Parse a prompt; raises ``TemplateError`` with line and column, and ``LimitExceeded``."""
        return SemanticKernelTemplate(source, name, self._text_form)


class SemanticKernelTemplate:
    """A compiled prompt: its text, and what of it changes with each rendering.

    One without functions renders without suspending.
    """

    __slots__ = (
        "_blocks",
        "_calls",
        "_fixed",
        "_is_value",
        "_markup",
        "_text",
        "_text_form",
        "_variables",
        "name",
        "source",
    )

    def __init__(self, source: str, name: str, text_form: TextForm) -> None:
        self.source = source
        self.name = name
        self._text_form = text_form
        nodes = parse(source, name=name)
        self._blocks = {index: node for index, node in enumerate(nodes) if isinstance(node, Block)}
        contents = [node.content if isinstance(node, Block) else node for node in nodes]
        self._fixed = [content if isinstance(content, str) else "" for content in contents]
        self._is_value = [isinstance(node, Block) for node in nodes]
        self._variables = [(index, each) for index, each in enumerate(contents) if isinstance(each, Variable)]
        self._calls = [(index, each) for index, each in enumerate(contents) if isinstance(each, Call)]
        self._markup = any(isinstance(node, str) and "<message" in node for node in nodes)
        self._text = None if self._variables or self._calls else self._join(self._fixed)

    def __repr__(self) -> str:
        return f"SemanticKernelTemplate({self.source!r})"

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables, in the order of their first use."""
        values: list[Value | Call] = []
        for block in self._blocks.values():
            content = block.content
            if isinstance(content, Call):
                values += [*content.positional, *(value for _, value in content.named)]
            else:
                values.append(content)
        return tuple(dict.fromkeys(value.name for value in values if isinstance(value, Variable)))

    @property
    def calls(self) -> tuple[FunctionCall, ...]:
        """Every call of a function, in the order of writing: the language tells them all."""
        return tuple(
            FunctionCall.at(
                self.source,
                self._blocks[index].start,
                call.function,
                positional=len(call.positional),
                named=[name for name, _ in call.named],
            )
            for index, call in self._calls
        )

    async def render(self, arguments: Mapping[str, object], *, call: CallFunction) -> str:
        """Return the prompt: a `Prompt` where messages may stand in it, else a plain string.

        Its values are variables, results of functions and quoted values: quoting is how a template says that a tag
        is meant as text. What is `Trusted` counts as the template's own.

        Raises ``TemplateError`` for a function that is not there, arguments that do not fit and a value that has no
        text; what a function raises comes through unchanged. Functions run concurrently where there are several;
        the first that fails stops the others.
        """
        if self._text is not None:
            return self._text
        texts = self._fixed.copy()
        written: dict[str, str] = {}
        for index, variable in self._variables:
            value = arguments.get(variable.name)
            if type(value) is not str:
                if variable.name not in written:
                    value = _look_up(variable, arguments) if value is None else value
                    written[variable.name] = self._write(index, value)
                value = written[variable.name]
            texts[index] = value
        if len(self._calls) == 1:
            [(index, content)] = self._calls
            texts[index] = await self._call(index, content, arguments, call)
        elif self._calls:
            results = await run_together(self._call(index, each, arguments, call) for index, each in self._calls)
            for (index, _), result in zip(self._calls, results, strict=True):
                texts[index] = result
        return self._join(texts)

    def _join(self, texts: list[str]) -> str:
        if sum(map(len, texts)) > _LONGEST:
            raise LimitExceeded(f"{self.name}: a prompt has at most {_LONGEST:,} characters.")
        if not self._markup and Trusted not in map(type, texts):
            return "".join(texts)
        return Prompt(
            (text, is_value and type(text) is not Trusted) for text, is_value in zip(texts, self._is_value, strict=True)
        )

    async def _call(self, index: int, content: Call, arguments: Mapping[str, object], call: CallFunction) -> str:
        named = {name: _look_up(value, arguments) for name, value in content.named}
        positional = [_look_up(value, arguments) for value in content.positional]
        try:
            awaitable = call(content.function, named, positional)
        except (FunctionNotFound, ArgumentsInvalid) as error:
            self._refuse(index, str(error), error)
        try:
            result = await awaitable
        except FunctionNotFound as error:
            if error.name != content.function:
                raise  # The function called another one.
            self._refuse(index, str(error), error)
        return result if type(result) is str else self._write(index, result)

    def _write(self, index: int, value: object) -> str:
        if type(value) is Trusted:
            return value
        try:
            return self._text_form(value)
        except ValueError as error:
            self._refuse(index, f"The value cannot be written as text. {error}", error)

    def _refuse(self, index: int, message: str, cause: Exception) -> NoReturn:
        block = self._blocks[index]
        raise Prompt.fault(message, self.source, block.start, block.end - block.start, name=self.name) from cause


def _look_up(value: Value, arguments: Mapping[str, object]) -> object:
    """Return a value or a variable's: another case of its name counts where its own is missing, the last one holds."""
    if isinstance(value, str):
        return value
    found = arguments.get(value.name)
    if found is not None or value.name in arguments:
        return found
    folded = value.name.casefold()
    return next((arguments[key] for key in reversed(list(arguments)) if key.casefold() == folded), None)
