"""Jinja2's sandbox, narrowed to data, with the functions of a kernel in it."""

from __future__ import annotations

import datetime as dt
import operator
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence, Set, Sized
from itertools import chain
from pathlib import Path
from types import CoroutineType, MethodType
from typing import Any, ClassVar

from jinja2 import BaseLoader, Environment, Template, TemplateNotFound, TemplateSyntaxError, Undefined, nodes
from jinja2.environment import TemplateModule
from jinja2.loaders import split_template_path
from jinja2.runtime import AsyncLoopContext, BlockReference, Context, Macro, TemplateReference
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedFormatter
from jinja2.utils import Cycler, Joiner, Namespace

from portico import Prompt, Trusted
from portico.errors import LimitExceeded
from portico.plugins import TextForm
from portico_templates.handlebars.values import is_hidden, show, visible
from portico_templates.jinja2._code import PromptCode
from portico_templates.jinja2._data import (
    JINJA_OWN,
    NOTHING,
    Method,
    Missing,
    Refused,
    describe_kind,
    named,
    read_field,
    read_item,
)
from portico_templates.jinja2._filters import prompt_filters, prompt_tests
from portico_templates.jinja2._rendering import (
    PLAIN,
    RENDERING,
    OwnText,
    Printed,
    charge,
    check_format,
    check_growth,
    made,
    split_values,
    work,
)
from portico_templates.jinja2.config import Jinja2Settings

_LARGEST_RANGE = 100_000
_LONGEST = 1_000_000


class PromptTemplate(Template):
    """A template whose loops are counted, and whose imports are made anew in each rendering."""

    @classmethod
    def from_code(cls, environment: Any, code: Any, globals: Any, uptodate: Any = None) -> PromptTemplate:
        """Make it of its code; the loops of that go through our own iterators."""
        template: PromptTemplate = super().from_code(environment, code, globals, uptodate)  # type: ignore[assignment]
        names = template.root_render_func.__globals__
        names.update(auto_aiter=counted_iterator, AsyncLoopContext=CountedLoop, CoroutineType=CoroutineType)
        return template

    async def _get_default_module_async(self, ctx: Context | None = None) -> TemplateModule:
        shared = {} if ctx is None else {key: ctx.parent[key] for key in ctx.globals_keys - self.globals.keys()}
        return await self.make_module_async(shared)


async def counted_iterator(iterable: Any) -> AsyncIterator[Any]:
    """Go through a loop's elements, and count the rounds."""
    rendering = RENDERING.get()
    step, count = rendering.step, rendering.round
    if hasattr(iterable, "__aiter__"):
        async for element in iterable:
            step(count)
            yield element
    else:
        for element in visible(iterable):
            step(count)
            yield element


class CountedLoop(AsyncLoopContext):
    """A loop with its variable ``loop``, counted."""

    _to_iterator = staticmethod(counted_iterator)

    def __len__(self) -> int:
        raise Refused("The length of a loop is loop.length.")


def counted_range(*args: int) -> range:
    """Return a range of at most 100,000 numbers, and count them."""
    numbers = range(*args)
    if numbers[_LARGEST_RANGE:]:
        raise LimitExceeded(f"A range in a template has at most {_LARGEST_RANGE:,} numbers.")
    RENDERING.get().step(len(numbers))
    return numbers


def counted_dict(*args: Any, **kwargs: Any) -> dict[Any, Any]:
    """Return ``dict(…)``, each key counted before it is hashed."""
    if len(args) > 1:
        raise Refused(f"dict takes one mapping or list of pairs, not {len(args)}.")
    pairs = chain.from_iterable(given.items() if isinstance(given, Mapping) else given for given in args)
    return counted_pairs(chain(((key, value) for key, value in pairs), kwargs.items()))


def counted_pairs(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Make a mapping; a key that has parts is counted before it is hashed."""
    rendering = RENDERING.get()
    result = {}
    for key, value in pairs:
        rendering.step(2)
        if type(key) is not str:
            rendering.walk(key)
        result[key] = value
    return result


def check_source(source: str, name: str) -> None:
    """Raise ``LimitExceeded`` for a template or partial that is too long."""
    if len(source) > _LONGEST:
        raise LimitExceeded(f"{name}: a template has at most {_LONGEST:,} characters.")


class Partials(BaseLoader):
    """Find partials in a mapping, then in a folder; nothing else of the host's files is ever opened."""

    def __init__(self, partials: Mapping[str, str], folder: Path | None) -> None:
        self._partials = dict(partials)
        self._folder = folder

    def get_source(self, environment: Environment, template: str) -> tuple[str, str | None, Callable[[], bool] | None]:
        """Return the text of a partial; raises ``TemplateNotFound``."""
        source = self._partials.get(template)
        if source is None:
            source = self._read(template)
        check_source(source, template)
        sources: dict[str, str] = environment.sources  # type: ignore[attr-defined]
        sources[template] = source
        return source, None, None

    def _read(self, template: str) -> str:
        if self._folder is None or "\0" in template:
            raise TemplateNotFound(template)
        path = self._folder.joinpath(*split_template_path(template))
        # A link inside of the folder must not lead out of it.
        if not path.resolve().is_relative_to(self._folder.resolve()) or not path.is_file():
            raise TemplateNotFound(template)
        try:
            with path.open(encoding="utf-8") as file:
                return file.read(_LONGEST + 1)
        except (OSError, UnicodeDecodeError) as error:
            raise Refused(f"The partial {template!r} cannot be read: {error}.") from error


_LARGEST_BITS = 100_000
_LOOKS_A_STEP = 16
_GLOBALS = ("cycler", "joiner")
_MESSAGE = re.compile(r"</?message\b")
_ADDED = ("_block_vars", "_loop_vars")
_NAMED = re.compile(r"%\(([^)]*)\)")
_WIDTH = re.compile(r"%(?:\([^)]*\))?[-#0 +]*(\*|[0-9]*)(?:\.(\*|[0-9]*))?")


class PromptEnvironment(ImmutableSandboxedEnvironment):
    """What a template's code runs in."""

    code_generator_class = PromptCode
    intercepted_binops: ClassVar[frozenset[str]] = frozenset(["+", "-", "*", "**", "%"])  # type: ignore[misc]

    def __init__(self, settings: Jinja2Settings, text_form: TextForm) -> None:
        super().__init__(
            trim_blocks=settings.trim_blocks,
            lstrip_blocks=settings.lstrip_blocks,
            keep_trailing_newline=True,
            optimized=False,
            undefined=Missing,
            finalize=self.print_value,
            autoescape=False,
            loader=Partials(settings.partials, settings.folder),
            auto_reload=False,
            enable_async=True,
        )
        self.template_class = PromptTemplate
        self.settings = settings
        self.sources: dict[str, str] = {}
        self._text_form = text_form
        self.made = made
        self.pairs = counted_pairs
        self.filters = prompt_filters(self)
        self.tests = prompt_tests(self)  # type: ignore[assignment]
        self.globals = {name: self.globals[name] for name in _GLOBALS}
        self.globals |= {"dict": counted_dict, "range": counted_range}
        self.globals["namespace"] = lambda *args, **kwargs: Namespace(counted_dict(*args, **kwargs))
        self._callable = tuple(self.globals.values())

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        escaping = tree.find(nodes.EvalContextModifier)
        if escaping is not None:
            message = "There is no autoescape: nothing in a prompt is escaped, and values are never markup."
            raise TemplateSyntaxError(message, escaping.lineno, name, filename)
        return tree

    def _load_template(self, name: Any, globals: Any) -> Template:
        RENDERING.get().step(1)
        if not isinstance(name, str):
            raise Refused(f"The name of a partial is a text, not {describe_kind(name)}.")
        return super()._load_template(name, globals)

    # What is printed.

    def print_value(self, value: Any) -> str:
        """Write a value: as a value, but for what is the template's own."""
        if type(value) is str:
            text: str = Printed(value)
        elif type(value) is Trusted or isinstance(value, OwnText):
            text = self.own(value)
        else:
            text = Printed(self.text(value))
        RENDERING.get().print(text)
        return text

    def text(self, value: Any) -> str:
        """Write a value as every prompt language writes it, as a plain string."""
        if isinstance(value, OwnText | Trusted):
            return str.__str__(value)
        if type(value) in PLAIN:
            return self._text_form(value)
        if isinstance(value, Undefined):
            return ""
        if isinstance(value, (*JINJA_OWN, Method)):
            raise Refused(f"This is {describe_kind(value)}, which has no text; a macro or method is called with (…).")
        if isinstance(value, Iterator | AsyncIterator):
            raise Refused("This gives one element after another and has no text: write |join or |list.")
        rendering = RENDERING.get()
        rendering.walk(value, rendering.settings.max_characters)
        try:
            text = self._text_form(self._json(value))
        except ValueError as error:
            raise Refused(f"The value cannot be written as text. {error}") from error
        check_growth(len(text))
        return made(text)

    def json(self, value: Any) -> Any:
        """Return a value for a function: what Jinja2 made becomes what it stands for."""
        if type(value) is not str and type(value) not in PLAIN:
            RENDERING.get().walk(value)
        return self._json(value)

    def _json(self, value: Any) -> Any:
        kind = type(value)
        if kind is str or kind in PLAIN:
            return value
        if isinstance(value, Undefined):
            return None
        if isinstance(value, OwnText):
            return str.__str__(value)
        if kind in (list, tuple):
            return kind([self._json(element) for element in value])
        if kind is dict:
            return {self._json(key): self._json(element) for key, element in value.items()}
        if kind is range or (isinstance(value, Iterable) and kind.__name__ in ("dict_keys", "dict_values")):
            return list(value)
        if isinstance(value, (*JINJA_OWN, Method)):
            raise Refused(f"This is {describe_kind(value)}, which no function takes.")
        return value

    def own(self, value: Any) -> OwnText:
        """Take a text for the template's own."""
        return value if isinstance(value, OwnText) else OwnText.of([(self.text(value), False)])

    def concat(self, parts: Iterable[str]) -> OwnText:
        """Join what a macro, a block or a filter block printed."""
        parts = list(parts)
        check_growth(sum(map(len, parts)))
        text = OwnText.of(split_values(parts))
        RENDERING.get().step(len(text.pieces))
        return made(text)

    def finish(self, parts: list[str]) -> str:
        """Join all that was printed: to a `Prompt` where the template's own text may open a message."""
        check_growth(sum(map(len, parts)))
        pieces = split_values(parts)
        if any(_MESSAGE.search(text) for text, is_value in pieces if not is_value):
            return Prompt(pieces)
        return "".join([text for text, _ in pieces])

    def join(self, between: Any, values: Sequence[Any]) -> str:
        """Join values, as their texts; what is the template's own stays that."""
        if not any(isinstance(value, OwnText | Trusted) for value in (between, *values)):
            texts = [self.text(value) for value in values]
            between = self.text(between)
            check_growth(sum(map(len, texts)) + len(between) * max(0, len(texts) - 1))
            return made(str(between.join(texts)))
        parts: list[str] = []
        for value in values:
            parts += [self._part(between)] if parts and between != "" else []
            parts.append(self._part(value))
        return self.concat(parts)

    def _part(self, value: Any) -> str:
        return self.own(value) if isinstance(value, OwnText | Trusted) else Printed(self.text(value))

    # What is read.

    def field(self, obj: Any, name: str) -> Any:
        """Return a field of data; of what is missing, something missing."""
        if type(obj) is dict and name in obj and not is_hidden(name):
            return obj[name]
        if isinstance(obj, Missing):
            return obj.field(name)
        if is_hidden(name):
            raise Refused(f"Names that begin with '_' are not read: {name!r}.")
        if isinstance(obj, JINJA_OWN):
            try:
                return obj[name] if isinstance(obj, TemplateReference) else getattr(obj, name)
            except (AttributeError, KeyError):
                return Missing(obj=obj, name=name)
        found = read_field(obj, name)
        return Missing(obj=obj, name=name) if found is NOTHING else found

    def item(self, obj: Any, key: Any) -> Any:
        """Return an element or a field of data; of what is missing, something missing."""
        if isinstance(obj, Missing):
            return obj.field(key)
        if isinstance(obj, JINJA_OWN) or is_hidden(key):
            return self.field(obj, str(named(key)))
        if type(key) is not str and type(key) is not int:
            RENDERING.get().walk(key)
        found = read_item(obj, key)
        if type(key) is slice:
            made(found)
        return Missing(obj=obj, name=named(key)) if found is NOTHING else found

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return a field for a filter or a format, which cannot await it."""
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return an element or field for a filter or a format, which cannot await it."""
        if isinstance(obj, AsyncLoopContext):
            raise Refused("A filter cannot read the variable of a loop.")
        return self.item(obj, argument)

    # What is called.

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call a function of the kernel, a macro, or a method that only computes; nothing else."""
        if isinstance(obj, Missing):
            if not obj.words:
                raise Refused(f"This cannot be called: {obj._undefined_message}.")  # noqa: SLF001 - Jinja2's words
            return self._call_function(obj.words, args, kwargs)
        if any(map(is_hidden, kwargs.keys() - _ADDED)):
            raise Refused("An argument whose name begins with '_' cannot be given.")
        if isinstance(obj, Method):
            return self._call_method(obj, args, _own_arguments(kwargs))
        if isinstance(obj, Macro | AsyncLoopContext):
            return _deeper(context.call(obj, *args, **kwargs))
        if isinstance(obj, BlockReference | Joiner) or any(obj is given for given in self._callable):
            return context.call(obj, *args, **kwargs)
        if isinstance(obj, MethodType) and isinstance(obj.__self__, AsyncLoopContext | Cycler):
            known = tuple(map(self.known, args))
            return context.call(obj, *(known if obj.__name__ == "changed" else args), **kwargs)
        raise Refused(f"This is {describe_kind(obj)}, a value, not a function: it cannot be called.")

    def _call_function(self, words: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Awaitable[Any]:
        name = "-".join(words) if len(words) == 2 else ".".join(words)
        arguments = {key: self.json(value) for key, value in _own_arguments(kwargs).items()}
        return RENDERING.get().call(name, arguments, [self.json(value) for value in args])

    def _call_method(self, method: Method, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        of, name = method.of, method.name
        if not isinstance(of, str):
            known = tuple(map(self.known, args))
            if name == "get":
                return ({} if args and is_hidden(args[0]) else of).get(*args, **kwargs)
            if name == "strftime":
                check_format(self.text(args[0]) if args else "")
            if name in ("count", "index"):
                of, args = self.known(of), known
            of = visible(of)
            charge(of)
            try:
                result = getattr(of, name)(*args, **kwargs)
            except ValueError as error:
                if name != "index":
                    raise
                raise Refused("The list has no such element.") from error  # Python's words are the whole element.
            return list(result) if name in ("items", "keys", "values") else result
        charge(of)
        if name in ("format", "format_map"):
            mapping = visible(args[0]) if name == "format_map" and args else None
            return made(_Formatter(self).vformat(of, () if mapping else args, mapping or kwargs))
        if name == "join":
            return self.join(of, list(visible(args[0])) if args else [])
        if name == "replace" and 2 <= len(args) <= 3 and not kwargs:
            return self.replace(of, self.text(args[0]), self.text(args[1]), args[2] if len(args) > 2 else -1)
        for given in (*args, *kwargs.values()):
            if isinstance(given, int):
                check_growth(given * (of.count("\t") + 1 if name == "expandtabs" else 1) + len(of))
        result = getattr(str.__str__(of), name)(*args, **kwargs)
        charge(result if isinstance(result, list) else None)
        return made(result)

    def replace(self, text: str, old: str, new: str, count: int) -> str:
        """Replace a text by another."""
        found = text.count(old) if len(new) > len(old) else 0
        check_growth(len(text) + found * len(new))
        return made(text.replace(old, new, count))

    # What is computed.

    def known(self, value: Any) -> Any:
        """Return a value to compare or to hash: counted, and without what is hidden in it."""
        return value if type(value) in PLAIN or not RENDERING.get().walk(value) else show(value)

    def contains(self, value: Any, within: Any) -> bool:
        """Tell whether a value is in another one."""
        value = self.known(value)
        if isinstance(within, Mapping | Set):
            return not is_hidden(value) and value in within
        if isinstance(within, Iterator):
            within = list(within)
        if isinstance(within, Sized):
            RENDERING.get().step(len(within) // _LOOKS_A_STEP * work(value))
        # A text or number is equal to no list, whatever that has in it.
        return value in (within if isinstance(value, str) or type(value) in PLAIN else self.known(within))

    def operand(self, value: Any) -> Any:
        """Return what a format may write of a value: numbers and dates as they are, else the text."""
        return value if isinstance(value, int | float | dt.date | dt.time) else self.text(value)

    def percent(self, text: str, values: Any) -> str:
        """Put values into a text by ``%``."""
        for digits in chain.from_iterable(_WIDTH.findall(text)):
            check_format("0000" if digits == "*" else digits)
        if isinstance(values, dict) and "%(" in text:
            given: Any = {name: self.operand(value) for name, value in visible(values).items()}
            texts: Sequence[Any] = [given.get(name) for name in _NAMED.findall(text)]
        else:
            texts = given = tuple(map(self.operand, values if isinstance(values, tuple) else (values,)))
        check_growth(len(text) + sum(len(each) for each in texts if isinstance(each, str)))
        return made(str(text % given))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Compute, within bounds: what doubles each time is soon larger than the machine."""
        if operator == "%" and isinstance(left, str | bytes):
            return self.percent(self.text(left), right)
        if operator == "+":
            return self._add(left, right)
        if operator == "*":
            for one, other in ((left, right), (right, left)):
                if isinstance(one, Sized) and isinstance(other, int):
                    check_growth(len(one) * max(0, other))
        if isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length() * max(0, right) if operator == "**" else left.bit_length() + right.bit_length()
            if bits > _LARGEST_BITS:
                raise LimitExceeded(f"A number in a template has at most {_LARGEST_BITS:,} bits.")
        return made(super().call_binop(context, operator, left, right))

    def _add(self, left: Any, right: Any) -> Any:
        if isinstance(left, Sized) and isinstance(right, Sized):
            check_growth(len(left) + len(right))
            if isinstance(left, str) and isinstance(right, str):
                return self.join("", (left, right))
        return made(operator.add(left, right))


async def _deeper(called: Awaitable[Any]) -> Any:
    rendering = RENDERING.get()
    try:
        rendering.enter()
    except LimitExceeded:
        called.close()  # type: ignore[attr-defined]
        raise
    try:
        return await called
    finally:
        rendering.depth -= 1


def _own_arguments(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return what the template gave by name, without what Jinja2 adds."""
    for name in _ADDED:
        kwargs.pop(name, None)
    return kwargs


class _Formatter(SandboxedFormatter):
    _env: PromptEnvironment
    made = 0

    def convert_field(self, value: Any, conversion: Any) -> Any:
        return super().convert_field(self._env.operand(value), conversion)

    def format_field(self, value: Any, format_spec: str) -> Any:
        check_format(format_spec)
        text = super().format_field(value, format_spec)
        self.made += len(text)
        check_growth(self.made)
        return text
