"""The samples of the design of contextual function selection: seven functions by name alone, three of them offered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.support.replayed_model import ReplayedModel

from portico import ChatAgent, FunctionSpec, Kernel, Message, Thread, ToolCall, function
from portico.ports import ChatService
from portico_basics.contextual import ContextualFunctionOptions, ContextualFunctionProvider
from portico_faiss.store import FaissVectorStore
from portico_openai.chat import OpenAIChat
from portico_wordllama.embeddings import WordllamaEmbeddings

EMBEDDINGS = WordllamaEmbeddings()
RELEVANT = ["CollectSentiments", "GetCustomerReviews", "Summarize"]
ASKED = "Get and summarize customer review."


def available_functions() -> list[Callable[..., str]]:
    def summarize(text: str) -> str:
        return "Key points include customer satisfaction."

    def collect_sentiments(text: str) -> str:
        return "The collected sentiment is mostly positive."

    return [
        function(name="GetCustomerReviews")(lambda: "John D., 5 of 5: Great product and fast shipping!"),
        function(name="Summarize")(summarize),
        function(name="CollectSentiments")(collect_sentiments),
        function(name="GetWeather")(lambda: "Current weather is sunny."),
        function(name="SendEmail")(lambda: "Email sent."),
        function(name="GetStockPrice")(lambda: "The current stock price is $123.45."),
        function(name="GetCurrentTime")(lambda: "The time is 12:00 PM."),
    ]


def provider(**options: Any) -> ContextualFunctionProvider:
    made = ContextualFunctionOptions(**options)
    return ContextualFunctionProvider(
        available_functions(), FaissVectorStore(), EMBEDDINGS, max_functions=3, options=made
    )


async def test_an_agent_is_offered_the_three_of_seven_that_fit(chat: OpenAIChat, model: ReplayedModel) -> None:
    model.sayings = [
        ToolCall("1", "GetCustomerReviews", "{}"),
        ToolCall("2", "Summarize", '{"text": "Great product and fast shipping!"}'),
        "Customers are satisfied.",
    ]
    agent = ChatAgent(
        "ReviewGuru",
        instructions="You are a friendly assistant that summarizes key points and sentiments from customer reviews.",
        kernel=Kernel({ChatService: chat}),
    )
    thread = Thread()
    thread.context_providers.append(
        ContextualFunctionProvider(available_functions(), FaissVectorStore(), EMBEDDINGS, max_functions=3)
    )
    reply = await agent.invoke(ASKED, thread)
    print(reply.text)

    assert sorted(model.offered(0)) == sorted(model.offered(2)) == RELEVANT
    assert reply.text == "Customers are satisfied."


async def offered_after(model: ReplayedModel, chat: OpenAIChat, *said: str, **options: Any) -> list[list[str]]:
    """Return what was offered in each turn of a conversation."""
    model.sayings = ["Noted."] * len(said)
    agent = ChatAgent("ReviewGuru", kernel=Kernel({ChatService: chat}), context_providers=[provider(**options)])
    thread = Thread()
    for each in said:
        await agent.invoke(each, thread)
    return [sorted(model.offered(turn)) for turn in range(len(said))]


async def test_recent_messages_count_as_many_as_an_option_says(chat: OpenAIChat, model: ReplayedModel) -> None:
    asked: list[tuple[int, int]] = []

    def count(recent: Sequence[Message], new: Sequence[Message]) -> str:
        asked.append((len(recent), len(new)))
        return ASKED

    await offered_after(model, chat, ASKED, "Once more.", recent_messages=1, context_text=count)
    assert asked == [(0, 1), (1, 1)]


async def test_the_text_of_the_context_is_made_of_recent_and_new_messages(
    chat: OpenAIChat, model: ReplayedModel
) -> None:
    async def of_the_user(recent: Sequence[Message], new: Sequence[Message]) -> str:
        return "\n".join(each.text for each in (*recent, *new) if each.role == "user" and each.text.strip())

    offered = await offered_after(model, chat, ASKED, "Yes, please.", context_text=of_the_user)
    assert offered == [RELEVANT, RELEVANT]


async def test_the_text_of_a_function_is_made_by_the_application(chat: OpenAIChat, model: ReplayedModel) -> None:
    async def by_name(spec: FunctionSpec) -> str:
        return spec.name

    [offered] = await offered_after(model, chat, ASKED, function_text=by_name)
    assert {"GetCustomerReviews", "Summarize"} < set(offered), "two have words of the question in their names"
