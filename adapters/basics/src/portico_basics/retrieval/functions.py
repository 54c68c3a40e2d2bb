"""The FunctionSource that answers from what searches found."""

from __future__ import annotations

from portico import FunctionPlugin, Passages, function
from portico.plans import Event
from portico.plugins import Services
from portico.ports import ChatService
from portico.search import TextSearchResult
from portico_basics.config import AnswersSettings
from portico_basics.retrieval.answering import answer_from


class Answers:
    """Answer in words, with citations."""

    def __init__(self, settings: AnswersSettings, services: Services) -> None:
        self._settings = settings
        self._services = services

    async def load(self, name: str) -> FunctionPlugin:
        """Return the plugin ``name``, whose function asks the chat service."""
        return FunctionPlugin.of(self, name)

    @function(name="FromSources", tags=["answer"])
    async def from_sources(self, question: str, sources: list[TextSearchResult | str] | str) -> str:
        """Answer a question in words, with the numbers of the passages that the answer rests on.

        A plan that searches ends with it: the passages of a search are no answer.

        Args:
            question: The question, in the user's words.
            sources: The passages that searches found.
        """
        emit = Event.of_run()
        if not (found := Passages.of_run().take(sources)):
            emit(Event.TextDelta(nothing := "Nothing was found."))
            return nothing
        chat = self._services.get(ChatService, self._settings.chat)
        return (await answer_from(chat, question, found, emit)).text
