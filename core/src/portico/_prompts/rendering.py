"""Compiles and renders prompts with the functions of a kernel."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from portico._chat.messages import FOR_SOME
from portico._flows.labels import shade_of
from portico._functions.middleware import PromptRender, run_middleware
from portico._ports.template_language import Template, TemplateLanguage
from portico._prompts.calling import FunctionCall
from portico._prompts.prompt import Prompt, Trusted, encode_prompt
from portico._prompts.semantic_kernel import SemanticKernelTemplates
from portico._tool_loop.values import TurnOptions
from portico.errors import PluginNotInstalled

if TYPE_CHECKING:
    from portico._flows.policy import Policy
    from portico._functions.functions import Function
    from portico._kernel_like import KernelLike


_LONGEST_KEPT = 65_536
_MOST_KEPT = 256


OWN_LANGUAGE = SemanticKernelTemplates.name
"""The language of prompts that name none; it is always there."""


class PromptOptions(TurnOptions, total=False):
    """What can be given by name to `Kernel.invoke_prompt`: the options of a turn, and how to render.

    ``language`` is the name of the template language of a prompt that is text. ``trusted`` are the names of arguments
    whose text the application vouches for: their markup counts as the template's own.
    """

    language: str
    trusted: Collection[str]


class Prompts:
    """The prompts of one kernel: each is compiled once, and the 256 used last are kept.

    >>> from portico import Kernel
    >>> prompts = Prompts(Kernel())
    >>> prompts.template("Hello {{$name}}!") is prompts.template("Hello {{$name}}!", language="semantic-kernel")
    True
    """

    def __init__(self, kernel: KernelLike) -> None:
        self._kernel = kernel
        self._compile_once = lru_cache(_MOST_KEPT)(self._compile)

    def template(self, prompt: str | Template, *, language: str | None = None, name: str = "prompt") -> Template:
        """Return the template of a text in a language, compiled once; a template is one already.

        Raises ``PluginNotInstalled`` for a language that is not there, and what the language does.
        """
        if not isinstance(prompt, str):
            if language is not None:
                raise TypeError(f"the prompt is compiled already: language={language!r} can only be said of a text")
            return prompt
        if isinstance(prompt, Prompt):
            raise TypeError("this prompt is rendered already, and a value in it would be run: ask with Kernel.complete")
        language = language or OWN_LANGUAGE
        if len(prompt) > _LONGEST_KEPT:  # It has a document in it, and does not come again.
            return self._compile(language, prompt, name)
        return self._compile_once(language, prompt, name)

    def _compile(self, language: str, prompt: str, name: str) -> Template:
        return self.language(language).compile(prompt, name=name)

    def language(self, name: str) -> TemplateLanguage:
        """Return the language of a name: one that the kernel was given, core's own, or one of its services."""
        kernel = self._kernel
        if name in kernel.template_languages:
            return kernel.template_languages[name]
        if name == OWN_LANGUAGE:
            return SemanticKernelTemplates(kernel.type_codecs)
        known = [*dict.fromkeys([OWN_LANGUAGE, *kernel.template_languages])]
        if kernel.services is None:
            raise PluginNotInstalled(
                f"This kernel has no template language {name!r}. It has {', '.join(known)}. Others are given to "
                "Kernel(template_languages=[…]), or installed, as with `pip install portico-templates`, and used in a "
                "kernel of portico_host.open()."
            )
        try:
            return kernel.services.get(TemplateLanguage, name)
        except PluginNotInstalled as error:
            raise PluginNotInstalled(f"{error} Always there: {', '.join(known)}.") from error

    async def render(
        self,
        prompt: str | Template,
        arguments: Mapping[str, Any] | None,
        *,
        name: str = "prompt",
        language: str | None = None,
        trusted: Collection[str] = (),
    ) -> str:
        """Render inside the kernel's middleware; see `Kernel.render_prompt`."""
        template = self.template(prompt, language=language, name=name)
        if isinstance(trusted, str):
            raise TypeError(f"trusted= takes several names: write trusted=({trusted!r},)")
        kernel = self._kernel
        context = PromptRender(name, dict(arguments or {}))
        read = _Read(kernel.policy) if kernel.policy is not None and kernel.policy.mode == "enforce" else None

        async def final() -> str:
            values = trust(context.arguments, trusted) if trusted else context.arguments
            if read is None:
                return await template.render(values, call=FunctionCall.caller(kernel, values))
            read.take_values(context.arguments)
            return await template.render(values, call=FunctionCall.caller(kernel, values, called=read.take_function))

        if not kernel.middleware.prompt:
            text = await final()
            return text if read is None else read.label(text)
        text = await run_middleware(kernel.middleware.prompt, context, final)
        if not isinstance(text, str):
            raise TypeError(f"a prompt middleware returned {text!r}; it must return a text, as proceed() does")
        return text if read is None else read.label(text)


class _Read:
    """The untrusted places that have a part in a prompt: functions that it calls, and prompts that are filled in."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.untrusted: set[str] = set()

    def take_function(self, function: Function) -> None:
        label = shade_of(self.policy.labels(function.spec), function.full_name, {})((), True)
        self.untrusted |= label.untrusted | ({function.full_name + FOR_SOME} if label.private else set())

    def take_values(self, values: Mapping[str, Any]) -> None:
        waiting: list[Any] = [values]
        entered: dict[int, Any] = {}
        while waiting:
            value = waiting.pop()
            if isinstance(value, Prompt):
                self.untrusted.update(value.untrusted or ())
            elif isinstance(value, Mapping | list | tuple | set | frozenset) and id(value) not in entered:
                entered[id(value)] = value
                waiting += [*value, *value.values()] if isinstance(value, Mapping) else value

    def label(self, text: str) -> str:
        """Return the rendered text as a prompt whose messages say what had a part in them."""
        if isinstance(text, Prompt):
            return Prompt(text.pieces, tuple(sorted({*self.untrusted, *(text.untrusted or ())})))
        return Prompt([(text, True)], tuple(sorted(self.untrusted))) if self.untrusted else text


def trust(arguments: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return the arguments with the texts of those that are named as `Trusted`, inside lists and mappings too.

    >>> trust({"a": "<b>", "history": ["x"], "n": 1}, {"history", "n"})["history"][0].__class__.__name__
    'Trusted'

    A `Prompt` keeps its values as data. Names count without regard to case, as they do in a template.
    """
    folded = {name.casefold() for name in names}
    return {key: _trust_value(value) if key.casefold() in folded else value for key, value in arguments.items()}


def _trust_value(value: Any) -> Any:
    if isinstance(value, Prompt):
        return encode_prompt(value)
    if type(value) is str:
        return Trusted(value)
    if type(value) in (list, tuple):
        return type(value)(map(_trust_value, value))
    if type(value) is dict:
        return {key: _trust_value(each) for key, each in value.items()}
    return value
