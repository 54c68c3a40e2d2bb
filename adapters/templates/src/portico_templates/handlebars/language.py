"""Prompts in the Handlebars template language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from portico.errors import ConfigurationError, LimitExceeded
from portico.plugins import FunctionCall
from portico.ports import TypeCodec
from portico_templates.handlebars import _nodes as nodes
from portico_templates.handlebars._expressions import BUILT_IN, Setup, without_undefined
from portico_templates.handlebars._parsing import parse
from portico_templates.handlebars._running import (
    Body,
    Data,
    Limits,
    Run,
    Scope,
    Surroundings,
    join_output,
    perform_jobs,
)
from portico_templates.handlebars._statements import Partials, compile_template
from portico_templates.handlebars.config import HandlebarsSettings
from portico_templates.handlebars.helper_options import Helper
from portico_templates.handlebars.semantic_kernel import BLOCKS
from portico_templates.handlebars.values import Values

if TYPE_CHECKING:
    from portico.plugins import Services
    from portico.ports import CallFunction


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
    to write values of types that the standard library does not know. ``max_steps`` bounds the
    rounds of loops and calls of partials, times the tags in them; ``max_characters`` the prompt.
    """

    name = "handlebars"

    def __init__(
        self,
        *,
        helpers: Mapping[str, Helper] | None = None,
        partials: Mapping[str, str] | None = None,
        escape: str = "none",
        codecs: Iterable[TypeCodec] = (),
        semantic_kernel_helpers: bool = True,
        max_steps: int = 1_000_000,
        max_characters: int = 16_000_000,
    ) -> None:
        if escape not in ("none", "html"):
            raise ValueError(f"escape is 'none' or 'html', not {escape!r}")
        limits = Limits(max_steps, max_characters)
        values = Values(codecs, javascript=escape == "html", limit=max_characters)
        self._setup = Setup(dict(helpers or {}), escape == "html", limits, semantic_kernel_helpers, values)
        self._partials = Partials(partials or {}, self._setup)
        self._has_partials = bool(partials)

    def compile(self, source: str, *, name: str = "prompt") -> HandlebarsTemplate:
        """Parse and compile a prompt; raises ``TemplateError`` with line and column, and ``LimitExceeded``."""
        setup, partials = self._setup, self._partials
        try:
            program = parse(source, name=name)
            body, called = compile_template(program, source, name, setup, partials)
            known = not self._has_partials or not any(isinstance(each, nodes.Partial) for each in nodes.walk(program))
            return HandlebarsTemplate(name, source, program, setup, body, called=called if known else None)
        except RecursionError as error:
            raise LimitExceeded(f"{name}: the template is nested too deeply.") from error


_SAME_CONTEXT = {"if", "unless", *BLOCKS}
_Hidden = frozenset[str]
_Names = dict[str, None]


class _WrittenNames:
    """The names that are written in a template, in the order of their first use.

    ``variables`` are written or given to functions, helpers and partials. Not among them: what a block is about, which
    may be missing; what the template sets; block parameters; a bare name with ``-``, which is a function's.
    """

    def __init__(self, program: nodes.Program, setup: Setup) -> None:
        self._setup = setup
        self._found: _Names = {}
        self.set = {name for statement in nodes.walk(program) if (name := self._set_name(statement))}
        self._optional: _Names = {}
        self._program(program, 0, frozenset())
        self.variables = tuple(name for name in self._found if name not in self.set | self._optional.keys())

    def _set_name(self, statement: nodes.Statement) -> str | None:
        if not isinstance(statement, nodes.Mustache) or statement.call.path.original != "set":
            return None
        call = statement.call
        name = call.params[0] if call.params else call.hash.get("name")
        return name.original if isinstance(name, nodes.Literal) and self._setup.semantic_kernel_helpers else None

    def _program(self, program: nodes.Program | None, level: int | None, hidden: _Hidden) -> None:
        """Look through a program; ``level`` is how many ``../`` lead to the variables, None where it is not known."""
        if program is not None:
            hidden |= frozenset(program.params)
            for statement in program.body:
                self._statement(statement, level, hidden)

    def _statement(self, node: nodes.Statement, level: int | None, hidden: _Hidden) -> None:
        if isinstance(node, nodes.Mustache):
            call = node.call
            if call.is_bare and call.literal is None:
                name = call.path.parts[0] if call.path.is_simple else ""
                if "-" not in name and self._setup.helper_kind(name, is_bare=True) is None:
                    self._variable(call.path, level, hidden, self._found)
            self._values(call.values, level, hidden)
        elif isinstance(node, nodes.Block):
            self._block(node, level, hidden)
        elif isinstance(node, nodes.Partial):
            if isinstance(node.name, nodes.Call):
                self._values(node.name.values, None, hidden)
            self._values(node.call.values, level, hidden)
            self._program(node.program, level, hidden)
        elif isinstance(node, nodes.Decorator):
            self._values(node.call.params, None, hidden)
            self._program(node.program, None, hidden)

    def _block(self, node: nodes.Block, level: int | None, hidden: _Hidden) -> None:
        name = node.call.path.original
        if node.call.is_bare:
            self._variable(node.call.path, level, hidden, self._optional)
        self._values(node.call.values, level, hidden, self._optional if name in BUILT_IN else None)
        inner = level if level is None or name in _SAME_CONTEXT else level + 1
        self._program(node.program, inner, hidden)
        self._program(node.inverse, level, hidden)

    def _values(
        self, values: Iterable[nodes.Expression], level: int | None, hidden: _Hidden, found: _Names | None = None
    ) -> None:
        for value in values:
            if isinstance(value, nodes.Call):
                self._values(value.values, level, hidden)
            elif isinstance(value, nodes.Path):
                self._variable(value, level, hidden, self._found if found is None else found)

    def _variable(self, path: nodes.Path, level: int | None, hidden: _Hidden, found: _Names) -> None:
        """Note the variable that a path begins with, if it does."""
        if path.data:
            if path.parts[:1] == ("root",) and len(path.parts) > 1:
                found[path.parts[1]] = None
        elif path.parts and level is not None and path.depth == level and (path.depth or path.parts[0] not in hidden):
            found[path.parts[0]] = None


class HandlebarsTemplate:
    """A compiled prompt; it may be rendered many times, also at the same time."""

    def __init__(
        self,
        name: str,
        source: str,
        program: nodes.Program,
        setup: Setup,
        body: Body,
        *,
        called: list[tuple[nodes.Call, str | None]] | None,
    ) -> None:
        self.name = name
        self.source = source
        self._program = program
        self._setup = setup
        self._body = body
        self._called = called

    def __str__(self) -> str:
        return self.source

    @cached_property
    def _written(self) -> _WrittenNames:
        return _WrittenNames(self._program, self._setup)

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables that are written or given to functions, in the order of their first use.

        Those that a condition or a loop is about are not among them: a prompt can do without.
        """
        return self._written.variables

    @property
    def calls(self) -> tuple[FunctionCall, ...] | None:
        """Every call of a function, in the order of writing; None where a partial of the language may call more.

        A name that stands alone may be a variable or a function: it is certainly a call where it has a ``-``, as only
        names of functions have, and is set nowhere in the template.
        """
        if self._called is None:
            return None
        found = []
        for call, variable in sorted(self._called, key=lambda each: each[0].path.at):
            path, named = call.path, without_undefined(call.hash)
            is_function = path.is_simple and "-" in path.parts[0] and path.parts[0] not in self._written.set
            certain = variable is None or (is_function and call.literal is None)
            written = FunctionCall.at(self.source, path.at, path.original, positional=len(call.params), named=named)
            found.append(replace(written, certain=certain, variable=variable or ""))
        return tuple(dict.fromkeys(found))

    async def render(self, arguments: Mapping[str, object], *, call: CallFunction) -> str:
        """Return the prompt: a `portico.Prompt` where a message opens in it, else a text.

        Raises ``TemplateError`` for a function or helper that is not there, arguments that do not fit and a value
        that has no text, and ``LimitExceeded``; what a function raises comes through unchanged. One without calls
        renders without suspending. Calls run at the same time, but not across a `set`; the first that fails stops
        the others.
        """
        root: Any = arguments
        if self._body.in_order or type(root) is not dict:
            root = dict(arguments)
        return await self.render_context(root, call=call)

    async def render_context(
        self, context: Any, *, call: CallFunction, data: Mapping[str, object] | None = None
    ) -> str:
        """Render in a context of any kind; ``data`` are values for names that begin with ``@``."""
        setup, body = self._setup, self._body
        run = Run(call, context, setup.limits, self.name)
        around = Data({"root": context} if data is None else {"root": context, **data})
        scope = Scope(context, None, around, None, Surroundings({}), run, [])
        parts: list[Any] = []
        try:
            run.count(body.cost)
            if body.in_order:
                await body.enter_in_order(scope, parts.append)
            else:
                body.run(scope, parts.append)
            if scope.jobs:
                await perform_jobs(scope.jobs)
            return join_output(parts, setup.limits.characters, self.name)
        except RecursionError as error:
            raise LimitExceeded(f"{self.name}: rendering is nested too deeply.") from error
        finally:
            if run.made:
                run.close()


def read_partials(folder: Path) -> dict[str, str]:
    """Read all `*.hbs` files of a folder and of those in it.

    A partial's name is its file's without the ending, ``chat/greeting`` for one in a folder ``chat``. Raises
    ``ConfigurationError`` for a folder or file that cannot be read.
    """
    if not folder.is_dir():
        raise ConfigurationError(f"There is no folder of partials {folder}.")
    found: dict[str, str] = {}
    for file in sorted(folder.rglob("*.hbs")):
        try:
            found[file.relative_to(folder).with_suffix("").as_posix()] = file.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"The partial {file} cannot be read: {error}") from error
    return found


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
    )
