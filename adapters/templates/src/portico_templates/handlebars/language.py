"""Prompts in the Handlebars template language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from portico.errors import ConfigurationError, LimitExceeded
from portico.ports import TypeCodec
from portico_templates.handlebars._expressions import Setup
from portico_templates.handlebars._nodes import Block, Content, Mustache, Partial, Program, walk
from portico_templates.handlebars._output import MARKUP, joined
from portico_templates.handlebars._parsing import parse
from portico_templates.handlebars._running import Body, Data, Limits, Run, Scope, Surroundings, finish
from portico_templates.handlebars._statements import Partials, compile_template
from portico_templates.handlebars._written_names import WrittenNames
from portico_templates.handlebars.config import HandlebarsSettings
from portico_templates.handlebars.helper_options import Helper

if TYPE_CHECKING:
    from portico.plugins import FunctionCall, Services
    from portico.ports import CallFunction

_MOST_FILES = 1_000
_MOST_BYTES = 4_000_000


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
        escape: Literal["none", "html"] = "none",
        codecs: Iterable[TypeCodec] = (),
        semantic_kernel_helpers: bool = True,
        max_steps: int = 1_000_000,
        max_characters: int = 16_000_000,
    ) -> None:
        if escape not in ("none", "html"):
            raise ValueError(f"escape is 'none' or 'html', not {escape!r}")
        self._setup = Setup(
            helpers=helpers or {},
            escape=escape,
            codecs=codecs,
            limits=Limits(max_steps, max_characters),
            semantic_kernel_helpers=semantic_kernel_helpers,
        )
        self._partials = Partials(partials or {}, self._setup)

    def compile(self, source: str, *, name: str = "prompt") -> HandlebarsTemplate:
        """Parse and compile a prompt; raises ``TemplateError`` with line and column, and ``LimitExceeded``."""
        setup, partials = self._setup, self._partials
        try:
            program = parse(source, name=name)
            markup, sets = _features(program, partials, has_helpers=setup.semantic_kernel_helpers)
            body = compile_template(program, source, name, setup, partials, in_order=sets)
            return HandlebarsTemplate(name, source, program, setup, body, markup=markup)
        except RecursionError as error:
            raise LimitExceeded(f"{name}: the template is nested too deeply.") from error


def _features(program: Program, partials: Partials, *, has_helpers: bool) -> tuple[bool, bool]:
    """Tell whether a template may write markup, and whether something may be set in it; both cost time."""
    texts = []
    markup = sets = False
    for statement in walk(program):
        if isinstance(statement, Content):
            texts.append(statement.value)
        elif isinstance(statement, Partial):
            markup = markup or partials.have_markup
            sets = sets or partials.may_set
        elif isinstance(statement, Block):
            markup = markup or (has_helpers and statement.call.path.original == "message")
        elif isinstance(statement, Mustache):
            sets = sets or (has_helpers and statement.call.path.original == "set" and not statement.call.is_bare)
    return markup or MARKUP in "".join(texts), sets


class HandlebarsTemplate:
    """A compiled prompt; it may be rendered many times, also at the same time."""

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

    @cached_property
    def _written(self) -> WrittenNames:
        return WrittenNames(self._program, self._setup, self.source)

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables that are written or given to functions, in the order of their first use.

        Those that a condition or a loop is about are not among them: a prompt can do without.
        """
        return self._written.variables

    @property
    def calls(self) -> tuple[FunctionCall, ...]:
        """Every call of a function, in the order of writing, those in inline partials too.

        A name that stands alone may be a variable or a function: it is a call where it has a ``-``, as only names of
        functions have, and is set nowhere in the template. Partials of the language are not looked into.
        """
        return self._written.calls

    async def render(self, arguments: Mapping[str, object], *, call: CallFunction) -> str:
        """Return the prompt: a `portico.Prompt` where the template may have markup, else a text.

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
                await finish(scope.jobs)
            return joined(parts, setup.limits.characters, self.name, markup=self._markup)
        except RecursionError as error:
            raise LimitExceeded(f"{self.name}: rendering is nested too deeply.") from error
        finally:
            if run.made:
                run.close()


def read_partials(folder: Path) -> dict[str, str]:
    """Read all `*.hbs` and `*.handlebars` files of a folder and of those in it.

    A partial's name is its file's without the ending, ``chat/greeting`` for one in a folder ``chat``. Raises
    ``ConfigurationError`` for a folder or file that cannot be read and for two files of one name, ``LimitExceeded``
    above 1,000 files or 4,000,000 bytes in one.
    """
    if not folder.is_dir():
        raise ConfigurationError(f"There is no folder of partials {folder}.")
    found: dict[str, str] = {}
    files = sorted(file for ending in ("hbs", "handlebars") for file in folder.rglob(f"*.{ending}") if file.is_file())
    if len(files) > _MOST_FILES:
        raise LimitExceeded(f"{folder} has {len(files):,} partials; at most {_MOST_FILES:,} are read.")
    for file in files:
        name = file.relative_to(folder).with_suffix("").as_posix()
        if name in found:
            raise ConfigurationError(f"{folder} has two partials named {name!r}.")
        try:
            if file.stat().st_size > _MOST_BYTES:
                raise LimitExceeded(f"{file} has more than {_MOST_BYTES:,} bytes.")
            found[name] = file.read_text("utf-8")
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
