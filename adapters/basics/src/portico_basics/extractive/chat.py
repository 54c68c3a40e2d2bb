"""The ChatService that quotes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence

from portico import ChatCapabilities, ChatDelta, ChatReply, ChatRequest, Citation, Message
from portico.errors import ConfigurationError, PluginError, ServiceError
from portico.plugins import Services
from portico.ports import EmbeddingGenerator
from portico_basics.extractive._choice import Candidate, candidates, judge
from portico_basics.extractive._selection import select
from portico_basics.extractive._units import Unit, split
from portico_basics.extractive._wire import citation_of, paragraph, passages_of, question_of
from portico_basics.extractive._words import Words, language_of
from portico_basics.extractive.config import ExtractiveSettings

_MOST_EMBEDDED = 200

_log = logging.getLogger(__name__)


class ExtractiveChat:
    """Answer by quoting the sources of a request, word for word, with citations; without any model.

    >>> import asyncio
    >>> from portico import ChatRequest, Message, Source
    >>> source = Source(1, "A port is a protocol. Write three methods and a settings class.", name="ports.md")
    >>> request = ChatRequest([Message.of("user", "Which methods do I write?", source)])
    >>> asyncio.run(ExtractiveChat().complete(request)).text
    '“Write three methods and a settings class.” [1]'

    The question is the text of the last user message, the sources are those of all messages. Where no source
    bears on the question, the reply says so: nothing is invented, and equal requests have equal replies. Of one
    source the first 20,000 characters are read, of all together the first 500,000 and 10,000 sentences. When an
    embedding generator is configured, the 200 sentences that look best by their words are compared by meaning
    too; one that fails is done without.
    """

    def __init__(self, settings: ExtractiveSettings | None = None, services: Services | None = None) -> None:
        self._settings = settings or ExtractiveSettings()
        self._services = services
        self.name = "extractive"
        self.capabilities = ChatCapabilities(sources=True, language_model=False)

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the quotes that answer, or a sentence that says why there are none."""
        request.check(self.capabilities, self.name)
        paragraphs, citations = await self._answer(request)
        return self._reply(paragraphs, citations)

    async def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
        """Yield quote by quote, then the reply."""
        request.check(self.capabilities, self.name)
        paragraphs, citations = await self._answer(request)
        for number, text in enumerate(paragraphs):
            yield ChatDelta(f"\n\n{text}" if number else text)
        yield ChatDelta(reply=self._reply(paragraphs, citations))

    def _reply(self, paragraphs: Sequence[str], citations: tuple[Citation, ...]) -> ChatReply:
        message = Message.of("assistant", "\n\n".join(paragraphs))
        return ChatReply(message, model=self.name, service=self.name, citations=citations)

    async def _answer(self, request: ChatRequest) -> tuple[list[str], tuple[Citation, ...]]:
        question = question_of(request)
        passages = passages_of(request)
        if not question.strip():
            return ["There is no question to answer."], ()
        if not passages:
            return ["There are no sources to answer from."], ()

        def read() -> tuple[Words, list[list[Unit]], list[Candidate]]:
            words = Words(language_of(question) if self._settings.language == "auto" else self._settings.language)
            units = [split(passage.text) for passage in passages]
            return words, units, candidates(passages, units, words)

        words, units, found = await asyncio.to_thread(read)
        judged = await asyncio.to_thread(judge, question, found, words)
        if judged and (cosines := await self._cosines(question, found, [one.score for one in judged])):
            judged = await asyncio.to_thread(judge, question, found, words, cosines)
        quotes = select(
            judged,
            passages,
            units,
            minimum_relevance=self._settings.minimum_relevance,
            maximum_quotes=self._settings.maximum_quotes,
            maximum_characters=self._settings.maximum_characters,
        )
        if not quotes:
            searched = "1 passage" if len(passages) == 1 else f"{len(passages)} passages"
            return [f"Nothing relevant was found in the {searched} searched."], ()
        citations = tuple(citation_of(quote, passages) for quote in quotes)
        return [paragraph(quote, citation) for quote, citation in zip(quotes, citations, strict=True)], citations

    async def _cosines(self, question: str, found: Sequence[Candidate], scores: Sequence[float]) -> Mapping[int, float]:
        """Return the cosines with the question of those best by words, by position; none without a generator."""
        generator = self._generator()
        if generator is None:
            return {}
        best = sorted(range(len(found)), key=lambda position: -scores[position])[:_MOST_EMBEDDED]
        try:
            asked = await generator.embed([question], purpose="query")
            told = await generator.embed([found[position].text for position in best])
        except ServiceError as error:
            _log.warning("The extractive chat service goes by words alone: %s", error)
            return {}
        import numpy as np

        rows = np.asarray(told.buffer, dtype=np.float32).reshape(told.rows, told.dimensions)
        return dict(zip(best, (rows @ np.asarray(asked.buffer, dtype=np.float32)).tolist(), strict=True))

    def _generator(self) -> EmbeddingGenerator | None:
        if self._services is None or not self._settings.embeddings:
            return None
        try:
            return self._services.get(EmbeddingGenerator)
        except (PluginError, ConfigurationError):
            return None
