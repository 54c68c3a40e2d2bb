"""The ChatService kit passes a correct service and catches broken ones."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from portico.chat import ChatCapabilities, ChatDelta, ChatReply, ChatRequest, Citation, Message, Source
from portico.errors import RateLimited
from portico_testkit.chat_service import ChatServiceKit
from portico_testkit.fakes.chat_service import ScriptedChat


def quoting(request: ChatRequest) -> ChatReply:
    """Repeat the question and the sources that have a word of it in them."""
    question = request.messages[-1].text if request.messages else ""
    sources = [part for message in request.messages for part in message.content if isinstance(part, Source)]
    words = {word for word in question.lower().strip("?").split() if len(word) > 4}
    quoted = [source for source in sources if words & set(source.text.lower().strip(".").split())]
    text = " ".join([f"Asked: {question}", *(f"{source.text} [{source.number}]" for source in quoted)])
    citations = tuple(Citation(source.number, source.name, source.link, source.text) for source in quoted)
    return ChatReply(Message.of("assistant", text), service="scripted", citations=citations)


class Quoting(ScriptedChat):
    def __init__(self) -> None:
        super().__init__(
            quoting,
            repeat=True,
            capabilities=ChatCapabilities(sources=True, sampling=frozenset({"temperature", "stop"})),
        )


class TestScriptedChat(ChatServiceKit):
    deterministic = True

    @pytest.fixture
    def chat_service(self) -> ScriptedChat:
        return Quoting()


class TestScriptedChatWithoutSources(ChatServiceKit):
    @pytest.fixture
    def chat_service(self) -> ScriptedChat:
        return ScriptedChat("Good morning.", repeat=True)


class Broken(Quoting):
    """Does right what a variant does not do wrong."""

    def spoil(self, reply: ChatReply) -> ChatReply:
        return reply

    async def complete(self, request: ChatRequest) -> ChatReply:
        return self.spoil(await super().complete(request))

    async def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
        async for delta in super().stream(request):
            yield replace(delta, reply=delta.reply and self.spoil(delta.reply))


class Nameless(Broken):
    def __init__(self):
        super().__init__()
        self.name = ""


class SaysNotWhoAnswered(Broken):
    def spoil(self, reply):
        return replace(reply, service="")


class AnswersAsTheUser(Broken):
    def spoil(self, reply):
        return replace(reply, message=replace(reply.message, role="user"))


class DropsOptions(Broken):
    async def complete(self, request):
        return await super().complete(ChatRequest(request.messages))


class DropsOptionsOfStreams(Broken):
    async def stream(self, request):
        async for delta in super().stream(ChatRequest(request.messages)):
            yield delta


class DeclaresWhatItRefuses(Broken):
    def __init__(self):
        super().__init__()
        self.declared, self.capabilities = (
            self.capabilities,
            replace(self.capabilities, sampling=frozenset({"temperature", "stop", "seed"})),
        )

    async def complete(self, request):
        if request.seed is not None:
            raise RuntimeError("no seeds here")
        return await super().complete(request)


class LosesTheLastPiece(Broken):
    async def stream(self, request):
        held = None
        async for delta in super().stream(request):
            if held is not None and delta.reply is None:
                yield held
            held = delta
        yield held


class NeverGivesTheReply(Broken):
    async def stream(self, request):
        async for delta in super().stream(request):
            yield ChatDelta(delta.text)


class GivesTheReplyEachTime(Broken):
    async def stream(self, request):
        reply = await self.complete(request)
        async for delta in super().stream(request):
            yield replace(delta, reply=reply)


class StreamsOtherWords(Broken):
    async def stream(self, request):
        reply = self.spoil(quoting(ChatRequest([Message.of("user", "Streamed"), *request.messages])))
        reply = replace(reply, message=Message.of("assistant", reply.text.upper()))
        async for _ in super().stream(request):
            pass
        yield ChatDelta(reply.text, reply=reply)


class KeepsTheRequestOnItself(Broken):
    async def complete(self, request):
        self.request = request
        await asyncio.sleep(0)
        return await super().complete(self.request)


class InventsACitation(Broken):
    def spoil(self, reply):
        return replace(reply, citations=(*reply.citations, Citation(99, None, None, "Invented.")))


class InventsAQuote(Broken):
    def spoil(self, reply):
        return replace(reply, citations=tuple(replace(one, quote=f"{one.quote}!") for one in reply.citations))


class CitesAnotherPlace(Broken):
    def spoil(self, reply):
        return replace(reply, citations=tuple(replace(one, link="file:///elsewhere") for one in reply.citations))


class IgnoresItsSources(Broken):
    async def complete(self, request):
        return replace(quoting(ChatRequest([Message.of("user", request.messages[-1].text)])))


class FailsOnNoMessages(Broken):
    async def complete(self, request):
        request.messages[-1]
        return await super().complete(request)


class EndsSourcesByText(Broken):
    """Reads its sources back out of the prompt that they were rendered into."""

    async def complete(self, request):
        reply = await super().complete(request)
        prompt = " ".join(part.text for part in request.messages[-1].content) if request.messages else ""
        found = [Citation(int(number), None, None, "") for number in re.findall(r'<source number="(\d+)"', prompt)]
        return replace(reply, citations=(*reply.citations, *found))


class GrowsTheMessages(Broken):
    async def complete(self, request):
        reply = await super().complete(request)
        request.messages.append(reply.message)
        return reply


class RemembersTheLastTurn(Broken):
    turns = 0

    def spoil(self, reply):
        self.turns += 1
        return replace(reply, message=Message.of("assistant", reply.text + "!" * (self.turns // 3)))


class HoldsALockForEver(Broken):
    busy = False

    async def stream(self, request):
        if self.busy:
            raise RuntimeError("busy")
        async for delta in super().stream(request):
            self.busy = delta.reply is None
            yield delta


BROKEN = list(Broken.__subclasses__())


class DeterministicKit(ChatServiceKit):
    deterministic = True


async def failures(make: type[ScriptedChat]) -> list[str]:
    found = []
    for name in sorted(dir(DeterministicKit)):
        if name.startswith("test_"):
            try:
                await getattr(DeterministicKit(), name)(make())
            except (Exception, pytest.fail.Exception):
                found.append(name)
    return found


@pytest.mark.parametrize("variant", BROKEN, ids=lambda variant: variant.__name__)
async def test_the_kit_catches(variant: type[ScriptedChat]) -> None:
    assert await failures(variant), f"no test of the kit fails for {variant.__name__}"


async def test_the_kit_finds_nothing_wrong_with_the_wrapper_that_the_broken_ones_share() -> None:
    assert await failures(Broken) == []


async def test_a_script_is_said_line_by_line_and_then_is_over() -> None:
    request = ChatRequest([Message.of("user", "Next?")])
    chat = ScriptedChat("one", RateLimited("too fast"), lambda asked: asked.messages[0].text)
    assert (await chat.complete(request)).text == "one"
    with pytest.raises(RateLimited):
        await chat.complete(request)
    assert [delta.text async for delta in chat.stream(request)] == ["Next?", ""]
    with pytest.raises(AssertionError, match="3 lines; this is call 4"):
        await chat.complete(request)
    assert chat.requests == [request] * 4
