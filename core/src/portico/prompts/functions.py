"""Prompts as functions: rendered and asked when they are called, by code, a template, a plan or a model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack, cast

from portico.errors import ArgumentsInvalid, TemplateError, nearest
from portico.functions import Function, Parameter
from portico.ports.template_language import Template
from portico.prompts.inputs import compiled_input, parameter_of
from portico.prompts.nesting import nested
from portico.prompts.prompt import Prompt
from portico.prompts.rendering import OWN_LANGUAGE
from portico.prompts.semantic_kernel import SemanticKernelTemplates
from portico.turns.values import TurnOptions

if TYPE_CHECKING:
    from portico.chat import Message
    from portico.kernel import Kernel
    from portico.ports.schema_validator import SchemaValidator
    from portico.ports.type_codec import TypeCodec

__all__ = ["prompt_function"]

_SAYING_NOTHING = {"type", "title", "description"}


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
    >>> headline.manual.parameters["required"], headline.manual.parameters["properties"]["words"]
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
    for option in options:
        if option not in TurnOptions.__annotations__:
            near = nearest(option, list(TurnOptions.__annotations__))
            raise TypeError(f"{option!r} is not an option of a turn" + (f"; {near[0]!r} is" if near else ""))
    if isinstance(trusted, str):
        raise TypeError(f"trusted= takes several names: write trusted=({trusted!r},)")
    if inputs is not None and not isinstance(inputs, Mapping):
        raise TypeError("inputs= is a mapping, of names to types")
    codecs = tuple(codecs)
    full_name = f"{plugin}-{name}" if plugin else name
    given = {key: parameter_of(key, value, codecs, validator) for key, value in (inputs or {}).items()}
    parameters = _with_variables(given, _variables(prompt, language, full_name))
    known = {parameter.name.casefold() for parameter in parameters}
    for word in trusted:
        if known and word.casefold() not in known:
            raise ValueError(
                f"{full_name} has no input {word!r} to trust; it has {', '.join(p.name for p in parameters)}"
            )
    returned = compiled_input(str if returns is None else returns, codecs, validator)
    asking = _Asking(
        full_name,
        prompt,
        language,
        parameters,
        None if returned.schema.get("type") == "string" and set(returned.schema) <= _SAYING_NOTHING else returns,
        frozenset(trusted),
        cast("TurnOptions", {key: value for key, value in options.items() if value is not None}),
    )
    return Function(
        name,
        asking.unbound,
        plugin=plugin,
        description=description,
        parameters=parameters,
        returns=returned,
        effects=effects,
        tags=frozenset(tags),
        bind=asking.bind,
    )


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

    def bind(self, kernel: Kernel) -> Callable[..., Coroutine[Any, Any, Any]]:
        """Return what is called in a kernel, the prompt compiled."""
        template = kernel.template(self.prompt, language=self.language, name=self.name)

        async def ask(**arguments: Any) -> Any:
            values = self.values(arguments)
            with nested(self.name):
                prompt = await kernel.render_prompt(template, values, name=self.name, trusted=self.trusted)
                messages = self.messages(prompt) if isinstance(prompt, Prompt) else prompt
                return (await kernel.complete(messages, returns=self.returns, **self.options)).value

        return ask

    def messages(self, prompt: Prompt) -> tuple[Message, ...]:
        """Read the messages; what is wrong with them is told with the function's name."""
        try:
            return prompt.messages()
        except TemplateError as error:
            raise TemplateError(f"{self.name}, {error}", line=error.line, column=error.column) from error

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


def _variables(prompt: str | Template, language: str | None, name: str) -> tuple[str, ...]:
    """Return the names of a template's variables, where its language tells them."""
    if isinstance(prompt, Prompt):
        raise TypeError("this prompt is rendered already: give the template")
    if not isinstance(prompt, str):
        if language is not None:
            raise TypeError(f"the prompt is compiled already: language={language!r} can only be said of a text")
        if not hasattr(prompt, "render"):
            raise TypeError(f"a prompt is a text or a compiled template, not {prompt!r}")
        return tuple(getattr(prompt, "variables", ()))
    if language in (None, OWN_LANGUAGE):
        return SemanticKernelTemplates().compile(prompt, name=name).variables
    return ()


def _with_variables(given: Mapping[str, Parameter], variables: Iterable[str]) -> tuple[Parameter, ...]:
    """Add a parameter for each variable that has none; another case of a name is the same variable.

    Those that must be given come first, as in Python: a call by place means them.
    """
    known = {name.casefold() for name in given}
    text = compiled_input(str)
    added = {name.casefold(): Parameter(name, "", text, True) for name in variables if name.casefold() not in known}
    return tuple(sorted((*given.values(), *added.values()), key=lambda parameter: not parameter.required))
