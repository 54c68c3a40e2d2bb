"""Prompts as functions, and their inputs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, Unpack, cast

from portico._flows.labels import FunctionLabels
from portico._functions.functions import Function, Parameter
from portico._prompts.prompt import Prompt
from portico._prompts.rendering import OWN_LANGUAGE
from portico._prompts.semantic_kernel import SemanticKernelTemplates
from portico._schema.validate import PlainSchemaValidator
from portico._tool_loop.values import TurnOptions, require_known
from portico._types.compiled import Compiled, Fault, Mismatch
from portico._types.compiling import compile_type, copy_json
from portico.errors import ArgumentsInvalid, LimitExceeded, SchemaUnsupported

if TYPE_CHECKING:
    from portico._kernel_like import KernelLike
    from portico._ports.schema_validator import SchemaValidator
    from portico._ports.template_language import Template
    from portico._ports.type_codec import TypeCodec


_DEEPEST = 16
_MOST = 1_000


_INSIDE: ContextVar[tuple[tuple[str, ...], Iterator[int]] | None] = ContextVar("portico_prompt_functions", default=None)
"""The prompt functions around, and what counts the calls inside the outermost one."""


@contextmanager
def enter_function(name: str, *, kind: str = "Prompt functions") -> Iterator[None]:
    """Go into a prompt function, from a template, a model's call or code, in this task or in one that it started.

    Plans that are functions count with them: each may call the other. ``kind`` is how an error speaks of them.

    Raises ``LimitExceeded`` more than 16 deep, and for more than 1,000 calls inside of one: two calls of itself in a
    template would be a million after 20 levels.
    """
    names, calls = _INSIDE.get() or ((), count(1))
    number = next(calls)
    if len(names) >= _DEEPEST:
        chain = " > ".join([*names[-2:], name])
        raise LimitExceeded(f"{kind} call each other at most {_DEEPEST} deep, and here it is … > {chain}.")
    if number > _MOST:
        raise LimitExceeded(
            f"{names[0]}: {kind[0].lower()}{kind[1:]} are called at most {_MOST:,} times inside of one; "
            f"the last was {name}."
        )
    token = _INSIDE.set(((*names, name), calls))
    try:
        yield
    finally:
        _INSIDE.reset(token)


class _Required:
    def __repr__(self) -> str:
        return "required"


_KINDS: Mapping[object, type] = {"string": str, "integer": int, "number": float, "boolean": bool}
_SAYING_NOTHING = {"type", "title", "description", "default", "examples"}
_NOTES = ("title", "description", "examples")
_NAME = re.compile(r"[0-9A-Za-z_]+")


@dataclass(frozen=True, slots=True)
class PromptInput:
    """One input of a prompt function.

    >>> PromptInput(int, "how many words", default=100)
    PromptInput(type=<class 'int'>, description='how many words', default=100)

    ``type`` is a type or a JSON Schema. The default is a value as code gives it.
    """

    REQUIRED: ClassVar[object] = _Required()
    """The default of an input that must be given."""

    type: object = str
    description: str = ""
    default: object = REQUIRED

    @staticmethod
    def compile(given: object, codecs: Iterable[TypeCodec] = (), validator: SchemaValidator | None = None) -> Compiled:
        """Compile a type or a JSON Schema, whose values are plain JSON. Raises ``SchemaUnsupported``."""
        if not isinstance(given, Mapping):
            return compile_type(given, codecs)
        kind = given.get("type")
        simple = _KINDS.get(kind) if isinstance(kind, str) else None
        if simple is not None and set(given) <= _SAYING_NOTHING:
            compiled = compile_type(simple)
            return replace(compiled, schema={**compiled.schema, **{key: given[key] for key in _NOTES if key in given}})
        schema = {key: value for key, value in given.items() if key != "default"}
        try:
            validate = (validator or PlainSchemaValidator()).compile(schema)
        except SchemaUnsupported as error:
            advice = "" if validator else " A kernel that has it gives it as validator=kernel.schema_validator."
            raise SchemaUnsupported(f"{error}{advice}") from error

        def structure(value: Any) -> Any:
            faults = validate(value)
            if faults:
                raise Mismatch([_Sentence((), sentence, "") for sentence in faults])
            return copy_json(value)

        return Compiled(schema, structure, copy_json)

    @staticmethod
    def parameter(
        name: str, given: object, codecs: Iterable[TypeCodec] = (), validator: SchemaValidator | None = None
    ) -> Parameter:
        """Return the parameter of an input: a type, a JSON Schema, what a text is for, or a `PromptInput`.

        Raises ``SchemaUnsupported``, and ``ValueError`` for a name that no template could write.
        """
        if not _NAME.fullmatch(name):
            raise ValueError(f"the name of an input has letters, digits and '_' only, not {name!r}")
        match given:
            case PromptInput():
                told = given
            case str():
                told = PromptInput(description=given)
            case _:
                told = PromptInput(given)
        compiled = PromptInput.compile(told.type, codecs, validator)
        default = told.default
        if isinstance(told.type, Mapping) and default is PromptInput.REQUIRED:
            default = told.type.get("default", PromptInput.REQUIRED)
        description = told.description or str(compiled.schema.get("description", ""))
        required = default is PromptInput.REQUIRED
        return Parameter(name, description, compiled, required, None if required else default)


@dataclass(frozen=True, slots=True)
class _Sentence(Fault):
    """A fault in the words of a validator, which name its place."""

    def __str__(self) -> str:
        return self.expected if self.expected[:1] == "$" else f"$: {self.expected}"


_WITHOUT_LIMITS = {"type", "title", "description"}


def prompt_function(
    name: str,
    prompt: str | Template,
    *,
    plugin: str | None = None,
    description: str = "",
    inputs: Mapping[str, object] | None = None,
    returns: object = None,
    language: str | None = None,
    trusted: Collection[str] = (),
    effects: bool = False,
    tags: Iterable[str] = (),
    codecs: Iterable[TypeCodec] = (),
    validator: SchemaValidator | None = None,
    **options: Unpack[TurnOptions],
) -> Function:
    """Make a function of a prompt: calling it renders the prompt, asks, and gives the answer.

    >>> from portico import Kernel, PromptInput
    >>> kernel = Kernel()
    >>> headline = kernel.add_function(prompt_function("headline", "A headline, in {{$words}} words: {{$text}}",
    ...     description="Find a headline.", inputs={"words": PromptInput(int, default=5)}))
    >>> headline.spec.parameters["required"], headline.spec.parameters["properties"]["words"]
    (['text'], {'type': 'integer', 'default': 5})

    It is called through the kernel that it was added to, and may be added to several. ``inputs`` are its parameters,
    by name: a type, a JSON Schema whose ``default`` makes it optional, a sentence on what a text is for, or a
    `PromptInput`. Variables of the template that are not among them are texts that must be given, as far as the
    language tells its variables.

    ``returns`` is the type of the answer or a JSON Schema; without it the answer is text. ``trusted`` are the inputs
    whose markup counts; do not offer such a function to a model, which could then write messages of any role.
    ``language`` is the template language of a prompt that is text. ``codecs`` and ``validator`` are for types and
    schemas that core does not know: those of the kernel. ``options`` are those of `Kernel.complete`.

    Prompt functions may call each other, 16 deep and 1,000 times inside of one: beyond that is ``LimitExceeded``.

    Raises ``TemplateError``, ``SchemaUnsupported``, and ``TypeError`` or ``ValueError`` for what makes no function.
    A text in another language is compiled when the function enters a kernel: its variables are named in ``inputs``.
    """
    known_options = TurnOptions.__annotations__.keys() - {"auto_invoke"}  # a function returns a value, not calls
    asked = require_known(options, known_options, "an option of a prompt function")
    if isinstance(trusted, str):
        raise TypeError(f"trusted= takes several names: write trusted=({trusted!r},)")
    codecs = tuple(codecs)
    full_name = f"{plugin}-{name}" if plugin else name
    given = {key: PromptInput.parameter(key, value, codecs, validator) for key, value in (inputs or {}).items()}
    template = _known_template(prompt, language, full_name)
    parameters = _with_variables(given, getattr(template, "variables", ()))
    known = {parameter.name.casefold() for parameter in parameters}
    for word in trusted:
        if known and word.casefold() not in known:
            raise ValueError(
                f"{full_name} has no input {word!r} to trust; it has {', '.join(p.name for p in parameters)}"
            )
    returned = PromptInput.compile(str if returns is None else returns, codecs, validator)
    asking = _Asking(
        full_name,
        prompt,
        language,
        parameters,
        None if returned.schema.get("type") == "string" and set(returned.schema) <= _WITHOUT_LIMITS else returns,
        frozenset(trusted),
        cast("TurnOptions", asked),
    )

    def bind(kernel: KernelLike) -> Function:
        bound, found = asking.bind(kernel), copy(made)
        # Which functions the template calls is known in a kernel that has its language.
        found.callable, found.labels = bound.ask, _labels(bound.template, parameters, asked)
        return found

    function = Function(
        name,
        asking.unbound,
        plugin=plugin,
        description=description,
        parameters=parameters,
        returns=returned,
        effects=effects,
        tags=frozenset(tags),
        labels=_labels(template, parameters, asked),
        bind=bind,
    )
    made = copy(function)  # Without a manual.
    return function


def _labels(
    template: Template | None, parameters: Iterable[Parameter], asked: Mapping[str, Any]
) -> FunctionLabels | None:
    """Return the labels of a prompt function.

    Where the model reads nothing but the arguments, its reply is as trusted as they are. Where it may call functions,
    what is filled into the prompt may decide what it calls.
    """
    if asked.get("functions") or asked.get("tool_choice"):
        return FunctionLabels(reaches_out=True)
    names, calls = {each.name for each in parameters}, getattr(template, "calls", None)
    if calls is None or not all(call.variable in names for call in calls):
        return None
    return FunctionLabels.read("as given")


@dataclass(frozen=True, slots=True)
class _Asking:
    """What a prompt function does, in any kernel."""

    name: str
    prompt: str | Template
    language: str | None
    parameters: tuple[Parameter, ...]
    returns: object
    trusted: frozenset[str]
    options: TurnOptions

    async def unbound(self, **arguments: Any) -> Any:
        raise RuntimeError(
            f"the prompt function {self.name} is in no kernel: call what Kernel.add_function or add_plugin returned"
        )

    def bind(self, kernel: KernelLike) -> _Bound:
        """Return what is called in a kernel, the prompt compiled."""
        return _Bound(self, kernel, kernel.template(self.prompt, language=self.language, name=self.name))

    def values(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments with the defaults of those left out."""
        values: dict[str, Any] = {}
        faults = []
        for parameter in self.parameters:
            if parameter.name in arguments:
                values[parameter.name] = arguments[parameter.name]
            elif parameter.required:
                faults.append(f"{parameter.name}: missing")
            else:
                values[parameter.name] = parameter.default
        known = ", ".join(parameter.name for parameter in self.parameters) or "none"
        faults += [f"{name}: unknown; the parameters are {known}" for name in arguments if name not in values]
        if faults:
            raise ArgumentsInvalid(self.name, faults)
        return values


@dataclass(frozen=True, slots=True)
class _Bound:
    """A prompt function in a kernel, its prompt compiled."""

    asking: _Asking
    kernel: KernelLike
    template: Template

    async def ask(self, **arguments: Any) -> Any:
        asking, kernel = self.asking, self.kernel
        values = asking.values(arguments)
        with enter_function(asking.name):
            prompt = await kernel.render_prompt(self.template, values, name=asking.name, trusted=asking.trusted)
            messages = prompt.messages(asking.name) if isinstance(prompt, Prompt) else prompt
            return (await kernel.complete(messages, returns=asking.returns, **asking.options)).value


def template_of(function: Function) -> Template | None:
    """Return the template of the prompt that a function of a kernel asks; None for any other function."""
    owner = getattr(function.callable, "__self__", None)
    return owner.template if isinstance(owner, _Bound) else None


def _known_template(prompt: str | Template, language: str | None, name: str) -> Template | None:
    """Return the template of a prompt; None for a text whose language is a kernel's."""
    if isinstance(prompt, Prompt):
        raise TypeError("this prompt is rendered already: give the template")
    if not isinstance(prompt, str):
        if language is not None:
            raise TypeError(f"the prompt is compiled already: language={language!r} can only be said of a text")
        if not hasattr(prompt, "render"):
            raise TypeError(f"a prompt is a text or a compiled template, not {prompt!r}")
        return prompt
    if language in (None, OWN_LANGUAGE):
        return SemanticKernelTemplates().compile(prompt, name=name)
    return None


def _with_variables(given: Mapping[str, Parameter], variables: Iterable[str]) -> tuple[Parameter, ...]:
    """Add a parameter for each variable that has none; another case of a given name is the same variable.

    Those that must be given come first, as in Python: a call by place means them.
    """
    known = {name.casefold() for name in given}
    text = PromptInput.compile(str)
    added = [Parameter(name, "", text, True) for name in variables if name.casefold() not in known]
    return tuple(sorted((*given.values(), *added), key=lambda parameter: not parameter.required))
