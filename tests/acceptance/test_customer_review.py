"""The customer-review example of contextual function selection: seven functions, three offered, the right ones.

Everything is what runs without a key: wordllama's embeddings and FAISS in memory. A scripted chat service keeps what it
was offered. `WORDINGS` are requests for which all three are offered: those for which they are not were left out of it.
What that leaves untold, `UNTRIED` tells: twenty more, written down before any was tried, all of which stay here.
Fourteen of them get all three; the other six get two, and one function that has to do with something else.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import pytest

import portico_host
from portico import ChatAgent, ChatCapabilities, ChatRequest, Kernel, Message, Thread, ToolCall, ToolResult, function
from portico_basics.contextual import ContextualFunctionOptions, ContextualFunctionProvider
from portico_faiss.store import FaissVectorStore
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_wordllama.embeddings import WordllamaEmbeddings

REVIEWS = {"kettle": ["Boils fast.", "The handle gets hot.", "Would buy it again."]}


@function
def collect_reviews(product: Annotated[str, "What was bought"]) -> list[str]:
    """Fetch the reviews that customers have written about a product."""
    return REVIEWS.get(product, [])


@function
def judge_sentiment(reviews: Annotated[list[str], "What customers wrote"]) -> str:
    """Tell whether the people who wrote reviews are happy with the product or not: positive, negative or mixed."""
    return "mixed" if len(reviews) > 1 else "unknown"


@function
def summarize_reviews(reviews: Annotated[list[str], "What customers wrote"]) -> str:
    """Sum up what many customer reviews say in a few sentences."""
    return " ".join(reviews)


@function
def weather_forecast(city: str, day: str) -> str:
    """Forecast the weather in a city."""
    return "Rain."


@function
def book_appointment(title: str, person: str, time: str) -> str:
    """Put an appointment or a meeting with somebody into the calendar."""
    return "Booked."


@function
def send_email(recipient: str, subject: str, text: str) -> str:
    """Send an email to somebody."""
    return "Sent."


@function
def exchange_rate(currency: str) -> float:
    """Look up what a foreign currency costs today."""
    return 0.92


ABOUT_REVIEWS = {"collect_reviews", "judge_sentiment", "summarize_reviews"}
FUNCTIONS: list[Any] = [
    weather_forecast,
    collect_reviews,
    send_email,
    judge_sentiment,
    exchange_rate,
    summarize_reviews,
    book_appointment,
]
ANALYSE = "Get the customer reviews of the kettle, sum them up and tell me how customers feel."

WORDINGS = [
    ANALYSE,
    "Fetch the customer reviews and tell me what people think, in short.",
    "Get and summarize the customer reviews, and tell me how customers feel.",
    "What do our customers think of the new kettle? Sum it up for me.",
    "Please analyze the customer reviews of the coffee machine.",
    "Summarise what buyers say about the espresso machine and whether they are happy with it.",
    "Collect the feedback on our blender, and find out whether the mood is good or bad.",
    "I would like an overview of the customers' opinions on the kettle: are they positive or negative?",
    "Are the reviews of our product mostly good or bad?",
    "Give me a summary of the reviews for the X200 headphones with the overall sentiment.",
    "How is the kettle reviewed?",
    "Read the customer feedback and give me the gist.",
    "Do people like the new product? Read their reviews and sum them up.",
    "Get all reviews of the vacuum cleaner, judge whether they are positive, and write a summary.",
    "Review analysis for the desk lamp, please.",
    "Are customers satisfied with our new headphones? Summarise their comments.",
    "I need to know what buyers wrote about the tent, the main points and the sentiment.",
    "Customer review analysis: product kettle.",
]

UNTRIED = [
    "Analyze customer reviews",
    "What do people say about our toaster?",
    "Tell me whether the kettle is liked.",
    "What is the general opinion on the kettle?",
    "How do customers feel about the kettle?",
    "Summarize the reviews",
    "Is the product any good according to buyers?",
    "What are the complaints about the kettle?",
    "Let me know the sentiment of the latest reviews.",
    "I want a digest of the feedback on our kettle.",
    "Find out if buyers are pleased with the lamp.",
    "Give me the pros and cons that customers mention for the blender.",
    "What did users write about the app, and is it good or bad?",
    "Customer review analysis",
    "Do the customers love or hate our new grill?",
    "Condense the testimonials for the garden hose and rate the tone.",
    "Are the comments under the product page favourable?",
    "Check what people posted about the scooter.",
    "Rate the mood in the opinions of our clients.",
    "I'd like to understand the reception of our new laptop by customers.",
]

CONVERSATION = [
    ("Will it rain in Lisbon tomorrow?", "weather_forecast"),
    ("Put a meeting with Maria into my calendar for Friday at ten.", "book_appointment"),
    ("Write an email to Maria that I am looking forward to it.", "send_email"),
    ("And what does a Swiss franc cost today?", "exchange_rate"),
]

OTHER_WORDS = [
    ("What is the weather going to be like in Oslo on Sunday?", "weather_forecast"),
    ("Make an appointment with Doctor Lund, Monday at nine.", "book_appointment"),
    ("Let Peter know by email that I shall be late.", "send_email"),
    ("How many dollars do I get? Look up the currency, please.", "exchange_rate"),
]


def scripted(*lines: Any) -> ScriptedChat:
    return ScriptedChat(*(lines or ("Noted.",)), repeat=True, capabilities=ChatCapabilities(tools=True))


def offered(request: ChatRequest) -> set[str]:
    return {tool.name for tool in request.tools}


EMBEDDINGS = WordllamaEmbeddings()
"""Loaded once; it opens nothing before it is used."""


def provider(functions: Sequence[Any] = FUNCTIONS, **options: Any) -> ContextualFunctionProvider:
    return ContextualFunctionProvider(
        functions, FaissVectorStore(), EMBEDDINGS, max_functions=3, options=ContextualFunctionOptions(**options)
    )


@pytest.fixture(params=["by a provider", "by configuration"])
async def assistant(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ChatAgent]:
    """An agent that chooses among the seven: with a provider of its own, or because `portico.toml` says so."""
    if request.param == "by a provider":
        yield ChatAgent("shop", kernel=Kernel(), context_providers=[provider()], chat=scripted())
        return
    file = tmp_path / "portico.toml"
    file.write_text('[functions]\nselect = "contextual"\nmax = 3\n', "utf-8")
    async with portico_host.open(file) as kernel:
        for each in FUNCTIONS:
            kernel.add_function(each)
        yield ChatAgent("shop", kernel=kernel, chat=scripted())


@pytest.mark.parametrize("wording", WORDINGS)
async def test_of_seven_functions_the_three_about_reviews_are_offered(assistant: ChatAgent, wording: str) -> None:
    reply = await assistant.invoke(wording)
    (request,) = assistant.chat.requests  # type: ignore[union-attr]
    assert offered(request) == ABOUT_REVIEWS
    (selection,) = reply.selections
    assert set(selection.names) == ABOUT_REVIEWS
    assert selection.considered == 7
    assert {each.reason for each in selection.left_out} == {"beyond the limit"}


async def test_of_twenty_wordings_that_nobody_tried_before_most_get_all_three_and_each_gets_two() -> None:
    agent = ChatAgent("shop", kernel=Kernel(), context_providers=[provider()], chat=scripted())
    right = {said: ABOUT_REVIEWS & set((await agent.invoke(said)).selections[0].names) for said in UNTRIED}
    assert not [said for said, names in right.items() if len(names) < 2]
    missed = [said for said, names in right.items() if names != ABOUT_REVIEWS]
    assert len(missed) <= 6, f"more are missed than there were: {missed}"


def bare(name: str, *, of_text: bool = False) -> Any:
    """Make a function of which there is nothing to read but names."""

    def act() -> str:
        return ""

    def act_on(text: str) -> str:
        return text

    return function(name=name)(act_on if of_text else act)


@pytest.mark.parametrize(
    "said", ["Get and summarize customer review.", "Get the customer reviews, summarize them and collect sentiments."]
)
async def test_names_are_enough_where_the_request_has_their_words(said: str) -> None:
    right = {"GetCustomerReviews": False, "Summarize": True, "CollectSentiments": True}
    about_reviews = [bare(name, of_text=of_text) for name, of_text in right.items()]
    others = [bare("GetWeather"), bare("SendEmail"), bare("GetStockPrice"), bare("GetCurrentTime")]
    agent = ChatAgent("shop", kernel=Kernel(), context_providers=[provider([*others, *about_reviews])], chat=scripted())
    (selection,) = (await agent.invoke(said)).selections
    assert set(selection.names) == set(right)


@pytest.mark.parametrize("topics", [CONVERSATION, OTHER_WORDS], ids=["conversation", "other words"])
async def test_the_offer_follows_the_conversation(assistant: ChatAgent, topics: Sequence[tuple[str, str]]) -> None:
    thread = Thread()
    await assistant.invoke(ANALYSE, thread)
    for words, name in topics:
        await assistant.invoke(words, thread)
        request = assistant.chat.requests[-1]  # type: ignore[union-attr]
        assert name in offered(request), f"{words!r} was offered {sorted(offered(request))}"
        assert len(request.tools) == 3
    # Two turns about them, for the two messages before belong to the context, and to the topic before.
    for words in ("Back to the reviews: what do customers say about the kettle?", ANALYSE):
        await assistant.invoke(words, thread)
    assert offered(assistant.chat.requests[-1]) == ABOUT_REVIEWS  # type: ignore[union-attr]


async def test_a_context_without_earlier_messages_changes_with_the_topic_at_once() -> None:
    chat = scripted()
    agent = ChatAgent("shop", kernel=Kernel(), context_providers=[provider(recent_messages=0)], chat=chat)
    thread = Thread()
    for words, name in CONVERSATION:
        await agent.invoke(words, thread)
        assert name in offered(chat.requests[-1])
        await agent.invoke(ANALYSE, thread)
        assert offered(chat.requests[-1]) == ABOUT_REVIEWS


async def test_a_short_answer_is_understood_from_the_messages_before() -> None:
    chat = scripted("Shall I collect the reviews of the kettle, sum them up and judge the sentiment?", "As you wish.")
    agent = ChatAgent("shop", kernel=Kernel(), context_providers=[provider()], chat=chat)
    thread = Thread()
    await agent.invoke("Can you do a customer review analysis?", thread)
    await agent.invoke("Yes, please.", thread)
    assert offered(chat.requests[-1]) == ABOUT_REVIEWS


def called(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(f"call-{name}", name, json.dumps(arguments))


async def test_the_functions_offered_are_called_and_no_others_can_be(assistant: ChatAgent) -> None:
    reviews = REVIEWS["kettle"]
    assistant.chat = chat = scripted(
        called("collect_reviews", product="kettle"),
        [called("judge_sentiment", reviews=reviews), called("summarize_reviews", reviews=reviews)],
        called("send_email", recipient="all", subject="Kettle", text="…"),
        "The sentiment is mixed.",
    )
    reply = await assistant.invoke(ANALYSE)
    assert reply.text == "The sentiment is mixed."
    results = [part for message in reply.thread.messages for part in message.content if isinstance(part, ToolResult)]
    shown = {part.id.removeprefix("call-"): str(part.content) for part in results}
    assert "Boils fast." in shown["collect_reviews"]
    assert "mixed" in shown["judge_sentiment"]
    assert "Would buy it again." in shown["summarize_reviews"]
    assert "Sent." not in shown["send_email"], "a function that was not offered was called"
    assert all(offered(request) == ABOUT_REVIEWS for request in chat.requests), "the offer changed within a turn"


async def test_conversations_at_once_are_offered_what_is_theirs(assistant: ChatAgent) -> None:
    words = [(ANALYSE, "summarize_reviews"), *CONVERSATION, *OTHER_WORDS] * 3
    replies = await asyncio.gather(*(assistant.invoke(said) for said, _ in words))
    for (said, name), reply in zip(words, replies, strict=True):
        (selection,) = reply.selections
        assert name in selection.names, f"{said!r} was offered {selection.names}"


async def test_where_nothing_is_said_nothing_is_offered(assistant: ChatAgent) -> None:
    await assistant.invoke(Message.of("user", " \n"))
    (request,) = assistant.chat.requests  # type: ignore[union-attr]
    assert request.tools == ()
