"""The FunctionSource on a directory of prompts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, cast

from portico import Function, FunctionPlugin, PromptInput, prompt_function
from portico.errors import ConfigurationError, PluginError, PorticoError, SchemaUnsupported
from portico.plugins import Mismatch, SemanticKernelTemplates, Services
from portico.ports import SchemaValidator, Template, TemplateLanguage
from portico_basics.prompts._files import LostPrompt, PromptFile, read_prompts
from portico_basics.prompts._wrong import Wrong
from portico_basics.prompts.config import PromptFilesSettings

_MOST_TOLD = 10
_log = logging.getLogger("portico_basics.prompts")


class PromptFiles:
    """Make a function of each prompt in a directory.

    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "Summarise").mkdir()
    >>> (folder / "Summarise" / "prompt.txt").write_text("In one sentence: {{$text}}")
    26
    >>> source = PromptFiles(PromptFilesSettings(path=folder))
    >>> [function.full_name for function in asyncio.run(source.load("writer"))]
    ['writer-Summarise']

    ``lost`` are the prompts that could not be used, after a load; the plugin's description and a warning in the log
    say so too. ``services`` are asked for the template languages that the prompts are written in.
    """

    def __init__(self, settings: PromptFilesSettings, services: Services | None = None) -> None:
        self._settings = settings
        self._services = services
        self.lost: tuple[LostPrompt, ...] = ()

    async def load(self, name: str) -> FunctionPlugin:
        """Read the directory and return its prompts as the plugin ``name``.

        Raises ``ConfigurationError`` when the directory cannot be read or holds no prompts.
        """
        settings = self._settings
        prompts, lost = await asyncio.to_thread(read_prompts, settings.path, settings.maximum_file_bytes)
        making = _Making(name, self._services)
        functions = []
        for prompt in prompts:
            place = prompt.place
            try:
                template = making.template(prompt)
                place = prompt.settings_place
                functions.append(making.function(prompt, template))
            except Wrong as error:
                lost.append(LostPrompt(place, str(error)))
        self.lost = tuple(lost)
        description = f"The prompts of {settings.path.name or settings.path}."
        if lost:
            description += f" {_told(lost, len(functions))}"
            _log.warning("functions.%s, %s: %s", name, settings.path, _shown(lost, len(functions)))
        return FunctionPlugin(name, tuple(functions), description)


class _Making:
    """Makes the functions of one plugin; languages and the validator are asked for when they are needed."""

    def __init__(self, plugin: str, services: Services | None) -> None:
        self._plugin = plugin
        self._services = services
        self._languages: dict[str, TemplateLanguage] = {}
        self._validator: SchemaValidator | None = None
        self._looked = False

    def function(self, prompt: PromptFile, template: str | Template) -> Function:
        """Make the function; raises `Wrong` for what its settings say."""
        settings = prompt.settings
        inputs = {}
        for name, given in settings.inputs.items():
            default = PromptInput.REQUIRED if given.required else given.default
            inputs[name] = PromptInput(given.schema, given.description, default)
            self._check_default(name, inputs[name])
        if settings.returns is not None:
            self._check_schema("returns", settings.returns)
        try:
            return prompt_function(
                prompt.name,
                template,
                plugin=self._plugin,
                description=settings.description or f"Ask with the prompt {prompt.name}.",
                inputs=inputs,
                returns=settings.returns,
                trusted={name for name, given in settings.inputs.items() if given.trusted},
                effects=settings.effects,
                tags=settings.tags,
                validator=self.validator,
                **cast("dict[str, Any]", settings.options),
            )
        except (PorticoError, ValueError, TypeError) as error:
            raise Wrong(str(error)) from error

    def template(self, prompt: PromptFile) -> str | Template:
        """Compile the template, so that what is wrong is told with the file's name.

        A prompt in core's own language goes on as text: the kernel compiles it with the type codecs that it has.
        """
        try:
            if prompt.language == SemanticKernelTemplates.name:
                SemanticKernelTemplates().compile(prompt.template, name=prompt.source)
                return prompt.template
            return self._language(prompt.language).compile(prompt.template, name=prompt.source)
        except PorticoError as error:
            # Its file is told before it anyway.
            raise Wrong(str(error).removeprefix(f"{prompt.place}, ")) from error

    def _language(self, name: str) -> TemplateLanguage:
        if name not in self._languages:
            if self._services is None:
                raise Wrong(f"the template language {name!r} is not at hand: only {SemanticKernelTemplates.name} is")
            self._languages[name] = self._services.get(TemplateLanguage, name)
        return self._languages[name]

    @property
    def validator(self) -> SchemaValidator | None:
        """The validator that the kernel uses too; None leaves core its own."""
        if not self._looked and self._services is not None and self._services.names(SchemaValidator):
            try:
                self._validator = self._services.get(SchemaValidator)
            except (PluginError, ConfigurationError) as error:
                _log.warning("functions.%s: core's own schema validator is used. %s", self._plugin, error)
        self._looked = True
        return self._validator

    def _check_default(self, name: str, given: PromptInput) -> None:
        self._check_schema(f"inputs.{name}.schema", given.type)
        try:
            parameter = PromptInput.parameter(name, given, validator=self.validator)
            # None is how an input is left empty that has no default.
            if not parameter.required and parameter.default is not None:
                parameter.compiled.structure(parameter.default)
        except Mismatch as error:
            raise Wrong(f"inputs.{name}.default: {error}") from error

    def _check_schema(self, key: str, schema: object) -> None:
        try:
            PromptInput.compile(schema, validator=self.validator)
        except SchemaUnsupported as error:
            reason = str(error.__cause__ or error)
            advice = "" if self.validator else " All of JSON Schema is known where portico-basics is installed."
            raise Wrong(f"{key}: {reason}{advice}") from error


def _shown(lost: Sequence[LostPrompt], usable: int) -> str:
    """Tell people what is lost: a line each, and the place in a template under it."""
    lines = [f"{len(lost)} of {usable + len(lost)} prompts are lost."]
    lines += (f"  {str(one).replace(chr(10), chr(10) + '  ')}" for one in lost[:_MOST_TOLD])
    return "\n".join([*lines, f"  and {len(lost) - _MOST_TOLD} more"] if len(lost) > _MOST_TOLD else lines)


def _told(lost: Sequence[LostPrompt], usable: int) -> str:
    shown = "; ".join(str(one).partition("\n")[0].rstrip(".") for one in lost[:_MOST_TOLD])
    more = f"; and {len(lost) - _MOST_TOLD} more" if len(lost) > _MOST_TOLD else ""
    return f"{len(lost)} of {usable + len(lost)} prompts are lost: {shown}{more}."
