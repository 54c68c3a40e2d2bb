"""The Semantic Kernel template language."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from portico.errors import ArgumentsInvalid, FunctionNotFound
from portico.ports.template_language import CallFunction
from portico.ports.type_codec import TypeCodec
from portico.prompts.faults import fault
from portico.prompts.nodes import Argument, Block, Call, Node, Quoted, Text, Variable
from portico.prompts.parsing import parse
from portico.prompts.prompt import Piece, Prompt, Trusted
from portico.prompts.text_form import TextForm
from portico.prompts.written_calls import CallPlaces, FunctionCall

__all__ = ["SemanticKernelTemplate", "SemanticKernelTemplates"]

_Read = Callable[[Mapping[str, object]], object]
_MESSAGE = "<message"


class SemanticKernelTemplates:
    """Compile prompts in Semantic Kernel's own template language, as its .NET version reads it.

    >>> import asyncio
    >>> from portico.prompts.calling import caller
    >>> from portico import Kernel
    >>> template = SemanticKernelTemplates().compile("Dear {{$name}}, {{'welcome'}}!")
    >>> asyncio.run(template.render({"name": "Ada"}, call=caller(Kernel())))
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
            Piece(text, isinstance(node, Block) and type(text) is not Trusted)
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
        except FunctionNotFound as error:
            self._refuse(slot.index, _advised(error, arguments), error)
        except ArgumentsInvalid as error:
            self._refuse(slot.index, str(error), error)
        try:
            result = await awaitable
        except FunctionNotFound as error:
            if error.name != slot.function:
                raise  # The function called another one.
            self._refuse(slot.index, _advised(error, arguments), error)
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
        raise fault(message, str(self), at, len(str(node.content)), name=self.name) from cause


def _advised(error: FunctionNotFound, arguments: Mapping[str, object]) -> str:
    return f"{error} The variable is written ${error.name}." if error.name in arguments else str(error)


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
