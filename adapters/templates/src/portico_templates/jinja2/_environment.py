"""Jinja2's sandbox, narrowed to data, with the functions of a kernel in it."""

from __future__ import annotations

import datetime as dt
import operator
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CoroutineType, MethodType
from typing import Any, ClassVar

from jinja2 import BaseLoader, Environment, Template, TemplateNotFound, TemplateSyntaxError, Undefined, nodes
from jinja2.compiler import CodeGenerator, Frame, operators
from jinja2.environment import TemplateModule
from jinja2.loaders import split_template_path
from jinja2.runtime import AsyncLoopContext, BlockReference, Context, Macro, TemplateReference
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedFormatter
from jinja2.utils import Cycler, Joiner

from portico import Prompt, Trusted
from portico.errors import LimitExceeded
from portico.plugins import TextForm
from portico_templates.handlebars.values import is_hidden, visible
from portico_templates.jinja2._data import (
    JINJA_OWN,
    NOTHING,
    Method,
    Missing,
    Refused,
    describe_kind,
    read_field,
    read_item,
)
from portico_templates.jinja2._filters import VISIBLE, WHOLE, mark_written, prompt_filters, prompt_tests
from portico_templates.jinja2._rendering import (
    RENDERING,
    OwnText,
    Printed,
    charge,
    charge_pieces,
    check_format,
    check_growth,
    compared,
    count_lines,
    count_pieces,
    made,
    sized,
    split_values,
    too_large,
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

    def __init__(self, iterable: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(visible(iterable), *args, **kwargs)

    def __len__(self) -> int:
        raise Refused("The length of a loop is loop.length.")


def counted_range(*args: int) -> range:
    """Return a range of at most 100,000 numbers, and count them."""
    numbers = range(*args)
    if numbers[_LARGEST_RANGE:]:
        raise LimitExceeded(f"A range in a template has at most {_LARGEST_RANGE:,} numbers.")
    RENDERING.get().step(len(numbers))
    return numbers


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
_BITS_A_STEP = 128
_PLAIN = frozenset([bool, float, int, str, type(None)])
_CONTAINERS = frozenset([dict, list, tuple])
_GLOBALS = ("cycler", "dict", "joiner", "namespace")
_MESSAGE = re.compile(r"</?message\b")
_WIDTH = re.compile(r"%(?:\(([^)]*)\))?[-#0 +]*(\*|[0-9]*)(?:\.(\*|[0-9]*))?")


class PromptCode(CodeGenerator):
    """Jinja2's generator; where it would take every text for a plain string, ours asks the environment.

    Nothing is computed while a template is compiled: what it may use up is counted when it is rendered.
    """

    def _output_child_to_const(self, node: nodes.Expr, frame: Frame, finalize: Any) -> str:
        if not isinstance(node, nodes.TemplateData):
            raise nodes.Impossible
        return node.data

    def _output_child_pre(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
        self.write("environment.finalize(")

    def _output_child_post(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
        self.write(")")

    def start_write(self, frame: Frame, node: nodes.Node | None = None) -> None:
        """Begin to print what a filter block, a call block or a recursive loop gives: it may be a value."""
        super().start_write(frame, node)
        self.write("environment.finalize(")

    def end_write(self, frame: Frame) -> None:
        """End it."""
        self.write(")")
        super().end_write(frame)

    def simple_write(self, s: str, frame: Frame, node: nodes.Node | None = None) -> None:
        """Hand on what a block or an included template printed."""
        super().start_write(frame, node)
        self.write(s)
        super().end_write(frame)

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802 - Jinja2's name
        """Write ``~``."""
        self.write("environment.join('', (")
        for operand in node.nodes:
            self.visit(operand, frame)
            self.write(", ")
        self.write("))")

    def visit_List(self, node: nodes.List | nodes.Dict | nodes.Tuple, frame: Frame) -> None:  # noqa: N802
        """Write ``[x]``, ``{x: y}`` or ``(x, y)``; the names of a loop or a ``set`` are one too."""
        is_value = getattr(node, "ctx", "load") == "load"
        self.write("environment.made(" if is_value else "")
        getattr(super(), f"visit_{type(node).__name__}")(node, frame)
        self.write(")" if is_value else "")

    visit_Dict = visit_Tuple = visit_List  # noqa: N815 - Jinja2's names

    def visit_Operand(self, node: nodes.Operand, frame: Frame) -> None:  # noqa: N802 - Jinja2's name
        """Write what a value is compared with: Python goes through it in one go."""
        self.write(f" {operators[node.op]} environment.compared(")
        self.visit(node.expr, frame)
        self.write(f", {node.op.endswith('in')})")

    def visit_Getattr(self, node: nodes.Getattr, frame: Frame) -> None:  # noqa: N802 - Jinja2's name
        """Write ``x.y``."""
        with self._read():
            self.write("environment.field(")
            self.visit(node.node, frame)
            self.write(f", {node.attr!r})")

    def visit_Getitem(self, node: nodes.Getitem, frame: Frame) -> None:  # noqa: N802 - Jinja2's name
        """Write ``x[y]``; slices too go by the environment, which knows what is data."""
        with self._read():
            self.write("environment.item(")
            self.visit(node.node, frame)
            self.write(", ")
            if isinstance(node.arg, nodes.Slice):
                self.write("slice(")
                for bound in (node.arg.start, node.arg.stop, node.arg.step):
                    if bound is None:
                        self.write("None")
                    else:
                        self.visit(bound, frame)
                    self.write(", ")
                self.write(")")
            else:
                self.visit(node.arg, frame)
            self.write(")")

    @contextmanager
    def _read(self) -> Iterator[None]:
        """Await what is read if it has to be: data is there at once, ``loop.last`` and the like is not."""
        name = self.temporary_identifier()
        self.write(f"({name} if type({name} := ")
        yield
        self.write(f") is not CoroutineType else await {name})")


class PromptEnvironment(ImmutableSandboxedEnvironment):
    """What a template's code runs in."""

    code_generator_class = PromptCode
    intercepted_binops: ClassVar[frozenset[str]] = frozenset(["+", "-", "*", "**", "%", "//"])  # type: ignore[misc]

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
        self.compared = compared
        self.filters = prompt_filters()
        self.tests = prompt_tests()
        self.globals = {name: self.globals[name] for name in _GLOBALS}
        self.globals["range"] = counted_range
        self._callable = tuple(self.globals.values())

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        escaping = tree.find(nodes.EvalContextModifier)
        if escaping is not None:
            message = "There is no autoescape: nothing in a prompt is escaped, and values are never markup."
            raise TemplateSyntaxError(message, escaping.lineno, name, filename)
        for call in list(tree.find_all((nodes.Call, nodes.Filter, nodes.Test))):
            if isinstance(call, nodes.Call):
                mark_written(call)
            for given in ("dyn_args", "dyn_kwargs"):
                if getattr(call, given) is not None:
                    name = WHOLE if isinstance(call, nodes.Call) and given == "dyn_kwargs" else VISIBLE
                    setattr(call, given, nodes.Filter(getattr(call, given), name, [], [], None, None))
        return tree

    # What is printed.

    def print_value(self, value: Any) -> str:
        """Write a value: as a value, but for what is the template's own."""
        if type(value) is str:
            text: str = Printed(value)
        elif type(value) is Trusted or isinstance(value, OwnText):
            text = self.own(value)
        else:
            text = Printed(self.text(value))
        rendering = RENDERING.get()
        rendering.printed += 1 + len(text)  # captured texts too, which are printed twice
        if rendering.printed > rendering.most_printed:
            raise too_large(rendering.settings.max_characters)
        return text

    def text(self, value: Any) -> str:
        """Write a value as every prompt language writes it, as a plain string."""
        if isinstance(value, OwnText | Trusted):
            return str.__str__(value)
        if type(value) in _PLAIN:
            return self._text_form(value)
        if isinstance(value, Undefined):
            return ""
        if isinstance(value, (*JINJA_OWN, Method)):
            raise Refused(f"This is {describe_kind(value)}, which has no text; a macro or method is called with (…).")
        if isinstance(value, Iterator | AsyncIterator):
            raise Refused("This gives one element after another and has no text: write |join or |list.")
        try:
            return sized(self._text_form(self.json(value) if type(value) in _CONTAINERS else value))
        except ValueError as error:
            raise Refused(f"The value cannot be written as text. {error}") from error

    def json(self, value: Any, *, hide: bool = False) -> Any:
        """Return a value for a function, or to be written as JSON: what Jinja2 made becomes what it stands for.

        With ``hide``, mappings lose their hidden keys.
        """
        kind = type(value)
        if kind in _PLAIN:
            return value
        if isinstance(value, Undefined):
            return None
        if isinstance(value, OwnText):
            return str.__str__(value)
        if hide and kind is not list:
            if kind is dict or isinstance(value, Mapping):
                kind, value = dict, visible(value)
            elif isinstance(value, (list, tuple)):
                kind = list
        if kind in _CONTAINERS:
            charge(value)  # If it shares its parts, its text can be without end.
        if kind in (list, tuple):
            return kind(self.json(element, hide=hide) for element in value)
        if kind is dict:
            return {self.json(key): self.json(element, hide=hide) for key, element in value.items()}
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
        return OwnText.of(split_values(parts))

    def finish(self, parts: list[str]) -> str:
        """Join all that was printed: to a `Prompt` where the template's own text may open a message."""
        text = "".join(parts)
        check_growth(len(text))
        if _MESSAGE.search(text) is None:
            return text
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
            return sized(str(between.join(texts)))
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
        if type(obj) is dict and name in obj and name[:1] != "_":
            return obj[name]
        if isinstance(obj, Missing):
            return obj.field(name)
        if is_hidden(name):
            raise Refused(f"Names that begin with '_' are hidden: pass {name!r} under another name.")
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
            return self.field(obj, str(key))
        found = read_item(obj, key)
        if type(key) is slice:
            sized(found)
        return Missing(obj=obj, name=key) if found is NOTHING else found

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
        whole = kwargs.pop(WHOLE, {})
        if not isinstance(obj, Macro | Missing | AsyncLoopContext) or (
            isinstance(obj, Macro) and (obj.catch_varargs or obj.catch_kwargs)
        ):
            made((args, kwargs))
        if isinstance(obj, Missing):
            if not obj.words:
                raise Refused(f"This cannot be called: {obj._undefined_message}.")  # noqa: SLF001 - Jinja2's words
            return self._call_function(obj.words, args, {**whole, **kwargs})
        if isinstance(obj, Method):
            return self._call_method(obj, args, _own_arguments(kwargs))
        if isinstance(obj, Macro | AsyncLoopContext):
            return _deeper(context.call(obj, *args, **kwargs))
        if isinstance(obj, BlockReference | Joiner) or any(obj is given for given in self._callable):
            return context.call(obj, *args, **kwargs)
        if isinstance(obj, MethodType) and isinstance(obj.__self__, AsyncLoopContext | Cycler):
            return context.call(obj, *args, **kwargs)
        raise Refused(f"This is {describe_kind(obj)}, a value, not a function: it cannot be called.")

    def _call_function(self, words: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Awaitable[Any]:
        name = "-".join(words) if len(words) == 2 else ".".join(words)
        arguments = {key: self.json(value) for key, value in _own_arguments(kwargs).items()}
        return RENDERING.get().call(name, arguments, [self.json(value) for value in args])

    def _call_method(self, method: Method, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        of, name = method.of, method.name
        if not isinstance(of, str):
            if name == "strftime":
                check_format(str(args[0]) if args else "")
            if name == "get" and isinstance(of, Mapping):
                given = dict(zip(("key", "default"), args, strict=False)) | kwargs
                return given.get("default") if is_hidden(given.get("key")) else of.get(*args, **kwargs)
            result = getattr(visible(of), name)(*args, **kwargs)
            return list(result) if name in ("items", "keys", "values") else result
        charge(of)
        if name in ("format", "format_map"):
            charge(range(4 * of.count("{")))
            mapping = args[0] if name == "format_map" and args else None
            text = _Formatter(self).vformat(of, () if mapping else args, visible(mapping) or kwargs)
            return sized(text)
        if name == "join":
            charge_pieces(args[0] if args else None)
            return self.join(of, list(visible(args[0])) if args else [])
        if name == "replace" and 2 <= len(args) <= 3 and not kwargs:
            return self.replace(of, self.text(args[0]), self.text(args[1]), args[2] if len(args) > 2 else -1)
        for given in (*args, *kwargs.values()):
            if isinstance(given, int):
                check_growth(given * (of.count("\t") + 1 if name == "expandtabs" else 1) + len(of))
        if name in ("split", "rsplit"):
            given = dict(zip(("sep", "maxsplit"), args, strict=False)) | kwargs
            charge(range(count_pieces(of, given.get("sep"), given.get("maxsplit", -1))))
        elif name == "splitlines":
            charge(range(count_lines(of)))
        return sized(getattr(str.__str__(of), name)(*args, **kwargs))

    def replace(self, text: str, old: str, new: str, count: int) -> str:
        """Replace a text by another."""
        found = text.count(old) if len(new) > len(old) else 0
        check_growth(len(text) + found * len(new))
        return sized(text.replace(old, new, count))

    # What is computed.

    def operand(self, value: Any) -> Any:
        """Return what a format may write of a value: numbers and dates as they are, else the text."""
        return value if isinstance(value, int | float | dt.date | dt.time) else self.text(value)

    def percent(self, text: str, values: Any) -> str:
        """Put values into a text by ``%``."""
        charge(range(2 * text.count("%")))
        if isinstance(values, Mapping) and "%(" in text:
            given: Any = {name: self.operand(value) for name, value in visible(values).items()}
        else:
            given = tuple(map(self.operand, values if isinstance(values, tuple) else (values,)))
        size = len(text) + (sum(map(_length, given)) if isinstance(given, tuple) else 0)
        for name, *numbers in map(re.Match.groups, _WIDTH.finditer(text)):
            if "(" in (name or ""):
                raise Refused(f"A name in a format has no parentheses: {name!r}.")
            for digits in numbers:
                check_format("0000" if digits == "*" else digits or "")
                size += int(digits or 0)
            if isinstance(given, dict):
                size += _length(given.get(name))
            check_growth(size)
        return sized(text % given)  # type: ignore[no-any-return]

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Compute, within bounds: what doubles each time is soon larger than the machine."""
        if operator == "%" and isinstance(left, str):
            return self.percent(self.text(left), right)
        if operator == "+":
            return self._add(left, right)
        if operator == "*":
            for one, other in ((left, right), (right, left)):
                if isinstance(one, str | list | tuple) and isinstance(other, int):
                    check_growth(len(one) * max(0, other))
        if isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length() * max(0, right) if operator == "**" else left.bit_length() + right.bit_length()
            if bits > _LARGEST_BITS:
                raise LimitExceeded(f"A number in a template has at most {_LARGEST_BITS:,} bits.")
            charge(range(bits // _BITS_A_STEP))
        return sized(made(super().call_binop(context, operator, left, right)))

    def _add(self, left: Any, right: Any) -> Any:
        if isinstance(left, str | list | tuple) and isinstance(right, str | list | tuple):
            check_growth(len(left) + len(right))
            if isinstance(left, str) and isinstance(right, str):
                return self.join("", (left, right))
            charge(left)
            made(right)  # what is in the left one was counted when it was made
            return operator.add(left, right)
        return made(operator.add(left, right))


def _length(value: Any) -> int:
    """Return the most characters that a format makes of a value, without its width."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, float):
        return max(24, len(f"{value:.0f}"))
    return value.bit_length() if isinstance(value, int) else 48


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
    kwargs.pop("_loop_vars", None)
    kwargs.pop("_block_vars", None)
    return kwargs


class _Formatter(SandboxedFormatter):
    _env: PromptEnvironment
    size = 0

    def convert_field(self, value: Any, conversion: Any) -> Any:
        return super().convert_field(self._env.operand(value), conversion)

    def format_field(self, value: Any, format_spec: str) -> Any:
        check_format(format_spec)
        text = super().format_field(value, format_spec)
        self.size += len(text)
        check_growth(self.size)
        return text
