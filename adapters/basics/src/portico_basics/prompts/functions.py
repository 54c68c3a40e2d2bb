"""The FunctionSource on a directory of prompts."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast

from portico import Function, FunctionPlugin, PromptInput, prompt_function
from portico.errors import PorticoError
from portico.plugins import Mismatch, SemanticKernelTemplates, Services
from portico.ports import SchemaValidator, Template, TemplateLanguage
from portico_basics.config import PromptFilesSettings
from portico_basics.files import Lost
from portico_basics.prompts._files import PromptFile, PromptInvalid, read_prompts

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

    ``lost`` are the prompts that could not be used, after a load; a warning in the log names them too. ``services`` are
    asked for the template languages that the prompts are written in.
    """

    def __init__(self, settings: PromptFilesSettings, services: Services | None = None) -> None:
        self._settings = settings
        self._services = services
        self.lost: tuple[Lost, ...] = ()

    async def load(self, name: str) -> FunctionPlugin:
        """Read the directory and return its prompts as the plugin ``name``.

        Raises ``ConfigurationError`` when the directory cannot be read or holds no prompts, and for a schema validator
        that cannot be used.
        """
        path = self._settings.path
        prompts, lost = await asyncio.to_thread(read_prompts, path)
        validator: SchemaValidator | None = None
        if self._services is not None and self._services.names(SchemaValidator):
            validator = self._services.get(SchemaValidator)
        functions = []
        for prompt in prompts:
            try:
                functions.append(self._function(name, prompt, validator))
            except PromptInvalid as error:
                lost.append(Lost(prompt.place, str(error)))
        self.lost = tuple(lost)
        if lost:
            _log.warning("functions.%s, %s: %s", name, path, Lost.report(lost, len(functions), "prompts"))
        return FunctionPlugin(name, tuple(functions), f"The prompts of {path.name or path}.")

    def _function(self, plugin: str, prompt: PromptFile, validator: SchemaValidator | None) -> Function:
        try:
            for name, given in prompt.inputs.items():
                parameter = PromptInput.parameter(name, given, validator=validator)
                # None is how an input is left empty that has no default.
                if not parameter.required and parameter.default is not None:
                    parameter.compiled.structure(parameter.default)
            return prompt_function(
                prompt.name,
                self._template(prompt),
                plugin=plugin,
                description=prompt.description or f"Ask with the prompt {prompt.name}.",
                inputs=prompt.inputs,
                returns=prompt.returns,
                trusted=prompt.trusted,
                effects=prompt.effects,
                tags=prompt.tags,
                validator=validator,
                **cast("dict[str, Any]", prompt.options),
            )
        except Mismatch as error:
            raise PromptInvalid(f"the default of the input {name!r}: {error}") from error
        except (PorticoError, ValueError, TypeError) as error:
            # The name of the file stands before the reason anyway.
            raise PromptInvalid(str(error).removeprefix(f"{prompt.place}, ")) from error

    def _template(self, prompt: PromptFile) -> str | Template:
        """Compile the template, so that an error has the file's name.

        A prompt in core's own language stays text: the kernel compiles it with its type codecs.
        """
        if prompt.language == SemanticKernelTemplates.name:
            SemanticKernelTemplates().compile(prompt.template, name=prompt.place)
            return prompt.template
        if self._services is None:
            raise PromptInvalid(f"the template language {prompt.language!r} needs services")
        language = self._services.get(TemplateLanguage, prompt.language)
        return language.compile(prompt.template, name=prompt.place)
