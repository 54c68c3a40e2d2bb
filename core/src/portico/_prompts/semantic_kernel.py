"""The template language of Semantic Kernel."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from portico._prompts.calling import CallPlaces, FunctionCall, TextForm
from portico._prompts.prompt import Prompt, Trusted
from portico.errors import ArgumentsInvalid, FunctionNotFound, LimitExceeded

if TYPE_CHECKING:
    from portico._ports.template_language import CallFunction
    from portico._ports.type_codec import TypeCodec

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


_LONGEST = 4_000_000
_MOST_BLOCKS = 10_000
_MOST_ARGUMENTS = 256

# Possessive, so that a quote that is never closed is looked through once.
_QUOTED = re.compile(r"""'[^'\\]*+(?:\\.[^'\\]*+)*+'|"[^"\\]*+(?:\\.[^"\\]*+)*+\"""", re.DOTALL)
_MARKS = re.compile(r"""\{\{+|\}\}|['"]""")
_BLANKS = re.compile(r"\s*+")
_WORD = re.compile(r"\S++")
_NAME = re.compile(r"[0-9A-Za-z_]++")
_FUNCTION = re.compile(r"(?:([0-9A-Za-z_]++)\.)?([0-9A-Za-z_]++)")
_EQUALS = re.compile(r"\s*+=\s*+")

_LETTERS = "letters, digits and '_' only"


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
            nodes.append(Text(source[text_from : begin - 2]))
        blocks += 1
        if blocks > _MOST_BLOCKS:
            raise LimitExceeded(f"{name}: a template has at most {_MOST_BLOCKS:,} blocks.")
        nodes.append(_Reader(source, begin, end, name).block())
        text_from = position
    if text_from < len(source):
        nodes.append(Text(source[text_from:]))
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


class _Reader:
    """Reads the content of one block."""

    def __init__(self, source: str, begin: int, end: int, name: str) -> None:
        self.source = source
        self.position = begin
        self.end = end
        self.name = name

    def block(self) -> Block:
        before = self.blanks()
        first = self.source[self.position]
        if first not in "$'\"":
            return Block(*self.call(before))
        content = self.variable() if first == "$" else self.quoted()
        after = self.blanks()
        if self.position < self.end:
            self.refuse(f"Nothing may follow {'a variable' if first == '$' else 'a value'} in its block.")
        return Block(content, before, after)

    def call(self, before: str) -> tuple[Call, str, str]:
        """Read a function and its arguments, and the blanks after them."""
        word = self.word()
        function = _FUNCTION.fullmatch(word)
        if function is None:
            self.refuse(f"A block holds a $variable, a 'value' or plugin.function; a name has {_LETTERS}.")
        self.position += len(word)
        arguments: list[Argument] = []
        while True:
            blanks = self.blanks()
            if self.position == self.end:
                return Call(function[1], function[2], tuple(arguments)), before, blanks
            if not blanks:
                self.refuse("A blank is missing before this argument.")
            if len(arguments) == _MOST_ARGUMENTS:
                self.refuse(f"A call has at most {_MOST_ARGUMENTS} arguments.")
            arguments.append(self.argument(blanks, first=not arguments))

    def argument(self, before: str, *, first: bool) -> Argument:
        if self.source[self.position] in "$'\"":
            if not first:
                self.refuse("Only the first argument may go without a name: write name=value.")
            return Argument(None, self.value(), before)
        found = _NAME.match(self.source, self.position, self.end)
        after_name = found.end() if found else self.position
        equals = _EQUALS.match(self.source, after_name, self.end)
        if found is None or equals is None:
            self.refuse(f"An argument is 'quoted', a $variable or name=value; a name has {_LETTERS}.")
        self.position = equals.end()
        if self.position == self.end:
            self.refuse(f"The argument {found[0]!r} has no value.", at=found.start(), length=self.end - found.start())
        if self.source[self.position] not in "$'\"":
            self.refuse(f"The value of the argument {found[0]!r} is not 'quoted' and not a $variable.")
        return Argument(found[0], self.value(), before, equals[0])

    def value(self) -> Quoted | Variable:
        return self.variable() if self.source[self.position] == "$" else self.quoted()

    def variable(self) -> Variable:
        word = self.word()
        if not _NAME.fullmatch(word, 1):
            self.refuse("The variable has no name." if word == "$" else f"The name of a variable has {_LETTERS}.")
        self.position += len(word)
        return Variable(word[1:])

    def quoted(self) -> Quoted:
        found = _QUOTED.match(self.source, self.position, self.end)
        assert found is not None  # noqa: S101 - a block ends where no quote is open
        self.position = found.end()
        return Quoted(found[0])

    def blanks(self) -> str:
        found = _BLANKS.match(self.source, self.position, self.end)
        assert found is not None  # noqa: S101 - it matches nothing as well
        self.position = found.end()
        return found[0]

    def word(self) -> str:
        """Return what stands here up to the next blank, without going on."""
        found = _WORD.match(self.source, self.position, self.end)
        assert found is not None  # noqa: S101 - blanks are read before a word is
        return found[0]

    def refuse(self, message: str, *, at: int | None = None, length: int | None = None) -> NoReturn:
        at = self.position if at is None else at
        length = len(self.word()) if length is None else length
        raise Prompt.fault(message, self.source, at, length, name=self.name)


_Read = Callable[[Mapping[str, object]], object]
_MESSAGE = "<message"


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
        return SemanticKernelTemplate(parse(source, name=name), name=name, text_form=self._text_form)


@dataclass(frozen=True, slots=True)
class _Slot:
    """A call made ready: the node's index, the function's name, and how to get at each argument."""

    index: int
    function: str
    named: tuple[tuple[str, _Read], ...]
    positional: tuple[_Read, ...]


class SemanticKernelTemplate:
    """A compiled prompt: nodes, and what of them changes with each rendering.

    ``str()`` prints the nodes, which gives the source back. One without functions renders without suspending.
    """

    __slots__ = ("_calls", "_fixed", "_markup", "_text", "_text_form", "_variables", "name", "nodes")

    def __init__(self, nodes: Iterable[Node], *, name: str = "prompt", text_form: TextForm | None = None) -> None:
        self.nodes = tuple(nodes)
        self.name = name
        self._text_form = text_form or TextForm()
        fixed = []
        variables = []
        calls = []
        for index, node in enumerate(self.nodes):
            content = node.content if isinstance(node, Block) else node
            if isinstance(content, Variable):
                variables.append((index, content.name))
            elif isinstance(content, Call):
                calls.append(_slot(index, content))
            fixed.append("" if isinstance(content, Variable | Call) else content.text)
        self._fixed = fixed
        self._variables = tuple(variables)
        self._calls = tuple(calls)
        self._markup = any(isinstance(node, Text) and _MESSAGE in node.text for node in self.nodes)
        self._text = None if variables or calls else self._prompt(fixed) if self._markup else "".join(fixed)

    def __str__(self) -> str:
        return "".join(map(str, self.nodes))

    def __repr__(self) -> str:
        return f"SemanticKernelTemplate({str(self)!r})"

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables, in the order of their first use."""
        found: dict[str, None] = {}
        for node in self.nodes:
            content = node.content if isinstance(node, Block) else node
            values = [argument.value for argument in content.arguments] if isinstance(content, Call) else [content]
            found |= {value.name: None for value in values if isinstance(value, Variable)}
        return tuple(found)

    @property
    def calls(self) -> tuple[FunctionCall, ...]:
        """Every call of a function, in the order of writing: the language tells them all."""
        places = CallPlaces(str(self))
        found = []
        at = 0
        for node in self.nodes:
            if isinstance(node, Block) and isinstance(node.content, Call):
                arguments = node.content.arguments
                named = [argument.name for argument in arguments if argument.name is not None]
                by_place = len(arguments) - len(named)
                found.append(places.call(node.content.full_name, by_place, named, at=at + 2 + len(node.before)))
            at += len(str(node))
        return tuple(found)

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
        texts = await self._texts(arguments, call)
        return self._prompt(texts) if self._markup or Trusted in map(type, texts) else "".join(texts)

    def _prompt(self, texts: Iterable[str]) -> Prompt:
        return Prompt(
            (text, isinstance(node, Block) and type(text) is not Trusted)
            for node, text in zip(self.nodes, texts, strict=True)
        )

    async def _texts(self, arguments: Mapping[str, object], call: CallFunction) -> list[str]:
        """Return the text of each node, a trusted one as it came."""
        texts = self._fixed.copy()
        for index, name in self._variables:
            value = arguments.get(name)
            if type(value) is not str:
                value = self._written(index, _value(arguments, name) if value is None else value)
            texts[index] = value
        if len(self._calls) == 1:
            slot = self._calls[0]
            texts[slot.index] = await self._called(slot, arguments, call)
        elif self._calls:
            await self._call_all(texts, arguments, call)
        return texts

    async def _call_all(self, texts: list[str], arguments: Mapping[str, object], call: CallFunction) -> None:
        failed: BaseException | None = None
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._called(slot, arguments, call)) for slot in self._calls]
        except BaseExceptionGroup as failures:
            failed = failures.exceptions[0]
        if failed is not None:
            raise failed  # Outside of the handler, so that it keeps the cause and context that it has.
        for slot, task in zip(self._calls, tasks, strict=True):
            texts[slot.index] = task.result()

    async def _called(self, slot: _Slot, arguments: Mapping[str, object], call: CallFunction) -> str:
        named = {name: read(arguments) for name, read in slot.named}
        positional = [read(arguments) for read in slot.positional]
        try:
            awaitable = call(slot.function, named, positional)
        except (FunctionNotFound, ArgumentsInvalid) as error:
            self._refuse(slot.index, str(error), error)
        try:
            result = await awaitable
        except FunctionNotFound as error:
            if error.name != slot.function:
                raise  # The function called another one.
            self._refuse(slot.index, str(error), error)
        return result if type(result) is str else self._written(slot.index, result)

    def _written(self, index: int, value: object) -> str:
        if type(value) is Trusted:
            return value
        try:
            return self._text_form(value)
        except ValueError as error:
            self._refuse(index, f"The value cannot be written as text. {error}", error)

    def _refuse(self, index: int, message: str, cause: Exception) -> NoReturn:
        node = self.nodes[index]
        assert isinstance(node, Block)  # noqa: S101 - only blocks are looked up and called
        at = sum(len(str(before)) for before in self.nodes[:index]) + 2 + len(node.before)
        raise Prompt.fault(message, str(self), at, len(str(node.content)), name=self.name) from cause


def _slot(index: int, content: Call) -> _Slot:
    return _Slot(
        index,
        content.full_name,
        tuple((argument.name, _reading(argument)) for argument in content.arguments if argument.name is not None),
        tuple(_reading(argument) for argument in content.arguments if argument.name is None),
    )


def _reading(argument: Argument) -> _Read:
    if isinstance(argument.value, Quoted):
        text = argument.value.text
        return lambda _: text
    return partial(_value_of, argument.value.name)


def _value_of(name: str, arguments: Mapping[str, object]) -> object:
    value = arguments.get(name)
    return _value(arguments, name) if value is None else value


def _value(arguments: Mapping[str, object], name: str) -> object:
    """Look for a variable once more, without regard to case; None where there is none. The last one holds."""
    if name in arguments:
        return None
    folded = name.casefold()
    return next((arguments[key] for key in reversed(list(arguments)) if key.casefold() == folded), None)
