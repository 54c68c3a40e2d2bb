"""/v1 as clients of OpenAI's API know it: the models, and chat completions, whole and streamed."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from portico import Message, Usage
from portico.errors import ContextOverflow, PorticoError, RateLimited
from portico_serve._api.routes import error_response
from portico_serve._guard.refusals import DO_NOT_RETRY, ORIGIN, failure, openai_error
from portico_serve._json import JsonResponse, to_json
from portico_serve._openai.answering import Agent, Answered, Answering, Asked, Piece, answer_by_run

if TYPE_CHECKING:
    from portico_serve._desk import Desk

RUN, AGENT = "portico", "portico-agent"
_LONGEST_GOAL = 65_536
_PING = 15.0
_IGNORED_ROLES = ("tool", "function")
# Where one of these is wanted, an answer without it would be wrong.
_UNSUPPORTED: Mapping[str, Callable[[Any], bool]] = {
    "n": lambda value: value not in (None, 1),
    "tools": bool,
    "functions": bool,
    "logprobs": bool,
    "audio": bool,
    "response_format": lambda value: value is not None and value != {"type": "text"},
}
_MARK = re.compile(r"\[\^?([0-9]{1,3})\]")
_OPENING = re.compile(r"[\[【［(]")
_LIKE_A_MARK = re.compile(r"[\[【［]|\((?i:so|pa|do|re)")


class _Wrong(Exception):
    """A request is wrong: what, and where."""

    def __init__(self, message: str, param: str | None = None, status: int = 400, code: str | None = None) -> None:
        super().__init__(message)
        self.param, self.status, self.code = param, status, code


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a request wants."""

    model: str
    asked: Asked
    stream: bool
    usage: bool


def routes(desk: Desk) -> list[BaseRoute]:
    """Return the routes of /v1."""
    made = _Completions(desk)
    return [
        Route("/v1/models", made.models, methods=["GET"]),
        Route("/v1/models/{model}", made.model, methods=["GET"]),
        Route("/v1/chat/completions", made.complete, methods=["POST"]),
    ]


class _Completions:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._agent = Agent(desk.kernel, desk.sources)
        self._since = int(time.time())

    async def models(self, request: Request) -> Response:
        return JsonResponse({"object": "list", "data": [self._describe(each) for each in self._names()]})

    async def model(self, request: Request) -> Response:
        name = request.path_params["model"]
        if name not in self._names():
            return _error(self._no_model(name))
        return JsonResponse(self._describe(name))

    async def complete(self, request: Request) -> Response:
        try:
            wanted = _read(await request.body())
            if wanted.model not in self._names():
                raise self._no_model(wanted.model)
        except _Wrong as wrong:
            return _error(wrong)
        if wanted.model == AGENT:
            answering = self._agent.answer(wanted.asked)
        else:
            answering = answer_by_run(self._desk, wanted.asked, request.scope[ORIGIN])
        head = {"id": f"chatcmpl-{secrets.token_hex(12)}", "created": int(time.time()), "model": wanted.model}
        if wanted.stream:
            events = _events(answering, head, usage=wanted.usage)
            return StreamingResponse(events, media_type="text/event-stream", headers={"x-accel-buffering": "no"})
        return await _unless_gone(request, _whole(answering, head))

    def _names(self) -> list[str]:
        return [RUN, *([AGENT] if self._agent.can_answer else [])]

    def _describe(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": self._since, "owned_by": "portico"}

    def _no_model(self, name: str) -> _Wrong:
        words = f"There is no model {name[:80]!r}. There are {', '.join(self._names())}."
        return _Wrong(words, "model", 404, "model_not_found")


def _read(content: bytes) -> _Wanted:
    """Read a request; what this server cannot do and would make an answer wrong is refused."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise _Wrong(f"The body is not JSON: {error}.") from error
    if not isinstance(body, dict):
        raise _Wrong("The body is not a JSON object.")
    for name, asks in _UNSUPPORTED.items():
        if asks(body.get(name)):
            raise _Wrong(f"This server does not support {name}: leave it out.", name, code="unsupported_parameter")
    model, stream, options = body.get("model"), body.get("stream", False), body.get("stream_options")
    if not isinstance(model, str):
        raise _Wrong("Name a model.", "model")
    if stream is not None and not isinstance(stream, bool):
        raise _Wrong("stream is true or false.", "stream")
    usage = isinstance(options, dict) and options.get("include_usage") is True
    return _Wanted(model, _read_messages(body.get("messages")), bool(stream), usage)


def _read_messages(given: Any) -> Asked:
    if not isinstance(given, list) or not given:
        raise _Wrong("messages is a list of one or more messages.", "messages")
    said: list[Message] = []
    instructions: list[str] = []
    for number, each in enumerate(given):
        place = f"messages[{number}]"
        role = each.get("role") if isinstance(each, dict) else None
        if role in _IGNORED_ROLES:
            continue  # results of calls that this server did not make
        if role not in ("system", "developer", "user", "assistant"):
            raise _Wrong(f"{place} is no message of a system, a user or an assistant.", place)
        text = _read_text(each.get("content"), f"{place}.content")
        if role in ("system", "developer"):
            instructions.append(text)
        elif text.strip():
            said.append(Message.of("user" if role == "user" else "assistant", text))
    if not said or said[-1].role != "user":
        raise _Wrong("The last message is of the user, and not blank.", "messages")
    goal = said.pop().text
    if len(goal.encode("utf-8", "replace")) > _LONGEST_GOAL:
        words = f"The last message has more than {_LONGEST_GOAL:,} bytes."
        raise _Wrong(words, "messages", code="context_length_exceeded")
    return Asked(goal, tuple(said), "\n\n".join(filter(str.strip, instructions)))


def _read_text(content: Any, place: str) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        texts = [
            each.get("text") if isinstance(each, dict) and each.get("type") == "text" else None for each in content
        ]
        if all(isinstance(each, str) for each in texts):
            return "\n".join(str(each) for each in texts)
    raise _Wrong("This server reads texts alone: no pictures, sounds and files.", place)


async def _whole(answering: Answering, head: Mapping[str, Any]) -> Response:
    try:
        async with aclosing(answering) as pieces:
            async for piece in pieces:
                last = piece
    except (PorticoError, ValueError) as error:
        return _error(_wrong(error))
    assert isinstance(last, Answered)  # noqa: S101 - it is the last of all
    text = "\n\n".join(filter(None, (last.text, last.notes)))
    message = {"role": "assistant", "content": text, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": last.finish}
    body = {**head, "object": "chat.completion", "choices": [choice], "usage": _usage(last.usage)}
    return JsonResponse(body if last.run is None else {**body, "run": last.run})


async def _events(answering: Answering, head: Mapping[str, Any], *, usage: bool) -> AsyncIterator[str]:
    """Yield server-sent events; comments meanwhile, so that no proxy gives up."""
    head = {**head, "object": "chat.completion.chunk"}
    written = _Written()

    def chunk(delta: Mapping[str, Any], finish: str | None = None, **more: Any) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _event({**head, "choices": [choice], **({"usage": None} if usage else {}), **more})

    yield chunk({"role": "assistant", "content": ""})
    try:
        coming = asyncio.ensure_future(anext(answering, None))
        try:
            while True:
                await asyncio.wait([coming], timeout=_PING)
                if not coming.done():
                    yield ": ping\n\n"
                    continue
                piece = coming.result()
                if piece is None:
                    break
                coming = asyncio.ensure_future(anext(answering, None))
                match piece:
                    case Piece(work=work) if work:
                        # As models with reasoning have it; a client that does not know it passes it over.
                        yield chunk({"reasoning_content": work})
                        # What was written was not the answer.
                        text, written = "\n\n" if written.sent else "", _Written()
                    case Piece(text=text):
                        text = written.add(text)
                    case Answered():
                        last, text = piece, written.end(piece)
                if text:
                    yield chunk({"content": text})
        finally:
            coming.cancel()
            await _ended(coming)
            await _ended(asyncio.ensure_future(answering.aclose()))
    except (PorticoError, ValueError) as error:
        wrong = _wrong(error)
        yield _event(openai_error(wrong.status, str(wrong), wrong.code, wrong.param))
        return
    except Exception:
        refused = failure()
        yield _event(openai_error(refused.status, refused.message, refused.kind))
        raise
    more = {} if last.run is None else {"run": last.run}
    yield chunk({}, last.finish, **more)
    if usage:
        yield _event({**head, "choices": [], "usage": _usage(last.usage)})
    yield "data: [DONE]\n\n"


async def _ended(work: asyncio.Future[Any]) -> None:
    """Wait until something has ended, however often this is cancelled: a client that leaves cancels again and again."""
    with anyio.CancelScope(shield=True):
        while not work.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([work])


class _Written:
    """What was sent of an answer, as far as it cannot change any more.

    In the end the sources are numbered in the order in which the answer cites them. As long as its marks come in this
    order, what is written stays; from the first that does not, the rest waits for the end.
    """

    def __init__(self) -> None:
        self.sent, self._waiting = "", ""
        self._cited = 0
        self._stopped = False

    def add(self, text: str) -> str:
        """Take a piece, and return what can be sent now."""
        self._waiting += text
        ready = ""
        while not self._stopped and self._waiting:
            opening = _OPENING.search(self._waiting)
            if opening is None:
                ready, self._waiting = ready + self._waiting, ""
                break
            ready, self._waiting = ready + self._waiting[: opening.start()], self._waiting[opening.start() :]
            taken = self._take_mark()
            if not taken:
                break
            ready += taken
        # An answer ends without the white space that was written last.
        sent = ready.rstrip()
        self._waiting = ready[len(sent) :] + self._waiting
        self.sent += sent
        return sent

    def _take_mark(self) -> str:
        """Return what stands in brackets at the beginning, if that cannot change; nothing if it may."""
        closing = re.search(r"[\])】］\n]", self._waiting)
        if closing is None:
            return ""
        inside = self._waiting[: closing.end()]
        if _LIKE_A_MARK.match(inside) and any(each.isdigit() for each in inside):
            mark = _MARK.fullmatch(inside)
            if mark is None or int(mark[1]) > self._cited + 1:
                self._stopped = True
                return ""
            self._cited = max(self._cited, int(mark[1]))
        self._waiting = self._waiting[len(inside) :]
        return inside

    def end(self, answer: Answered) -> str:
        """Return what is missing of the answer, and what follows it."""
        rest = answer.text.removeprefix(self.sent)
        if self.sent and not answer.text.startswith(self.sent):
            rest = f"\n\n{answer.text}" if answer.text.strip() != self.sent.strip() else ""
        return rest + (f"\n\n{answer.notes}" if answer.notes else "")


async def _unless_gone(request: Request, work: Awaitable[Response]) -> Response:
    """Await an answer; where the client goes away meanwhile, nothing more is done for it."""
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait([task, gone], return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else Response(status_code=204)
    finally:
        for each in (task, gone):
            each.cancel()
        await asyncio.wait([task, gone])


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def _wrong(error: Exception) -> _Wrong:
    match error:
        case ContextOverflow():
            return _Wrong(str(error), "messages", code="context_length_exceeded")
        case RateLimited():
            return _Wrong(str(error), status=429, code=type(error).__name__)
        case PorticoError():
            return _Wrong(str(error), status=error_response(error).status_code, code=type(error).__name__)
        case _:
            return _Wrong(f"{error}.", "messages")


def _error(wrong: _Wrong) -> Response:
    body = openai_error(wrong.status, str(wrong), wrong.code, wrong.param)
    return JsonResponse(body, wrong.status, DO_NOT_RETRY)


def _event(body: Mapping[str, Any]) -> str:
    return f"data: {to_json(body)}\n\n"
