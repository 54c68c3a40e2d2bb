"""The Jinja2 template language."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import TypeVar

from jinja2 import Template as CompiledTemplate, TemplateNotFound, TemplateSyntaxError, nodes
from jinja2.compiler import Frame
from jinja2.meta import TrackingCodeGenerator

from portico import Prompt
from portico.errors import LimitExceeded, PorticoError, TemplateError
from portico.plugins import FunctionCall, Services, TextForm
from portico.ports import CallFunction, TypeCodec
from portico_templates.jinja2._data import METHODS, Refused
from portico_templates.jinja2._environment import PromptCode, PromptEnvironment, check_source
from portico_templates.jinja2._filters import written_words
from portico_templates.jinja2._rendering import RENDERING, Rendering
from portico_templates.jinja2.config import Jinja2Settings

Found = TypeVar("Found")

_DOING_WITHOUT = ("d", "default")


def find_variables(tree: nodes.Template) -> tuple[str, ...]:
    """Return the names that a template writes or gives to functions and filters, in the order of their first use.

    Not among them: what a condition, a loop or ``default`` is about, which may be missing; names that are called or
    whose method is called, which are functions and plugins as a rule; what the template sets itself.
    """
    search = _Search()
    found = dict.fromkeys(search.names(tree))
    undeclared = _Scopes(tree).undeclared_identifiers
    return tuple(name for name in found if name in undeclared and name not in search.excluded)


class _Scopes(PromptCode, TrackingCodeGenerator):
    """Finds which names no scope of a template has, as the compiler would look them up.

    ``undeclared_identifiers`` are looked up outside of the template: variables, plugins and functions. ``unset`` are
    the template's, and may have no value yet where they are used: that is a function, whatever is outside.
    """

    def __init__(self, tree: nodes.Template) -> None:
        assert tree.environment is not None  # noqa: S101 - a template that was parsed has one
        super().__init__(tree.environment)
        self.optimizer = None  # it would change the tree
        self.unset: set[str] = set()
        self._set: set[str] = set()
        self.visit(tree)

    def visit_Name(self, node: nodes.Name, frame: Frame) -> None:  # noqa: N802 - Jinja2's name
        """Note a name that is used; only what the template sets outside of loops and blocks stays set in all of it."""
        ref = frame.symbols.ref(node.name)
        how, _ = frame.symbols.find_load(ref) or ("", None)
        if node.ctx != "load":
            self._set |= {ref} if frame.toplevel else set()
        elif how == "param":
            self.unset |= {node.name} if self.parameter_is_undeclared(ref) else set()
        elif how != "resolve" and (frame.block or ref not in self._set):
            self.unset.add(node.name)
        super().visit_Name(node, frame)

    def visit_Macro(self, node: nodes.Macro, frame: Frame) -> None:  # noqa: N802 - Jinja2's name
        """Note the name of a macro, which is set wherever its body runs."""
        self._set |= {frame.symbols.ref(node.name)} if frame.toplevel else set()
        super().visit_Macro(node, frame)


class _Search:
    def __init__(self) -> None:
        self.excluded: set[str] = set()

    def names(self, node: nodes.Node) -> Iterator[str]:
        match node:
            case nodes.Name(name=name, ctx="load"):
                yield name
            case nodes.If(test=test) | nodes.CondExpr(test=test):
                self.about(test)
                yield from self.of(node.iter_child_nodes(exclude=("test",)))
            case nodes.For(iter=iterated):
                self.about(iterated)
                yield from self.of([*([] if _subject(iterated) else [iterated]), *node.iter_child_nodes(("iter",))])
            case nodes.Filter(name=name, node=nodes.Node() as subject) if name in _DOING_WITHOUT:
                self.about(subject)
                yield from self.of(node.iter_child_nodes(exclude=("node",)))
            case nodes.Test(node=subject):
                self.about(subject)
                yield from self.of(node.iter_child_nodes(exclude=("node",)))
            case nodes.Call(node=nodes.Filter(node=nodes.Node() as called)) if _subject(called):
                yield from self.of(node.iter_child_nodes(exclude=("node",)))
            case _:
                yield from self.of(node.iter_child_nodes())

    def of(self, nodes: Iterable[nodes.Node]) -> Iterator[str]:
        for node in nodes:
            yield from self.names(node)

    def about(self, node: nodes.Node) -> None:
        """Leave out what a template asks for before it uses it."""
        name = _subject(node)
        if name is not None:
            self.excluded.add(name)
        elif isinstance(node, nodes.Not | nodes.Test):
            self.about(node.node)
        elif isinstance(node, nodes.And | nodes.Or):
            self.about(node.left)
            self.about(node.right)


def _subject(node: nodes.Node) -> str | None:
    """Return the variable that a path such as ``a.b[0]`` begins with."""
    while isinstance(node, nodes.Getattr | nodes.Getitem):
        node = node.node
    return node.name if isinstance(node, nodes.Name) else None


_OF_METHODS = frozenset(["keepends", "maxsplit", "sep", "tabsize", "timespec"])


def find_calls(tree: nodes.Template, source: str) -> tuple[FunctionCall, ...] | None:
    """Return the calls of functions of the kernel that a template writes down, in the order of writing.

    A function is called by the names that are written, and by them only (`PromptEnvironment`); not if the first of them
    is the template's wherever it is used. If the template has it in some places, no call is certain.
    """
    for _ in tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)):
        return None
    scopes = _Scopes(tree)
    own = {name.name for name in tree.find_all(nodes.Name) if name.ctx != "load"}
    own |= {macro.name for macro in tree.find_all(nodes.Macro)}
    lines = source.split("\n")
    found: list[FunctionCall] = []
    for call in tree.find_all(nodes.Call):
        words = written_words(call)
        if not words or words[0] not in scopes.undeclared_identifiers | scopes.unset:
            continue
        name = "-".join(words) if len(words) == 2 else ".".join(words)
        named = [argument.key for argument in call.kwargs]
        certain = words[0] not in own and call.dyn_args is None and call.dyn_kwargs is None
        if len(words) == 2 and words[1] in METHODS and (words[1] == "format" or _OF_METHODS.issuperset(named)):
            certain = False  # perhaps a method of a variable; those take few arguments by name
        # Jinja2 knows the line only.
        place = re.search(rf"(?<![\w.]){re.escape('.'.join(words))}\b", lines[call.lineno - 1])
        column = place.start() + 1 if place else 1
        variable = "" if words[0] in scopes.unset else words[0]
        found.append(FunctionCall(name, len(call.args), tuple(named), call.lineno, column, certain, variable))
    return tuple(sorted(found, key=lambda call: (call.line, call.column)))


def compile_error(error: Exception, source: str, name: str) -> PorticoError:
    """Return the error of a template that cannot be read."""
    if isinstance(error, TemplateSyntaxError):
        message = error.message or "this cannot be read."
        advice = " A variable is written {{ name }} here." if message.startswith("unexpected char '$'") else ""
        return _at_line(_sentence(message) + advice, source, error.lineno, name)
    if isinstance(error, RecursionError | MemoryError | SyntaxError | OverflowError):
        # Python's compiler has its own bounds: twenty blocks inside one another, for one.
        return LimitExceeded(f"{name}: the template is nested too deeply to be compiled ({_message_of(error)}).")
    return TemplateError(f"{name}: the template cannot be compiled. {_message_of(error)}")


def render_error(error: Exception, template: CompiledTemplate, source: str, name: str) -> PorticoError:
    """Return the error of a template that cannot be rendered."""
    if isinstance(error, RecursionError | MemoryError):
        return LimitExceeded(f"{name}: the template nests or calls itself too deeply ({type(error).__name__}).")
    if isinstance(error, TemplateNotFound):
        wanted = " or ".join(map(repr, getattr(error, "templates", None) or [error.name]))
        message = f"There is no partial {wanted}. The settings partials and folder give a template some."
    elif isinstance(error, Refused):
        message = str(error)
    else:
        message = _sentence(_message_of(error))
    place = _place(error)
    if place is None:
        return TemplateError(f"{name}: {message}")
    found, line = place
    if isinstance(error, TemplateSyntaxError) and error.name:
        # A partial is compiled when it is first needed.
        return compile_error(error, error.source or "", error.name)
    if found.name is not None and found is not template:
        name = found.name
        source = getattr(found.environment, "sources", {}).get(name, "")
    return _at_line(message, source, line, name)


def _place(error: BaseException) -> tuple[CompiledTemplate, int] | None:
    """Return the template and line in which an error arose, the innermost."""
    place = None
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        template = trace.tb_frame.f_globals.get("__jinja_template__")
        if isinstance(template, CompiledTemplate):
            place = template, template.get_corresponding_lineno(trace.tb_lineno)
        trace = trace.tb_next
    return place


def _at_line(message: str, source: str, line: int, name: str) -> TemplateError:
    """Return the error of a line: Jinja2 knows no column."""
    lines = source.split("\n")
    line = min(max(line, 1), len(lines))
    shown = lines[line - 1]
    at = sum(len(before) + 1 for before in lines[: line - 1]) + len(shown) - len(shown.lstrip())
    return Prompt.fault(message, source, at, len(shown.strip()), name=name)


def _sentence(message: str) -> str:
    message = message[:1].upper() + message[1:]
    return message if message.endswith((".", "!", "?")) else f"{message}."


def _message_of(error: BaseException) -> str:
    return str(error) or type(error).__name__


class Jinja2Templates:
    """Compile prompts in Jinja2.

    >>> import asyncio
    >>> from portico import Kernel, function
    >>> from portico.plugins import FunctionCall
    >>> @function
    ... def double(number: int) -> int:
    ...     return 2 * number
    >>> kernel = Kernel()
    >>> _ = kernel.add_function(double)
    >>> template = Jinja2Templates().compile("{% for n in numbers %}{{ double(n) }} {% endfor %}")
    >>> asyncio.run(template.render({"numbers": [1, 2, 3]}, call=FunctionCall.caller(kernel)))
    '2 4 6 '

    A name that is no variable is a function of the kernel where it is called: ``{{ Plugin.function("x", count=3) }}``,
    ``{{ Plugin_function(...) }}``, ``{{ function(...) }}``. It is awaited, and its result is data. Printed, a variable
    that is missing is empty.

    Templates run in a sandbox, within the bounds of `Jinja2Settings`: they read data, not the objects, files and
    modules of the application. ``codecs`` are asked how to write values of types that the standard library does not
    know.
    """

    name = "jinja2"

    def __init__(self, *, codecs: Iterable[TypeCodec] = (), settings: Jinja2Settings | None = None) -> None:
        self._environment = PromptEnvironment(settings or Jinja2Settings(), TextForm(codecs))

    def compile(self, source: str, *, name: str = "prompt") -> Jinja2Template:
        """Parse and compile a template; raises ``TemplateError`` with the line, and ``LimitExceeded``."""
        check_source(source, name)
        return Jinja2Template(source, name, self._environment)


class Jinja2Template:
    """A compiled prompt."""

    __slots__ = ("_environment", "_template", "name", "source")

    def __init__(self, source: str, name: str, environment: PromptEnvironment) -> None:
        self.name = name
        self.source = source
        self._environment = environment
        try:
            code = environment.compile(environment.parse(source), filename=f"<{name}>")
            self._template = environment.template_class.from_code(environment, code, dict(environment.globals))
        except PorticoError:
            raise
        except Exception as error:
            raise compile_error(error, source, name) from error

    def __str__(self) -> str:
        return self.source

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables that are written or given to functions, in the order of their first use.

        Those that a condition, a loop or ``default`` is about are not among them: a prompt can do without.
        """
        return self._search(find_variables)

    @property
    def calls(self) -> tuple[FunctionCall, ...] | None:
        """Every call of a function, in the order of writing; None where a partial may call more.

        Not certain are ``x.upper()`` and others that may be a method of a variable or a macro, and calls with ``*`` or
        ``**``, whose arguments are known when they are made.
        """
        return self._search(lambda tree: find_calls(tree, self.source))

    def _search(self, search: Callable[[nodes.Template], Found]) -> Found:
        try:
            return search(self._environment.parse(self.source))
        except RecursionError as error:
            raise LimitExceeded(f"{self.name}: the template is nested too deeply.") from error

    async def render(self, arguments: Mapping[str, object], *, call: CallFunction) -> str:
        """Return the prompt: a `Prompt` where messages may stand in it, else a plain string.

        Its values are what is printed; what is `Trusted`, or called safe by the template, counts as the template's
        own. Raises ``TemplateError`` for a function that is not there, arguments that do not fit and what cannot be
        computed or written, and ``LimitExceeded``; what a function raises comes through unchanged.
        """
        rendering = Rendering(call, self._environment.settings, len(self.source))
        before = RENDERING.set(rendering)
        parts: list[str] = []
        try:
            context = self._template.new_context(arguments)  # type: ignore[arg-type]  # which copies it
            generated = self._template.root_render_func(context)
            async for part in generated:  # type: ignore[attr-defined]
                parts.append(part)  # noqa: PERF401 - an async list comprehension is no faster here
            return self._environment.finish(parts)
        except Exception as error:
            if error is rendering.failure or isinstance(error, PorticoError):
                raise
            raise render_error(error, self._template, self.source, self.name) from error
        finally:
            RENDERING.reset(before)


def factory(settings: Jinja2Settings | None, services: Services) -> Jinja2Templates:
    """Make the language of its settings; opens nothing."""
    codecs = [services.get(TypeCodec, name) for name in services.names(TypeCodec)]
    return Jinja2Templates(codecs=codecs, settings=settings)
