"""What every Observer must do: what it watches does what it did before."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import pytest

from portico import ChatRequest, From, Kernel, Message, Plan, Step, Usage, Value, function
from portico.errors import ServiceUnavailable, StepFailed
from portico.ports import ChatService, EmbeddingGenerator, Observer, TextSearch
from portico.search import SearchResults, TextSearchOptions, search_method, search_plugin
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.embedding_generator import HashingEmbeddings
from portico_testkit.fakes.text_search import ListEntry, ListSearch

__all__ = ["ObserverKit"]

_REQUEST = ChatRequest((Message.of("user", "When is it in Oslo?"),))


@function(name="half")
def _half(number: int) -> int:
    """Halve an even number."""
    if number % 2:
        raise ValueError("the number is odd")
    return number // 2


def _plan(number: int) -> Plan:
    first = Step("s1", "half", {"number": Value(number)})
    return Plan("Quarter", (first, Step("s2", "half", {"number": From("s1")})), From("s2"))


class _News(ListSearch):
    @search_method
    async def get_news(self, query: str, options: TextSearchOptions) -> SearchResults[str]:
        """Find what is new."""
        return SearchResults([query])


class ObserverKit:
    """Subclass it and give a fixture named ``observer``::

        class TestAcmeObserver(ObserverKit):
            @pytest.fixture
            def observer(self) -> AcmeObserver:
                return AcmeObserver(AcmeSettings(), None)

    Give it something to watch for, so that it does not leave everything as it is.
    """

    def test_the_name_is_filled(self, observer: Observer) -> None:
        assert isinstance(observer.name, str), f"its name is {observer.name!r}"
        assert observer.name.strip(), "its name is empty"

    def test_a_service_has_all_its_members(self, observer: Observer) -> None:
        services: dict[Any, Any] = {
            ChatService: ScriptedChat("Noon."),
            EmbeddingGenerator: HashingEmbeddings(),
            TextSearch: ListSearch([]),
        }
        for port, service in services.items():
            around = observer.observe_service(port.__name__, service)
            assert around.name == service.name
            lost = [name for name in dir(service) if not name.startswith("_") and not hasattr(around, name)]
            assert lost == [], f"what is around the {port.__name__} lacks {lost}"
        unknown = object()
        assert observer.observe_service("NoPort", unknown) is unknown, "it changed a service that it cannot know"
        news = observer.observe_service("TextSearch", _News([]))
        assert search_plugin(news, name="news", functions=["GetNews"]).functions, "it hides a further search method"

    async def test_a_chat_service_answers_as_before(self, observer: Observer) -> None:
        chat = observer.observe_service("ChatService", ScriptedChat("Noon.", usage=Usage(9, 3), repeat=True))
        whole = await chat.complete(_REQUEST)
        assert (whole.text, whole.usage) == ("Noon.", Usage(9, 3))
        pieces = [delta async for delta in chat.stream(_REQUEST)]
        assert "".join(delta.text for delta in pieces) == "Noon."
        assert pieces[-1].reply == whole
        async with aclosing(chat.stream(_REQUEST)) as stream:
            assert (await anext(stream)).text, "the stream cannot be left after its first piece"

    async def test_an_error_of_a_service_comes_as_it_is(self, observer: Observer) -> None:
        failure = ServiceUnavailable("The service is away.")
        chat = observer.observe_service("ChatService", ScriptedChat(failure, failure))
        with pytest.raises(ServiceUnavailable) as raised:
            await chat.complete(_REQUEST)
        assert raised.value is failure
        with pytest.raises(ServiceUnavailable) as raised:
            [delta async for delta in chat.stream(_REQUEST)]
        assert raised.value is failure

    async def test_embeddings_and_searches_give_what_they_gave(self, observer: Observer) -> None:
        embeddings = HashingEmbeddings()
        vectors = await observer.observe_service("EmbeddingGenerator", embeddings).embed(["noon"], purpose="query")
        assert bytes(vectors.buffer) == bytes((await embeddings.embed(["noon"], purpose="query")).buffer)
        search = observer.observe_service("TextSearch", ListSearch([ListEntry("a red door")]))
        assert await (await search.search("door")).list() == ["a red door"]
        assert [result.value for result in await (await search.get_text_search_results("door")).list()] == [
            "a red door"
        ]
        assert len(await (await search.get_search_results("door")).list()) == 1

    async def test_a_kernel_does_what_it_did(self, observer: Observer) -> None:
        kernel = Kernel()
        observer.observe_kernel(kernel.middleware)
        kernel.add_function(_half)
        assert await kernel.invoke("half", number=8) == 4
        run = await kernel.run_plan(_plan(8))
        assert getattr(run.outcome, "value", None) == 2
        with pytest.raises(StepFailed, match="odd"):
            await kernel.run_plan(_plan(6))
