"""Compiled prompts, kept."""

from __future__ import annotations

from functools import lru_cache

from portico.ports.template_language import Template, TemplateLanguage

__all__ = ["PromptCache"]

_LONGEST_KEPT = 65_536


class PromptCache:
    """Compile each prompt of a language once, and keep the ``size`` used last.

    >>> from portico.prompts.semantic_kernel import SemanticKernelTemplates
    >>> prompts = PromptCache(SemanticKernelTemplates())
    >>> prompts.compiled("Hello {{$name}}!") is prompts.compiled("Hello {{$name}}!")
    True

    A prompt of more than 65,536 characters is compiled each time: such ones hold a document, and are not met again.
    """

    def __init__(self, language: TemplateLanguage, *, size: int = 256) -> None:
        self._language = language
        self._kept = lru_cache(size)(self._compile)

    def compiled(self, source: str, *, name: str = "prompt") -> Template:
        """Return the template; errors are those of the language and are not kept."""
        if len(source) > _LONGEST_KEPT:
            return self._compile(source, name)
        return self._kept(source, name)

    def _compile(self, source: str, name: str) -> Template:
        return self._language.compile(source, name=name)
