"""Prompts in the Handlebars template language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial as bound
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal

from portico.errors import LimitExceeded
from portico.ports import TypeCodec
from portico_templates.handlebars._bodies import Body
from portico_templates.handlebars._nodes import Block, Content, Mustache, Partial, Program, Statement, inner_programs
from portico_templates.handlebars._parsing import parse
from portico_templates.handlebars._running import Data, Limits, Run, Scope, Surroundings, drive, perform
from portico_templates.handlebars._setup import Setup
from portico_templates.handlebars._statements import compile_body
from portico_templates.handlebars._unit import Unit
from portico_templates.handlebars._variables import variables_of
from portico_templates.handlebars._writing import joined
from portico_templates.handlebars._written_calls import calls_of
from portico_templates.handlebars.config import HandlebarsSettings
from portico_templates.handlebars.helper_options import Helper
from portico_templates.handlebars.partial_files import read_partials

if TYPE_CHECKING:
    from portico.plugins import FunctionCall, Services
    from portico.ports import CallFunction


_MARKUP = "<message"


class HandlebarsTemplates:
    """Compiles prompts in Handlebars, with the functions of a kernel as helpers.

    >>> import asyncio
    >>> from portico import Kernel
    >>> from portico.plugins import FunctionCall
    >>> language = HandlebarsTemplates(helpers={"shout": lambda options, text: text.upper()})
    >>> template = language.compile("{{#each names}}{{shout this}}{{#unless @last}}, {{/unless}}{{/each}}")
    >>> asyncio.run(template.render({"names": ["Ada", "Grace"]}, call=FunctionCall.caller(Kernel())))
    'ADA, GRACE'

    ``helpers`` are the application's own, ``partials`` templates by name. With ``escape="html"`` values are escaped
    and written as handlebars.js does; without, they are written as in every prompt language. ``codecs`` are asked how
    to read and write values of types that neither the standard library nor attrs knows. ``max_steps`` bounds the
    rounds of loops and calls of partials, times the tags in them; ``max_characters`` the prompt; ``max_partial_depth``
    how deep partials call each other.
    """

    name = "handlebars"

    def __init__(
        self,
        *,
        helpers: Mapping[str, Helper] | None = None,
        partials: Mapping[str, str] | None = None,
        escape: Literal["none", "html"] = "none",
        codecs: Iterable[TypeCodec] = (),
        semantic_kernel_helpers: bool = True,
        max_steps: int = 1_000_000,
        max_characters: int = 16_000_000,
        max_partial_depth: int = 64,
    ) -> None:
        if escape not in ("none", "html"):
            raise ValueError(f"escape is 'none' or 'html', not {escape!r}")
        limits = Limits(steps=max_steps, characters=max_characters, partials=max_partial_depth)
        self._setup = Setup(
            helpers=helpers or {},
            partials=partials or {},
            escape=escape,
            codecs=codecs,
            limits=limits,
            semantic_kernel_helpers=semantic_kernel_helpers,
        )
        self._compiling = RLock()
        self._compiled: dict[str, Body | None] = {}
        self._setup.partial = self._partial
        texts = list(self._setup.partials.values())
        self._setup.partials_have_markup = any("message" in text.lower() for text in texts)
        self._setup.partials_may_set = semantic_kernel_helpers and any("set" in text for text in texts)

    def compile(self, source: str, *, name: str = "prompt") -> HandlebarsTemplate:
        """Parse and compile a prompt; raises ``TemplateError`` with line and column, and ``LimitExceeded``."""
        try:
            program = self._parsed(source, name)
            setup = self._setup
            found = _Features(program, has_helpers=setup.semantic_kernel_helpers)
            markup = found.markup or (found.partials and setup.partials_have_markup)
            may_set = found.sets or (found.partials and setup.partials_may_set)

            body = compile_body(Unit(source, name, setup, may_set=may_set), program)
            return HandlebarsTemplate(name, source, program, setup, body, markup=markup)
        except RecursionError as error:
            raise LimitExceeded(f"{name}: the template is nested too deeply.") from error

    def _parsed(self, source: str, name: str) -> Program:
        return parse(source, name=name)

    def _partial(self, name: str) -> Body | None:
        """Return a partial of the language, compiled at its first use."""
        body = self._compiled.get(name)
        source = self._setup.partials.get(name)
        if body is not None or source is None:
            return body
        with self._compiling:
            # One that calls itself is asked for again while it is compiled.
            if name not in self._compiled:
                self._compiled[name] = None
                title = f"partial {name!r}"
                try:
                    unit = Unit(source, title, self._setup, may_set=self._setup.partials_may_set)
                    self._compiled[name] = compile_body(unit, self._parsed(source, title))
                except BaseException:
                    del self._compiled[name]
                    raise
            return self._compiled[name]


class _Features:
    """What a template has that is costly for those that have it not."""

    def __init__(self, program: Program, *, has_helpers: bool) -> None:
        self.markup = False
        self.partials = False
        self.sets = False
        texts = []
        for statement in _statements(program):
            if isinstance(statement, Content):
                texts.append(statement.value)
            elif isinstance(statement, Partial):
                self.partials = True
            elif isinstance(statement, Mustache | Block) and has_helpers:
                name = statement.path.original
                self.markup = self.markup or (name == "message" and isinstance(statement, Block))
                self.sets = self.sets or (name == "set" and bool(statement.params or statement.hash))
        self.markup = self.markup or _MARKUP in "".join(texts)


def _statements(program: Program) -> Iterator[Statement]:
    for statement in program.body:
        yield statement
        for inner in inner_programs(statement):
            yield from _statements(inner)


class HandlebarsTemplate:
    """A compiled prompt; it may be rendered many times, also at the same time."""

    __slots__ = ("_body", "_markup", "_program", "_setup", "name", "source")

    def __init__(self, name: str, source: str, program: Program, setup: Setup, body: Body, *, markup: bool) -> None:
        self.name = name
        self.source = source
        self._program = program
        self._setup = setup
        self._markup = markup
        self._body = body

    def __str__(self) -> str:
        return self.source

    def __repr__(self) -> str:
        return f"HandlebarsTemplate({self.source!r})"

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables that are written or given to functions, in the order of their first use.

        Those that a condition or a loop is about are not among them: a prompt can do without.
        """
        return variables_of(self._program, self._setup)

    @property
    def calls(self) -> tuple[FunctionCall, ...]:
        """Every call of a function, in the order of writing, those in inline partials too.

        A name that stands alone may be a variable or a function: it is a call where it has a ``-``, as only names of
        functions have, and is set nowhere in the template. Partials of the language are not looked into.
        """
        return calls_of(self._program, self._setup, self.source)

    async def render(self, arguments: Mapping[str, object], *, call: CallFunction) -> str:
        """Return the prompt: a `portico.Prompt` where the template may have markup, else a text.

        Raises ``TemplateError`` for a function or helper that is not there, arguments that do not fit and a value
        that has no text, and ``LimitExceeded``; what a function raises comes through unchanged. One without calls
        renders without suspending. Calls run at the same time, but not across a `set`; the first that fails stops
        the others.
        """
        root: Any = arguments
        if self._body.may_set or type(root) is not dict:
            root = dict(arguments)
        return await self.render_context(root, call=call)

    async def render_context(
        self, context: Any, *, call: CallFunction, data: Mapping[str, object] | None = None
    ) -> str:
        """Render in a context of any kind; ``data`` are values for names that begin with ``@``."""
        setup = self._setup
        run = Run(call, context, setup.limits, self.name)
        body = self._body
        values = {"root": context} if data is None else {"root": context, **data}
        scope = Scope(context, None, Data(values), None, _NOTHING_AROUND, run)
        parts: list[Any] = []
        try:
            run.count(body.cost)
            if body.may_set:
                await drive(run, bound(body.enter, scope, parts.append))
            else:
                body.run(scope, parts.append)
                if run.jobs:
                    await perform(run.jobs)
            return joined(parts, setup.limits.characters, self.name, markup=self._markup)
        except RecursionError as error:
            raise LimitExceeded(f"{self.name}: rendering is nested too deeply.") from error
        finally:
            if run.made:
                run.close()


_NOTHING_AROUND = Surroundings({})


def factory(settings: HandlebarsSettings, services: Services) -> HandlebarsTemplates:
    """Make the language from its settings; reads the folder of partials. Raises ``ConfigurationError``."""
    partials = dict(settings.partials)
    if settings.folder is not None:
        partials = {**read_partials(settings.folder), **partials}
    codecs = [services.get(TypeCodec, name) for name in services.names(TypeCodec)]
    return HandlebarsTemplates(
        partials=partials,
        escape=settings.escape,
        codecs=codecs,
        max_steps=settings.max_steps,
        max_characters=settings.max_characters,
        max_partial_depth=settings.max_partial_depth,
    )
