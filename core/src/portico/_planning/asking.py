"""How planners ask a model: at once, streamed, and again until the reply is usable."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from portico._chat.attaching import attachments, fit
from portico._chat.messages import ChatReply, ChatRequest, Message
from portico._chat.passages import Passages
from portico._chat.spending import purse
from portico._plans.task import Emit, Event, Task
from portico._ports.template_language import TemplateLanguage
from portico._tool_loop.structured import ReplyProblem
from portico._tool_loop.toolset import expand_calls
from portico.errors import ConfigurationError, FunctionNotFound, PlanError, PlanFormatError, ResponseInvalid

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from portico._plugins.registration import Services
    from portico._ports.chat_service import ChatService
    from portico._ports.template_language import Template

_SHOWN = 80
_LONGEST = 1_000_000
_SENT_BACK = 20_000
_LANGUAGES = dict.fromkeys((".hbs", ".handlebars"), "handlebars") | dict.fromkeys(
    (".j2", ".jinja2", ".jinja"), "jinja2"
)
"""Template languages by the endings of files; any other file is in the language of Semantic Kernel."""
_CITE = (
    " Passages that a search gives have numbers: in the answer, put after each statement that rests on one its number "
    "in square brackets, as in [1]."
)
_CUT = "The reply was cut short: it was too long. Write a shorter plan."

T = TypeVar("T")


def _setting(default: Any, doc: str, low: float | None = None, high: float | None = None) -> Any:
    """Return the field of a setting: its default, one line on it, and the least and the greatest number."""
    limits = {} if low is None else {"minimum": low, "maximum": high}
    return field(default=default, metadata={"doc": doc, "limits": limits})


class Asking:
    """How planners ask a model.

    ``Settings`` are the settings that say how a model writes; ``setting`` makes a field of one more. ``system``
    makes the first message of these settings, ``request`` a request. ``ask`` returns a whole reply, ``stream`` gives
    its words as they come, ``until_usable`` asks again while a reply cannot be read. ``require_whole`` refuses a reply
    that was cut short. ``message`` shows a model what it wrote. ``in_words`` is for a model that words the answer.
    """

    setting = staticmethod(_setting)

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Settings:
        """The settings of each planner that asks a model: its settings class inherits them and adds its own.

        >>> @dataclass(frozen=True, slots=True, kw_only=True)
        ... class MySettings(Asking.Settings):
        ...     repairs: int = Asking.setting(2, "How often a reply is sent back; 0 to 20.", 0, 20)
        >>> MySettings(temperature=0.2).repairs
        2

        None leaves a number to the service. Raises ``ValueError`` for a number outside the limits of its field.
        """

        chat: str | None = _setting(None, "The chat service that is asked, by name; the configured one by default.")
        prompt: Path | str | None = _setting(  # noqa: RUF009 - it is a field
            None, "A template in place of the planner's own prompt: a file, or text with a `{{` or several lines."
        )
        instructions: str = _setting("", "Your own text at the end of the instructions for the model.")
        context_tokens: int = _setting(
            4_000,
            "Tokens that the conversation before the goal may take; its oldest messages shrink first.",
            60,
            1_000_000,
        )
        temperature: float | None = _setting(
            None, "How freely the model writes, 0 to 2; the service's own value by default.", 0, 2
        )
        top_p: float | None = _setting(
            None, "Which share of the likely tokens is drawn from, 0 to 1; the service's own by default.", 0, 1
        )
        max_tokens: int | None = _setting(
            None, "Tokens of one reply at most; by default the service decides.", 1, 1_000_000
        )
        seed: int | None = _setting(None, "Asks for the same draw each time, of services that can.")

        def __post_init__(self) -> None:
            for each in fields(self):
                value, limits = getattr(self, each.name), each.metadata.get("limits")
                if limits and value is not None and not limits["minimum"] <= value <= limits["maximum"]:
                    allowed = f"{limits['minimum']:,} to {limits['maximum']:,}"
                    raise ValueError(f"{each.name} is {value}; it must be {allowed}")

    @staticmethod
    async def system(own: str, settings: Asking.Settings, services: Services, **variables: str) -> Message:
        """Return the system message: the planner's ``own`` text or the settings' prompt, then the instructions.

        The prompt is rendered with the variables. Raises ``ConfigurationError`` for a file that cannot be read and for
        another variable, and what the template language does.
        """
        if settings.prompt is not None:
            own = await _compile(settings.prompt, services, variables).render(variables, call=_call)
        more = settings.instructions.strip()
        return Message.of("system", f"{own.rstrip()}\n\n{more}" if more else own)

    @staticmethod
    def in_words(task: Task) -> tuple[Task, str]:
        """Return the task with the numbers of passages and without functions that answer, and how a model cites."""
        show = Passages(sources=task.sources).show
        steps = tuple(replace(record, result=show(record.result)) for record in task.steps)
        functions = tuple(spec for spec in task.functions if not spec.is_answer)
        return replace(task, steps=steps, functions=functions), _CITE * any(spec.is_search for spec in functions)

    @staticmethod
    def request(messages: Iterable[Message], settings: Asking.Settings) -> ChatRequest:
        """Make a planner's request of messages and of the settings that say how its model writes.

        >>> Asking.request([Message.of("user", "Plan.")], Asking.Settings(max_tokens=500)).max_tokens
        500
        """
        return ChatRequest(
            tuple(messages),
            temperature=settings.temperature,
            top_p=settings.top_p,
            max_tokens=settings.max_tokens,
            seed=settings.seed,
        )

    @staticmethod
    async def ask(chat: ChatService, request: ChatRequest, emit: Emit, *, cut: bool = False) -> ChatReply:
        """Return the reply to a planner's request and emit what it cost as `Event.ChatUsed`.

        The reply is not streamed. `Source` parts become text for a service that does not take them. An empty reply is
        returned. A reply that was cut short raises ``PlanError``, since half a plan may mean another plan; with ``cut``
        it is returned, for planners that look at ``finish``. Errors of the service are raised as they are.
        """
        if (money := purse()) is not None:
            money.open_for(chat)
        reply = await chat.complete(_fitted(chat, request))
        _account(chat, reply, emit)
        reply = expand_calls(reply)
        return reply if cut else Asking.require_whole(reply, chat, request.max_tokens)

    @staticmethod
    def require_whole(reply: ChatReply, chat: ChatService, max_tokens: int | None = None) -> ChatReply:
        """Return the reply, or raise ``PlanError`` for one that was cut short; it says where the reply broke off.

        ``max_tokens`` is what was asked for at most, None where the service decided.
        """
        if reply.finish != "length":
            return reply
        bound = f"{max_tokens:,} tokens" if max_tokens is not None else "the service's bound on tokens"
        end = reply.text[-_SHOWN:]
        raise PlanError(
            f"The reply of the chat service {reply.service or chat.name!r} was cut short at {bound}, so the plan in it "
            f"is not whole. Allow more with max_tokens, or give the goal in parts. It broke off at: {end!r}"
        )

    @staticmethod
    async def stream(
        chat: ChatService,
        request: ChatRequest,
        emit: Emit,
        *,
        on_text: Callable[[str], None] = lambda text: None,
        longest: int = _LONGEST,
    ) -> ChatReply:
        """Return a planner's reply as `Asking.ask` does, and pass its text on as it comes.

        ``on_text`` is called with each piece; the planner decides whether it is part of the answer.
        Raises ``PlanError`` for a reply of more than ``longest`` characters, tool calls included, and
        ``ResponseInvalid`` for a stream that ends without a reply. The reply may be cut short: see its ``finish``.
        """
        if (money := purse()) is not None:
            money.open_for(chat)
        reply: ChatReply | None = None
        length = 0
        stream: Any = chat.stream(_fitted(chat, request))
        try:
            async for delta in stream:
                length += len(delta.text) + (len(delta.tool_call.arguments) if delta.tool_call is not None else 0)
                if length > longest:
                    raise PlanError(
                        f"The reply of the chat service {chat.name!r} did not end within {longest:,} characters; it "
                        "was stopped. Bound it with max_tokens, or ask another model."
                    )
                if delta.text:
                    on_text(delta.text)
                reply = delta.reply or reply
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()
        if reply is None:
            raise ResponseInvalid(f"The chat service {chat.name!r} ended its stream without a reply.")
        _account(chat, reply, emit)
        return expand_calls(reply)

    @staticmethod
    async def until_usable(
        chat: ChatService,
        request: ChatRequest,
        emit: Emit,
        *,
        read: Callable[[str], T],
        repair: Callable[[str], str],
        repairs: int,
    ) -> tuple[T, str]:
        """Return the value that ``read`` makes of a reply, and the reply's text; ask again while ``read`` raises.

        ``read`` raises `ReplyProblem` or ``PlanFormatError``. ``repair`` turns the problem into the next message to the
        model, at most ``repairs`` times. A reply that was cut short is a problem too and is not read. Raises
        ``PlanError`` with the last problem, and the errors of the service.
        """
        problem = ""
        for _ in range(repairs + 1):
            reply = await Asking.ask(chat, request, emit, cut=True)
            try:
                if reply.finish == "length":
                    raise ReplyProblem(_CUT)
                return read(reply.text), reply.text
            except (PlanFormatError, ReplyProblem) as error:
                problem = str(error)
            answer = (Asking.message(reply.text, _SENT_BACK), Message.of("user", repair(problem)))
            request = replace(request, messages=(*request.messages, *answer))
        tries = f"{repairs + 1} tries" if repairs else "one try"
        raise PlanError(
            f"The chat service {chat.name!r} wrote no plan that can be used, in {tries}. Set another chat service, one "
            f"with a language model, or allow more repairs. The last problem: {problem}"
        )

    @staticmethod
    def message(text: str, most: int) -> Message:
        """Return the message that shows a model what it wrote, up to ``most`` characters of it.

        >>> Asking.message("  ", 100).text
        '(nothing)'

        Services refuse a turn without any words.
        """
        if not text.strip():
            return Message.of("assistant", "(nothing)")
        return Message.of("assistant", text if len(text) <= most else f"{text[:most]}…")


def _call(function: str, *_: object) -> NoReturn:
    raise FunctionNotFound(function)


def _compile(prompt: Path | str, services: Services, variables: Collection[str]) -> Template:
    from portico._prompts.semantic_kernel import SemanticKernelTemplates

    language, name = None, "the planner's prompt"
    if isinstance(prompt, Path):
        language, name = _LANGUAGES.get(prompt.suffix.lower()), str(prompt)
        try:
            prompt = prompt.read_text("utf-8")
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"The prompt of the planner, {name}, cannot be read: {error}") from error
    languages = SemanticKernelTemplates() if language is None else services.get(TemplateLanguage, language)
    template = languages.compile(prompt, name=name)
    for variable in getattr(template, "variables", ()):
        if variable.casefold() not in variables:
            raise ConfigurationError(f"{name}: there is no variable {variable!r}; there are {', '.join(variables)}.")
    return template


def _account(chat: ChatService, reply: ChatReply, emit: Emit) -> None:
    """Tell what a reply cost, and pay for it."""
    read = reply.message.untrusted or ()
    emit(Event.ChatUsed(reply.service or chat.name, reply.model, reply.usage, read, reply.citations))
    if (money := purse()) is not None:
        money.pay(chat, reply)


def _fitted(chat: ChatService, request: ChatRequest) -> ChatRequest:
    """Return a request with what is attached to the goal, as the service takes it."""
    return fit(attachments().put_into(request), chat.capabilities)


class AnswerWords:
    """Show the words of an answer as they come, without the blank space around them.

    >>> shown = []
    >>> words = AnswerWords(lambda event: shown.append(event.text))
    >>> for piece in (" ", " Two ", "words. ", " "):
    ...     words.feed(piece)
    >>> shown, words.text
    (['Two', ' words.'], 'Two words.')

    ``text`` is exactly what was shown. ``before`` is shown before the first words; it separates them from earlier ones.
    """

    def __init__(self, emit: Emit, *, before: str = "") -> None:
        self._emit = emit
        self._before = before
        self._blank = ""
        self.text = ""

    def feed(self, piece: str) -> None:
        """Take more of the text."""
        whole = self._blank + piece
        if not self.text:
            whole = whole.lstrip()
        words = whole.rstrip()
        self._blank = whole[len(words) :]
        if words:
            self._emit(Event.TextDelta(words if self.text else self._before + words))
            self.text += words
