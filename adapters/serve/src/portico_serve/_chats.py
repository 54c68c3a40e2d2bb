"""Conversations with an agent that has the sources and functions; each is a file, so that it survives a restart."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from platformdirs import user_state_path

from portico import ChatDelta, Message, Passages, Source, Thread, ToolFinished, ToolStarted
from portico.errors import ConfigurationError, LimitExceeded, PorticoError, ThreadBusy
from portico.plans import plan_of
from portico_cli.arguments import write_text
from portico_cli.conversation import Grounding, ThreadFile, TurnTaker
from portico_cli.failures import describe_error
from portico_cli.show.chat import Turn
from portico_serve._inputs import NotFound
from portico_serve._json import to_json
from portico_serve._runs.feeds import Watcher
from portico_serve._runs.views import cut_value, safe_link

if TYPE_CHECKING:
    from portico import FlowReview, FunctionInvocation, Kernel, ToolCall

MOST_CHATS = 200
ANSWERS = ("yes", "no", "always")
_ID = re.compile(r"[0-9a-f]{24}")
_LONGEST_TITLE = 80
_LONGEST_RESULT = 20_000
_MOST_WRITTEN = 500_000
_CHAT: ContextVar[_Chat | None] = ContextVar("portico_serve_chat", default=None)


class _Chat:
    """One conversation: its thread, the turn that it takes now, and those who watch it."""

    def __init__(self, id: str, kernel: Kernel, sources: Sequence[str], folder: Path) -> None:
        self.id = id
        self.watchers: list[Watcher] = []
        self.task: asyncio.Task[None] | None = None
        self.always: set[str] = set()
        self._file = ThreadFile(folder / f"{id}.json")
        self._turns_file = folder / f"{id}.turns.json"
        self._grounding = Grounding(kernel, sources, number=False)
        self._turn_taker = TurnTaker(self._grounding.agent())
        self._thread = self._file.load() or Thread(id)
        self._asking = asyncio.Lock()
        self._question: tuple[dict[str, Any], asyncio.Future[str]] | None = None
        self._said, self._written = "", ""
        self._tools: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._failed: dict[str, Any] | None = None
        self._turns = self._read_turns()

    @property
    def passages(self) -> Passages:
        """The passages that were found in this conversation."""
        return self._grounding.passages

    @property
    def idle(self) -> bool:
        """Whether the conversation may leave the memory."""
        return self.task is None and not self.watchers

    @property
    def title(self) -> str:
        """The beginning of what was said first."""
        return _title(self._turns, self._said)

    def describe(self) -> dict[str, Any]:
        """Return everything that a page shows."""
        messages = [message for turn in self._turns for message in _messages(turn)]
        if self.task is not None:
            messages.append({"role": "user", "text": self._said})
        return {
            "chat": self.id,
            "title": self.title,
            "messages": messages,
            "busy": self.task is not None,
            "writing": self._written,
            "tools": list(self._tools.values()),
            "question": self._question[0] if self._question is not None else None,
            "failed": self._failed,
        }

    def snapshot(self) -> str:
        """Return everything that a page shows as JSON."""
        return to_json(self.describe())

    def put(self, event: str, data: Any) -> None:
        """Give a piece to every watcher."""
        if self.watchers:
            text = to_json(data)
            for each in self.watchers:
                each.put(event, text)

    def begin(self, text: str) -> None:
        """Begin a turn. Raises ``ThreadBusy`` while another one is taken."""
        if self.task is not None:
            raise ThreadBusy("The agent still answers. Wait for that, or stop it.")
        self._said, self._failed = text, None
        self.task = asyncio.create_task(self._answer(text))
        self.task.add_done_callback(lambda task: self._rest())
        self.put("message", {"role": "user", "text": text})

    async def stop(self) -> None:
        """Stop the turn, if one is taken: the conversation is as it was before."""
        if self.task is not None:
            if not self.task.cancelling():
                self.task.cancel()
            await asyncio.wait([self.task])

    def answer(self, question: str, answer: str) -> None:
        """Answer the open question. Raises ``ThreadBusy`` where another one is open, or none."""
        if self._question is None or self._question[0]["question"] != question or self._question[1].done():
            raise ThreadBusy("This question has its answer already.")
        self._question[1].set_result(answer)

    async def ask(self, function: str, arguments: Mapping[str, Any], notes: Iterable[str] = ()) -> str:
        """Put a question to all who watch, and wait for its answer: "yes", "no" or "always"."""
        async with self._asking:
            shown = cut_value(_parsed(json.dumps(dict(arguments), default=repr)))[0]
            asked = {"question": secrets.token_hex(8), "function": function, "arguments": shown, "notes": list(notes)}
            answered: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            self._question = (asked, answered)
            self.put("question", asked)
            try:
                return await answered
            finally:
                self._question = None
                self.put("snapshot", self.describe())

    async def _answer(self, text: str) -> None:
        _CHAT.set(self)
        try:
            turn = await self._take(text)
            self._grounding.check(self._thread, turn)
            self._turns.append(_turn_to_json(text, turn))
            self.put("message", _messages(self._turns[-1])[-1])
            self._save()
        except asyncio.CancelledError:
            self._fail("Stopped. The conversation is as it was before.", "Stopped")
            raise
        except Exception as error:  # noqa: BLE001 - whatever fails in a turn, the conversation continues
            kind, message, _ = describe_error(error)
            self._fail(message, kind)

    def _rest(self) -> None:
        """End the turn; it may have been stopped before it began."""
        self.task = None
        self._said, self._written = "", ""
        self._tools.clear()
        self.put("snapshot", self.describe())

    def _fail(self, message: str, kind: str) -> None:
        self._failed = {"text": self._said, "message": message, "kind": kind}
        self.put("error", self._failed)

    async def _take(self, text: str) -> Turn:
        """Take a turn, and put what happens to those who watch."""

        def see(event: object) -> None:
            match event:
                case ChatDelta(text=text) if text and len(self._written) < _MOST_WRITTEN:
                    self._written += text
                    self.put("text", {"text": text})
                case ToolStarted(call=call):
                    self._written = ""  # what was said before a call is not the answer
                    self._put_tool(call, {"state": "started"})
                case ToolFinished(call=call):
                    self._put_tool(call, {"state": "finished"} | _outcome(event))

        def begin_again() -> None:
            self._written = ""
            self.put("snapshot", self.describe())

        return await self._turn_taker.take(Message.of("user", text), self._thread, see, begin_again)

    def _put_tool(self, call: ToolCall, more: Mapping[str, Any]) -> None:
        self._tools[call.id] = {"id": call.id, "name": call.name, "arguments": _parsed(call.arguments), **more}
        self.put("tool", self._tools[call.id])

    def _save(self) -> None:
        self._file.save(self._thread)
        kept = {"turns": self._turns, "sources": [asdict(each) for each in self.passages.sources]}
        write_text(self._turns_file, to_json(kept), private=True)

    def _read_turns(self) -> list[dict[str, Any]]:
        """Return the turns as they were shown; of a thread without them, its words alone."""
        turns: list[dict[str, Any]] = []
        with suppress(OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            kept = json.loads(self._turns_file.read_text("utf-8"))
            turns = [each for each in kept["turns"] if isinstance(each["user"], str)]
            self._grounding.passages = Passages(sources=[Source(**each) for each in kept["sources"]])
        if len(turns) == len(self._thread.turns):
            return turns
        return [_bare_turn(each.messages) for each in self._thread.turns]


class Chats:
    """The conversations in a folder, by default that of the user's state, and those among them that are in memory.

    A function with effects is called when a person has said yes, once or for the whole conversation; the question is
    open to all who watch.
    """

    def __init__(self, kernel: Kernel, sources: Sequence[str], folder: Path | None = None) -> None:
        self._kernel = kernel
        self._sources = tuple(sources)
        self._folder = folder or user_state_path("portico", appauthor=False) / "chats"
        self._chats: OrderedDict[str, _Chat] = OrderedDict()
        self._closed = False
        kernel.middleware.function.append(_ask_before_effects)
        kernel.middleware.tool_call.append(
            Passages.number_results(kernel, lambda: None if (chat := _CHAT.get()) is None else chat.passages)
        )
        others = kernel.decide_flow

        async def decide(review: FlowReview) -> bool | str:
            if (chat := _CHAT.get()) is not None:
                name = review.step.function if isinstance(review.step.function, str) else review.step.id
                said = await chat.ask(name, review.arguments, [each.why for each in review.flows])
                return True if said != "no" else "the user did not agree"
            return False if others is None else await others(review)

        kernel.approve_flows(decide)

    def close_streams(self) -> None:
        """End all streams, so that a server that stops need not wait for those who watch."""
        self._closed = True
        for chat in self._chats.values():
            for each in chat.watchers:
                each.end()

    async def aclose(self) -> None:
        """End all streams and stop all turns: an open question has the answer no."""
        self.close_streams()
        await asyncio.gather(*(chat.stop() for chat in self._chats.values()))

    def create(self) -> str:
        """Begin a conversation and return its name.

        Raises ``ConfigurationError`` where there is nothing to talk with, ``LimitExceeded`` where all are in use.
        """
        chat = self._open(secrets.token_hex(12))
        service = chat._grounding.service  # noqa: SLF001 - of this module
        if not self._sources and not getattr(service.capabilities, "language_model", True):
            del self._chats[chat.id]
            raise ConfigurationError(
                f"The chat service {service.name!r} only quotes sources, and there is none. Give `--docs FOLDER`, or "
                "name a language model under [chat] of portico.toml."
            )
        return chat.id

    async def listing(self) -> list[dict[str, Any]]:
        """Return the conversations, the newest first."""
        saved = await asyncio.to_thread(self._read_titles)
        new = [chat for id, chat in self._chats.items() if id not in saved]
        listed: list[dict[str, Any]] = [
            {"chat": chat.id, "title": chat.title, "updated_at": None} for chat in reversed(new)
        ]
        listed += [{"chat": id, **each} for id, each in saved.items()]
        return [
            each | {"busy": (chat := self._chats.get(each["chat"])) is not None and not chat.idle} for each in listed
        ]

    def _read_titles(self) -> dict[str, dict[str, Any]]:
        changed: dict[Path, float] = {}
        for file in self._folder.glob("*.turns.json"):
            with suppress(OSError):  # it was deleted just now
                if _ID.fullmatch(file.name.partition(".")[0]):
                    changed[file] = file.stat().st_mtime
        found: dict[str, dict[str, Any]] = {}
        for file in sorted(changed, key=changed.__getitem__, reverse=True)[:MOST_CHATS]:
            title = "(unreadable)"
            with suppress(OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
                title = _title(json.loads(file.read_text("utf-8"))["turns"], "")
            at = datetime.fromtimestamp(changed[file], UTC).isoformat(timespec="seconds")
            found[file.name.partition(".")[0]] = {"title": title, "updated_at": at}
        return found

    def describe(self, id: str) -> dict[str, Any]:
        """Return everything that a page shows of a conversation; ``NotFound`` if there is none of this name."""
        return self._find(id).describe()

    def send(self, id: str, text: str) -> None:
        """Say something in a conversation; the answer comes to those who watch."""
        self._find(id).begin(text)

    def answer(self, id: str, question: str, answer: str) -> None:
        """Answer the open question of a conversation."""
        self._find(id).answer(question, answer)

    async def stop(self, id: str) -> None:
        """Stop the turn that a conversation takes now."""
        await self._find(id).stop()

    async def delete(self, id: str) -> None:
        """Forget a conversation, and remove its files, also those that cannot be read."""
        chat = self._chats.pop(id, None)
        if chat is None and not self._is_kept(id):
            raise _unknown(id)
        for name in (f"{id}.json", f"{id}.turns.json"):
            (self._folder / name).unlink(missing_ok=True)
        if chat is not None:
            await chat.stop()
            for each in chat.watchers:
                each.end()

    @asynccontextmanager
    async def watch(self, id: str) -> AsyncIterator[Watcher]:
        """Watch a conversation as long as the block."""
        chat = self._find(id)
        watcher = Watcher(chat.snapshot)
        if self._closed:
            watcher.end()
        chat.watchers.append(watcher)
        try:
            yield watcher
        finally:
            chat.watchers.remove(watcher)

    def _find(self, id: str) -> _Chat:
        if id in self._chats:
            self._chats.move_to_end(id)
            return self._chats[id]
        if not self._is_kept(id):
            raise _unknown(id)
        return self._open(id)

    def _is_kept(self, id: str) -> bool:
        return _ID.fullmatch(id) is not None and (self._folder / f"{id}.json").exists()

    def _open(self, id: str) -> _Chat:
        if len(self._chats) >= MOST_CHATS:
            rest = next((each for each in self._chats.values() if each.idle), None)
            if rest is None:
                raise LimitExceeded(f"{MOST_CHATS} conversations are in use. Close one of their pages.")
            del self._chats[rest.id]
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        chat = self._chats[id] = _Chat(id, self._kernel, self._sources, self._folder)
        return chat


def _unknown(id: str) -> NotFound:
    return NotFound(f"There is no conversation {id!r:.80}.")


async def _ask_before_effects(context: FunctionInvocation, proceed: Callable[[], Awaitable[Any]]) -> Any:
    """Ask before a call with effects that an agent makes; the model reads why one was not made."""
    function, chat = context.function, _CHAT.get()
    name = function.full_name
    if chat is None or not function.effects or name in chat.always or plan_of(function) is not None:
        return await proceed()
    answer = await chat.ask(name, context.arguments)
    if answer == "no":
        raise PorticoError(f"{name} was not called: the user did not approve it.")
    if answer == "always":
        chat.always.add(name)
    return await proceed()


def _title(turns: Sequence[Mapping[str, Any]], said: str) -> str:
    words = " ".join((turns[0]["user"] if turns else said).split())
    return words if len(words) <= _LONGEST_TITLE else f"{words[: _LONGEST_TITLE - 1]}…"


def _turn_to_json(text: str, turn: Turn) -> dict[str, Any]:
    tools = [
        {"id": each.call.id, "name": each.call.name, "arguments": _parsed(each.call.arguments), **_outcome(each)}
        for each in turn.tools
    ]
    return {
        "user": text,
        "text": turn.answer,
        "citations": [{**asdict(each), "link": safe_link(each.link)} for each in turn.citations],
        "warnings": list(turn.warnings),
        "tools": tools,
    }


def _bare_turn(messages: Iterable[Any]) -> dict[str, Any]:
    said = [(each.role, each.text) for each in messages if each.text.strip()]
    user, text = ("\n\n".join(words for who, words in said if who == role) for role in ("user", "assistant"))
    return {"user": user, "text": text, "citations": [], "warnings": [], "tools": []}


def _messages(turn: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the two messages of a turn."""
    answer = {key: turn.get(key, []) for key in ("citations", "warnings", "tools")}
    return [{"role": "user", "text": turn["user"]}, {"role": "assistant", "text": turn["text"], **answer}]


def _outcome(finished: ToolFinished) -> dict[str, Any]:
    result = finished.result
    value = cut_value(result.content if result.error else _parsed(result.content), _LONGEST_RESULT)[0]
    return {"error" if result.error else "result": value, "seconds": round(finished.seconds, 3)}


def _parsed(text: str) -> Any:
    try:
        value = json.loads(text or "{}")
        to_json(value)  # Python reads NaN, and nothing else does
    except (ValueError, RecursionError):
        return text
    return value
