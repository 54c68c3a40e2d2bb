"""The tool loop: ask a model, call the functions that it names, ask again."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from portico._chat.attaching import fit
from portico._chat.joining import join_unlike
from portico._chat.messages import (
    REPAIR_HEAD,
    ChatDelta,
    ChatReply,
    ChatRequest,
    Message,
    ToolCall,
    ToolChoice,
    ToolResult,
    Usage,
)
from portico._chat.spending import purse, require_cost, unknown_price
from portico._functions.middleware import ToolCallInvocation, run_middleware
from portico._plans.task import Event
from portico._selection.selection import FunctionsOffered
from portico._tool_loop.guarding import CallGuard
from portico._tool_loop.partial_json import NOTHING
from portico._tool_loop.structured import DraftReader, Manner, ReplyProblem, ResponseFormat
from portico._tool_loop.toolset import Toolset, as_json, expand_calls
from portico._tool_loop.values import PartialValue, ToolFinished, ToolLoopLimits, ToolStarted, Turn, TurnEvent
from portico.errors import (
    ArgumentsInvalid,
    FunctionFailed,
    FunctionNotFound,
    LimitExceeded,
    PorticoError,
    ResponseInvalid,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from portico._functions.functions import Function
    from portico._kernel_like import KernelLike
    from portico._ports.chat_service import ChatService
    from portico._selection.selection import Selection


async def carry_out_call(
    kernel: KernelLike, call: ToolCall, offered: Toolset | None, guard: CallGuard | None = None
) -> ToolResult:
    """Carry out a call, of the functions offered or of all; see `Kernel.call_tool`. A ``guard`` may refuse it."""
    context = ToolCallInvocation(call)
    if guard is None and offered is not None:
        guard = offered.guard
    began: set[Function] = set()

    async def final() -> ToolResult:
        return ToolResult(context.call.id, context.call.name, await _text(kernel, context.call, offered, guard, began))

    try:
        if not kernel.middleware.tool_call:
            result = await final()
        else:
            result = await run_middleware(kernel.middleware.tool_call, context, final)
    except PorticoError as error:
        cause = error.__cause__ if isinstance(error, FunctionFailed) else error
        result = ToolResult(context.call.id, context.call.name, str(error), error=True, cause=cause or error)
    if not isinstance(result, ToolResult):
        raise TypeError(f"a tool call filter returned {result!r}, not a ToolResult, such as proceed() gives")
    if guard is not None:
        guard.results.append((result, began))
    return result


async def _text(
    kernel: KernelLike, call: ToolCall, offered: Toolset | None, guard: CallGuard | None, began: set[Function]
) -> str:
    function = kernel.function(call.name) if offered is None else _find_offered(kernel, call.name, offered)
    try:
        arguments = json.loads(as_json(call.arguments) or "{}")
    except (ValueError, RecursionError) as error:
        raise ArgumentsInvalid(function.full_name, [f"the arguments are not JSON: {error}"]) from error
    if not isinstance(arguments, dict):
        raise ArgumentsInvalid(function.full_name, ["the arguments must be one JSON object"])
    if guard is not None:
        function.structure_arguments(arguments, lenient=True)
        if refusal := await guard.refusal(function, arguments):
            raise PorticoError(refusal)
        began.add(function)
    result = await kernel.invoke_json(function, arguments, lenient=True)
    try:
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise FunctionFailed(function.full_name, error) from error


def _find_offered(kernel: KernelLike, name: str, offered: Toolset) -> Function:
    """Find an offered function; one of an earlier turn, which the model has seen, may be there and not be offered."""
    try:
        return offered.find(name)
    except FunctionNotFound:
        if name in kernel.functions:
            raise FunctionNotFound(name, tuple(offered.functions), offered=False) from None
        raise


T = TypeVar("T")

Choose: TypeAlias = "Callable[[TurnState], Awaitable[tuple[Toolset, tuple[Selection, ...], bool]]]"
"""Chooses what is offered; says how, where something was left out, and whether to choose again in the next round."""

_NO_TOOLS = Toolset(())
_OPEN = "A limit of the turn was reached before this call had a result."
_HALF = (
    "The reply was cut short before this call was whole, so nothing was called. "
    "Call again with shorter arguments, and with fewer words before the call."
)


async def take_turn(
    kernel: KernelLike,
    chat: ChatService,
    request: ChatRequest,
    *,
    toolset: Toolset,
    choose: Choose | None = None,
    format: ResponseFormat[Any] | None = None,
    limits: ToolLoopLimits | None = None,
    auto_invoke: bool = True,
    parallel: bool = True,
    streamed: bool = False,
) -> AsyncGenerator[TurnEvent[Any], None]:
    """Take a turn and yield what happens, the `Turn` last; `ChatDelta` and `PartialValue` only when ``streamed``.

    ``request`` offers the tools of ``toolset``, and only those can be called. With ``choose`` it is asked for them when
    the turn begins, within the turn's time, and after the calls of each reply where it wants to be.
    Raises ``LimitExceeded``; ``ResponseInvalid`` for a reply that is not of its form after all repairs, or
    was cut short; what the service raises. A function that fails is a message to the model, never an error here.
    """
    turn = TurnState(kernel, chat, request, format=format, limits=limits or ToolLoopLimits(), choose=choose)
    turn.auto_invoke, turn.parallel = auto_invoke, parallel
    turn.offer(toolset)
    for offered in await turn.choose_tools():
        yield offered
    async with aclosing(turn.events(streamed=streamed)) as events:
        async for event in events:
            yield event


class TurnState:
    """The state of one turn."""

    def __init__(
        self,
        kernel: KernelLike,
        chat: ChatService,
        request: ChatRequest,
        *,
        format: ResponseFormat[Any] | None,
        limits: ToolLoopLimits,
        choose: Choose | None,
    ) -> None:
        # Before sources are written into the user's messages.
        self.guard = CallGuard.of(kernel, request.messages)
        if self.guard is not None:
            request = replace(request, messages=join_unlike(request.messages))
        request = fit(request, chat.capabilities)
        self.kernel = kernel
        self.chat = chat
        self.toolset = _NO_TOOLS
        self.choose = choose
        self.made: list[tuple[str, str]] = []
        self.selections: tuple[Selection, ...] = ()
        self.format = format
        self.limits = limits
        self.auto_invoke = self.parallel = True
        self.manner: Manner = "schema"
        self.unformed = self.request = request
        self.rounds = self.calls = self.repairs = 0
        self.usage = Usage()
        self.added: list[Message] = []
        self.reply: ChatReply | None = None
        self.deadline = None if limits.seconds is None else asyncio.get_running_loop().time() + limits.seconds

    async def choose_tools(self) -> Sequence[FunctionsOffered]:
        if self.choose is None or self.request.tool_choice.mode == "none":
            return ()
        toolset, selections, again = await self.within(self.choose(self))
        self.selections += selections
        self.choose = self.choose if again else None
        self.offer(toolset)
        return list(map(FunctionsOffered, selections))

    def offer(self, toolset: Toolset) -> None:
        """Make the request ready, with these tools."""
        self.toolset = toolset
        request = self.unformed
        if request.tools is not toolset.tools:
            request = self.unformed = replace(request, tools=toolset.tools)
        if self.format is not None:
            self.manner = self.format.manner(self.chat.capabilities, tools=bool(request.offered))
            request = self.format.ask(request, self.manner)
        self.request = request

    async def events(self, *, streamed: bool) -> AsyncGenerator[TurnEvent[Any], None]:
        while True:
            request = self.next_request()
            if streamed:
                async with aclosing(self.ask_streamed(request)) as pieces:
                    async for piece in pieces:
                        yield piece
            else:
                self.reply = await self.within(self.chat.complete(request))
            reply = self.take_reply()
            if request.tool_choice.mode == "required" and not reply.tool_calls:
                raise self.make_no_call_error(reply)
            if reply.tool_calls and self.auto_invoke:
                async with aclosing(self.carry_out(reply)) as steps:
                    async for step in steps:
                        yield step
                for offered in await self.choose_tools():
                    yield offered
                continue
            try:
                value = None if reply.tool_calls and self.format is not None else self.value_of(reply)
            except ReplyProblem as fault:
                self.send_back(reply, fault)
                continue
            allowed = self.toolset if self.request.tool_choice.mode != "none" else _NO_TOOLS
            toolset = allowed.guarded(self.guard) if reply.tool_calls else None
            plain = self.make_plain(reply)
            yield Turn(value, plain, tuple(self.added), self.usage, self.rounds, self.selections, toolset)
            return

    def next_request(self) -> ChatRequest:
        """Return what to ask next; a limit that was reached ends the turn here."""
        limits = self.limits
        if self.rounds >= limits.rounds:
            raise self.make_limit_error(f"{limits.rounds} rounds")
        spent = self.usage.input_tokens + self.usage.output_tokens
        if limits.tokens is not None and spent >= limits.tokens:
            raise self.make_limit_error(f"{limits.tokens} tokens ({spent} were used)")
        if limits.cost is not None:
            if getattr(self.chat, "knows_cost", True) is False:
                raise unknown_price(self.chat.name)
            if (cost := self.usage.cost or 0.0) >= limits.cost:
                raise self.make_limit_error(f"{limits.cost:g} US dollars ({cost:.6g} were spent)")
        if (money := purse()) is not None:
            money.open_for(self.chat)
        self.rounds += 1
        if not self.added:
            return self.request
        return replace(self.request, messages=(*self.request.messages, *self.added))

    async def ask_streamed(self, request: ChatRequest) -> AsyncGenerator[ChatDelta | PartialValue[Any], None]:
        self.reply = None
        drafts = DraftReader(self.format, self.manner) if self.format is not None else None
        stream = self.chat.stream(request)
        try:
            while (delta := await self.within(anext(stream, None))) is not None:
                if delta.reply is not None:
                    self.reply = delta.reply
                yield delta
                if drafts is not None and delta.text:
                    draft = drafts.feed(delta.text)
                    if draft is not NOTHING:
                        yield PartialValue(draft)
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()

    def take_reply(self) -> ChatReply:
        """Take note of the reply."""
        reply = self.reply
        if reply is None:
            raise ResponseInvalid(f"The chat service {self.chat.name!r} ended its stream without a reply.")
        reply = expand_calls(reply)
        read = reply.message.untrusted or ()
        service = reply.service or self.chat.name
        Event.of_run()(Event.ChatUsed(service, reply.model, reply.usage, read, reply.citations))
        if self.guard is not None:
            # A service that searches the web itself says so.
            self.guard.read.update(read)
            reply = replace(reply, message=replace(reply.message, untrusted=self.guard.untrusted))
        self.usage += reply.usage
        self.added.append(reply.message)
        if self.limits.cost is not None:
            require_cost(self.chat, reply)
        if (money := purse()) is not None:
            money.pay(self.chat, reply)
        return reply

    @property
    def untrusted(self) -> tuple[str, ...] | None:
        """What a message has that the turn adds now."""
        return None if self.guard is None else self.guard.untrusted

    def make_plain(self, reply: ChatReply) -> ChatReply:
        """Return a reply whose calls are as `Kernel.call_tool` takes them."""
        parts = (self.toolset.plain(part) if isinstance(part, ToolCall) else part for part in reply.message.content)
        return replace(reply, message=replace(reply.message, content=tuple(parts)))

    async def carry_out(self, reply: ChatReply) -> AsyncGenerator[ToolStarted | ToolFinished, None]:
        """Carry out the calls of one reply, side by side where there are several and the turn allows it."""
        calls = reply.tool_calls
        self.calls += len(calls)
        if self.calls > self.limits.calls:
            raise self.make_limit_error(f"{self.limits.calls} tool calls (the last reply asks for {len(calls)})")
        # A model may call what it saw, and in mode "none" that is nothing.
        toolset = self.toolset if self.request.tool_choice.mode != "none" else _NO_TOOLS
        plain = [toolset.plain(call) for call in calls]
        half = plain[-1] if reply.finish == "length" and not _is_whole(plain[-1]) else None
        results: list[ToolResult] = []
        if len(calls) == 1 or not self.parallel:
            for call in plain:
                yield ToolStarted(call)
                finished = await self.within(self.time_call(call, toolset, half))
                yield finished
                results.append(finished.result)
        else:
            async with aclosing(self.side_by_side(plain, toolset, half, results)) as steps:
                async for step in steps:
                    yield step
        answers = tuple(
            self.cut(ToolResult(call.id, call.name, result.content, result.error, result.cause))
            for call, result in zip(calls, results, strict=True)
        )
        if self.guard is not None:
            self.guard.read_results()
        self.added.append(Message("tool", answers, untrusted=self.untrusted))
        self.made += [(call.name, answer.content) for call, answer in zip(plain, answers, strict=True)]
        if self.request.tool_choice.mode == "required":
            # It has called; asked again in this mode, it could never answer.
            choice = replace(self.request.tool_choice, mode="auto")
            self.unformed, self.request = (replace(each, tool_choice=choice) for each in (self.unformed, self.request))

    async def side_by_side(
        self, calls: Sequence[ToolCall], toolset: Toolset, half: ToolCall | None, results: list[ToolResult]
    ) -> AsyncGenerator[ToolStarted | ToolFinished, None]:
        """Run the calls at once, yield each when it is done, and append the results in the order of the calls."""
        tasks = [asyncio.ensure_future(self.time_call(call, toolset, half)) for call in calls]
        try:
            for call in calls:
                yield ToolStarted(call)
            waiting = set(tasks)
            while waiting:
                done, waiting = await self.within(asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED))
                for task in [task for task in tasks if task in done]:
                    yield task.result()
            results += [task.result().result for task in tasks]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def time_call(self, call: ToolCall, toolset: Toolset, half: ToolCall | None) -> ToolFinished:
        clock = asyncio.get_running_loop().time
        started = clock()
        if call is half:
            result = ToolResult(call.id, call.name, _HALF, error=True)
        elif self.guard is not None:
            result = await carry_out_call(self.kernel, call, toolset, self.guard)
        else:
            result = await self.kernel.call_tool(call, offered=toolset)
        return ToolFinished(call, result, clock() - started)

    def cut(self, result: ToolResult) -> ToolResult:
        """Keep a result within what the model is shown."""
        most = self.limits.result_characters
        if len(result.content) <= most:
            return result
        note = f"\n[cut here: the result has {len(result.content):,} characters, {most:,} are shown]"
        return replace(result, content=result.content[:most] + note)

    def value_of(self, reply: ChatReply) -> Any:
        if self.format is None:
            return reply.text
        if reply.finish == "length":
            raise ResponseInvalid(
                f"The reply of {self.chat.name!r} was cut short after {reply.usage.output_tokens} tokens, so it is no "
                f"{self.format.name}. Allow more with max_tokens.",
                text=reply.text,
            )
        return self.format.read(reply.text, self.manner)

    def send_back(self, reply: ChatReply, fault: ReplyProblem) -> None:
        """Have a reply that is not of its form mended."""
        self.repairs += 1
        if self.format is None or self.repairs > self.limits.repairs:
            raise ResponseInvalid(
                f"The reply of {self.chat.name!r} is not of the form asked for, after {self.limits.repairs} attempts "
                f"to mend it: {fault}.",
                text=reply.text,
            ) from fault
        if self.manner == "instruct":
            # Tools kept the service from being held to the schema; to mend a reply it needs none.
            self.manner = self.format.manner(self.chat.capabilities, tools=False)
        if self.manner != "instruct" and self.request.response_schema is None:
            choice = ToolChoice("none")
            self.request = self.format.ask(replace(self.unformed, tool_choice=choice), self.manner)
        faults = "\n".join(f"- {sentence}" for sentence in fault.faults)
        self.added.append(
            Message.of(
                "user",
                f"{REPAIR_HEAD}{faults}\nAnswer again with the whole corrected JSON and nothing else.",
                untrusted=self.untrusted,
            )
        )

    def make_no_call_error(self, reply: ChatReply) -> ResponseInvalid:
        reason = "This service, or this model, ignores the option: choose another, or leave the choice to the model."
        if reply.finish == "length":
            reason = f"It was cut short after {reply.usage.output_tokens} tokens: allow more with max_tokens."
        return ResponseInvalid(
            f"The reply of {self.chat.name!r} calls no function, and tool_choice is 'required'. {reason}",
            text=reply.text,
        )

    def make_limit_error(self, limit: str) -> LimitExceeded:
        calls = [part for part in self.added[-1].content if isinstance(part, ToolCall)] if self.added else []
        # Services refuse a conversation with a call that has no answer, and this one may be continued.
        answers = tuple(ToolResult(call.id, call.name, _OPEN, error=True) for call in calls)
        return LimitExceeded(
            f"The turn reached its limit of {limit} before the model answered. Allow more: limits=ToolLoopLimits(…).",
            messages=(*self.added, Message("tool", answers, untrusted=self.untrusted)) if answers else self.added,
            usage=self.usage,
        )

    async def within(self, awaitable: Awaitable[T]) -> T:
        """Wait for no longer than the turn may take."""
        if self.deadline is None:
            return await awaitable
        try:
            async with asyncio.timeout_at(self.deadline) as limit:
                return await awaitable
        except TimeoutError as error:
            if not limit.expired():  # the service's own
                raise
            raise self.make_limit_error(f"{self.limits.seconds:g} seconds") from error


def _is_whole(call: ToolCall) -> bool:
    """Tell whether a call's arguments are all there; empty ones stand for none only where the reply went on."""
    try:
        json.loads(call.arguments)
    except (ValueError, RecursionError):
        return False
    return True
