"""An agent that is given passages, with numbers that mean the same throughout a conversation."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from portico import Kernel, function, search_plugin
from portico._agents.agent import ChatAgent
from portico._agents.grounding import GROUNDED_INSTRUCTIONS, Passages, SearchContextProvider, queries_of
from portico._agents.thread import AgentTurn, Thread
from portico._chat.messages import ChatCapabilities, ChatReply, ChatRequest, Citation, Message, Source, ToolCall
from portico._search.results import (
    SearchCapabilities,
    SearchConnector,
    SearchResults,
    TextSearchOptions,
    TextSearchResult,
)
from portico.errors import ServiceUnavailable
from portico.plans import Answer, Asking, Emit, Task
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.text_search import ListEntry, ListSearch

DOORS = [
    ListEntry("A red door opens inwards.", "Doors", "https://doors.example/red"),
    ListEntry("A blue door opens outwards.", "Doors", "https://doors.example/blue"),
]
passages_found = st.builds(
    TextSearchResult, st.sampled_from("abcdefgh"), st.none(), st.none() | st.sampled_from(["x", "y"])
)


class Broken(SearchConnector[str]):
    name = "broken"

    async def fetch(self, query: str, options: TextSearchOptions) -> SearchResults[str]:
        raise ServiceUnavailable("The line is cut.")

    def to_text(self, record: str) -> str:
        return record

    def to_result(self, record: str) -> TextSearchResult:
        return TextSearchResult(record)


def turn(text: str, *earlier: Message, thread: Thread | None = None) -> AgentTurn:
    return AgentTurn("guide", thread or Thread(), tuple(earlier), (Message.of("user", text),))


def said(role: str, text: str) -> Message:
    return Message.of(role, text)  # type: ignore[arg-type]


@given(st.lists(st.lists(passages_found, max_size=6), max_size=12))
def test_a_passage_keeps_its_number_and_no_number_means_two(searches: list[list[TextSearchResult]]) -> None:
    passages = Passages()
    known: dict[int, tuple[str | None, str]] = {}
    for found in searches:
        sources = passages.add(found)
        assert [(s.link, s.text) for s in sources] == list(dict.fromkeys((f.link, f.value) for f in found))
        for source in sources:
            assert known.setdefault(source.number, (source.link, source.text)) == (source.link, source.text)
    assert sorted(known) == list(range(1, len(known) + 1))
    assert len(set(known.values())) == len(known)
    assert [source.number for source in passages.sources] == sorted(known)


def test_a_number_means_one_passage_however_many_there_are_and_a_year_means_none() -> None:
    passages = Passages()
    passages.add(TextSearchResult(f"p{number}") for number in range(1, 1_201))
    answer = passages.check("One [1150], two [1, 1200], in [2024], not [7, 1201].").renumber("")[1]
    assert [(each.number, each.quote) for each in answer] == [(1, "p1150"), (2, "p1"), (3, "p1200")]


def test_a_service_that_cites_by_itself_is_believed() -> None:
    passages = Passages()
    passages.add([TextSearchResult("It says [7].", "x"), TextSearchResult("More.")])
    own = Citation(1, "x", None, "It says [7].")
    check = passages.check(ChatReply(said("assistant", "“It says [7].” [1]"), citations=(own, own)))
    assert (check.cited, check.unbacked, [source.number for source in check.uncited]) == ((own,), (), [2])


def test_pages_that_a_service_found_itself_have_the_numbers_after_those_of_the_passages() -> None:
    passages = Passages()
    passages.add([TextSearchResult("Doors are red.", "x", "https://a.example/x"), TextSearchResult("Or blue.")])
    web = [Citation(1, "b", "https://b.example/", "Green."), Citation(1, "b", "https://b.example/", "Old.")]
    web += [Citation(2, "x", "https://a.example/x#top", "Doors.")]
    text = "Red [1]. Or green, says [b](https://b.example)."
    check = passages.check(ChatReply(said("assistant", text), citations=tuple(web)))
    assert [(each.number, each.quote) for each in check.cited] == [
        (1, "Doors are red."),
        (3, "Green."),
        (3, "Old."),
        (1, "Doors."),
    ]
    assert (check.unbacked, [source.number for source in check.uncited]) == ((), [2])
    alone = Passages().check(ChatReply(said("assistant", "Green."), citations=tuple(web)))
    assert [each.number for each in alone.cited] == [1, 1, 2]


async def test_a_run_cites_the_pages_that_its_model_found_itself() -> None:
    class Planner:
        name, asks_model = "asking", True

        async def propose(self, task: Task, *, emit: Emit) -> Answer:
            page = Citation(1, "b", "https://b.example/", "Green.")
            message = Message.of("assistant", "Green [7].", untrusted=("the web",))
            chat = ScriptedChat(ChatReply(message, citations=(page,)))
            return Answer((await Asking.ask(chat, ChatRequest([Message.of("user", task.goal)]), emit)).text)

    run = await Kernel().run_goal("Which?", planner=Planner())
    assert isinstance(run.outcome, Answer)
    assert (run.outcome.text, run.outcome.warnings) == ("Green [7].", ())
    assert [each.link for each in run.outcome.citations] == ["https://b.example/"]


async def test_an_agent_is_given_numbered_passages_that_its_thread_does_not_keep() -> None:
    chat = ScriptedChat("Inwards [1].", "Outwards [2], not as [1] or [9].", capabilities=ChatCapabilities(sources=True))
    provider = SearchContextProvider([ListSearch(DOORS)], top=1)
    agent = ChatAgent("guide", instructions="Be brief.", kernel=Kernel(), chat=chat, context_providers=[provider])
    thread = Thread()
    await agent.invoke("How does the red door open, please?", thread)
    reply = await agent.invoke("How does the blue door open, please?", thread)

    sent = [
        [part for message in request.messages for part in message.content if isinstance(part, Source)]
        for request in chat.requests
    ]
    assert [[(source.number, source.text) for source in sources] for sources in sent] == [
        [(1, "A red door opens inwards.")],
        [(2, "A blue door opens outwards.")],
    ]
    assert chat.requests[0].messages[0].text == f"Be brief.\n\n{GROUNDED_INSTRUCTIONS}"
    assert not any(isinstance(part, Source) for message in thread.messages for part in message.content)
    check = provider.check(thread, reply.reply)
    assert [citation.number for citation in check.cited] == [2, 1], "[1] is of an earlier turn, and backed"
    assert check.unbacked == (9,)
    assert provider.latest(thread).queries == ("How does the blue door open, please?",)


async def test_numbers_go_on_above_the_marks_of_a_thread_from_a_file() -> None:
    provider = SearchContextProvider([ListSearch(DOORS)])
    context = await provider.before(
        turn("How does the red door open?", said("user", "Hello"), said("assistant", "It does [4, 6]."))
    )
    assert context
    assert [part.number for part in context.messages[0].content if isinstance(part, Source)] == [7, 8]


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ("And the blue one?", ["And the blue one?", "How does the red door open?\nAnd the blue one?"]),
        ("Why?", ["Why?", "How does the red door open?\nWhy?"]),
        ("Which colours of doors open outwards?", ["Which colours of doors open outwards?"]),
        (" ", []),
    ],
)
def test_a_short_message_is_searched_for_with_the_one_before_too(text: str, queries: list[str]) -> None:
    earlier = (said("user", "How does the red door open?"), said("assistant", "Inwards."), said("user", " "))
    assert list(queries_of(turn(text, *earlier))) == queries


async def test_several_queries_of_a_turn_are_fused() -> None:
    provider = SearchContextProvider([ListSearch(DOORS)], query=lambda turn: ["blue", "red", "red"])
    context = await provider.before(turn("?"))
    assert context
    assert [part.text[:6] for part in context.messages[0].content if isinstance(part, Source)] == ["A blue", "A red "]


async def test_a_query_of_the_application_is_asked_and_an_empty_one_asks_nothing() -> None:
    search = ListSearch(DOORS)
    queries = iter(["blue door", "  "])
    provider = SearchContextProvider([search], query=lambda turn: next(queries))
    thread = Thread()
    assert await provider.before(turn("Tell me!", thread=thread))
    assert await provider.before(turn("Tell me!", thread=thread)) is None
    assert search.queries == ["blue door"]
    assert provider.latest(thread).sources == ()


async def test_where_nothing_is_found_the_model_is_told_so() -> None:
    context = await SearchContextProvider([ListSearch(DOORS)]).before(turn("Zebras?"))
    assert context
    assert context.messages == ()
    assert "nothing was found" in context.instructions


async def test_a_source_that_fails_is_told_of_and_the_others_answer(caplog: pytest.LogCaptureFixture) -> None:
    provider = SearchContextProvider({"doors": ListSearch(DOORS), "broken": Broken()})
    thread = Thread()
    with caplog.at_level(logging.WARNING):
        context = await provider.before(turn("How does the red door open?", thread=thread))
    assert context
    assert len(context.messages[0].content) == 2
    assert provider.latest(thread).failures == {"broken": "The line is cut."}
    assert "'broken' failed: The line is cut." in caplog.text


async def test_where_all_sources_fail_the_turn_does_and_the_thread_stays() -> None:
    agent = ChatAgent(
        "guide", kernel=Kernel(), chat=ScriptedChat("never"), context_providers=[SearchContextProvider([Broken()])]
    )
    thread = Thread()
    with pytest.raises(ServiceUnavailable):
        await agent.invoke("How does the red door open?", thread)
    assert thread.messages == ()


@given(st.text(min_size=1, max_size=200), st.integers(4, 60), st.integers(2, 12))
def test_no_source_is_asked_more_than_it_takes(text: str, characters: int, words: int) -> None:
    import asyncio

    class Short(ListSearch):
        capabilities = SearchCapabilities(query_characters=characters, query_words=words)

    search = Short(DOORS)
    asyncio.run(SearchContextProvider([search]).before(turn(text)))
    assert all(0 < len(query) <= characters and len(query.split()) <= words for query in search.queries)


async def test_after_a_turn_nothing_happens() -> None:
    provider = SearchContextProvider([ListSearch(DOORS)])
    asked = turn("How does the red door open?")
    await provider.before(asked)
    found = provider.latest(asked.thread)
    await provider.after(asked, RuntimeError())
    assert provider.latest(asked.thread) == found


async def numbered(plugin: str, *calls: ToolCall) -> Sequence[str]:
    kernel = Kernel()
    kernel.add_plugin(search_plugin(ListSearch(DOORS), "Doors"))

    @function
    def passages() -> list[dict[str, str]]:
        """Give what looks like passages."""
        return [{"value": "none of a search"}]

    kernel.add_function(passages)
    found = Passages()
    kernel.middleware.tool_call.append(Passages.number_results(kernel, lambda: found))
    return [(await kernel.call_tool(call)).content for call in calls]


async def test_what_a_model_finds_by_itself_is_numbered_too() -> None:
    blue = '{"query": "blue door", "count": 1}'
    both = '{"query": "a red door", "count": 2}'
    first, second = await numbered(
        "Doors", ToolCall("1", "Doors-GetTextSearchResults", blue), ToolCall("2", "Doors-GetTextSearchResults", both)
    )
    assert [(each["number"], each["value"]) for each in json.loads(first)] == [(1, "A blue door opens outwards.")]
    assert [each["number"] for each in json.loads(second)] == [2, 1]
    assert json.loads(first)[0]["link"] == "https://doors.example/blue"


async def test_only_passages_of_searches_are_numbered() -> None:
    contents = await numbered(
        "Doors",
        ToolCall("1", "Doors-Search", '{"query": "blue door", "count": 1}'),
        ToolCall("2", "passages"),
        ToolCall("3", "Doors-GetTextSearchResults", '{"query": ""}'),
        ToolCall("4", "Doors-GetTextSearchResults", "{}"),
    )
    assert contents[:3] == ['["A blue door opens outwards."]', '[{"value": "none of a search"}]', "[]"]
    assert "query" in contents[3]
