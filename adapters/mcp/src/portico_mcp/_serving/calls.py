"""One call of a tool: what it gives, its progress, its end when it is cancelled, and the question to the user."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import anyio
from attrs import define, field, frozen
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ResourceLink,
    TextContent,
)

from portico import Citation, Source, TextSearchResult
from portico.errors import PorticoError
from portico.plans import Event, RunEvent

ANY_JSON = "2026-07-28"
"""The first revision whose structured results are any JSON, and that asks users by a result that needs input."""
_STRUCTURED = "2025-06-18"
"""The first revision with structured results and links to resources."""
_VERBS: dict[type[Any], str] = {
    Event.StepStarted: "began",
    Event.StepFinished: "ended",
    Event.StepSkipped: "is skipped",
    Event.StepFailed: "failed",
}
_QUESTION = "approve"
_MOST_WAITING = 1_000
_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"run": {"type": "boolean", "title": "Run it", "description": "Whether this may run."}},
    "required": ["run"],
}


@frozen
class Given:
    """What a tool gives: a JSON ``value``, the ``text`` beside it if that is not the value's JSON, and links.

    With ``error`` the call failed, and the text says why. With ``content`` the value is content of the protocol, as
    functions of other servers give it.
    """

    value: Any
    text: str | None = None
    links: tuple[ResourceLink, ...] = ()
    error: bool = False
    content: bool = False

    def result(self, revision: str) -> CallToolResult:
        """Return the result as a revision of the protocol can hold it."""
        value, text = self.value, self.text
        try:
            written = json.dumps(value, ensure_ascii=False, allow_nan=False)
        except ValueError as error:
            raise PorticoError(f"The result is no JSON: {error}.") from error
        if (mended := mend(written)) != written:
            written, value = mended, json.loads(mended)
        if self.content and not isinstance(value, str):
            return CallToolResult.model_validate({"content": [_block(part) for part in value]})
        if text is None:
            text = value if isinstance(value, str) else written
        content: list[ContentBlock] = [TextContent(text=mend(text))]
        structured = None
        if revision >= _STRUCTURED and not self.content:
            content += self.links
            structured = value if isinstance(value, dict) or revision >= ANY_JSON else None
        return CallToolResult(content=content, structured_content=structured, is_error=self.error)


def mend(text: str) -> str:
    """Return a text without halves of surrogate pairs, which no message can hold."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def escape(text: str) -> str:
    r"""Return JSON with an escape for each character that cannot be seen, or that changes how others are seen.

    >>> print(escape('"Zürich\u202e"'))
    "Zürich\u202e"
    """
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)


def _block(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part of `PARTS` as the protocol has it."""
    kind, uri, data = part["type"], part.get("uri", ""), part.get("data", "")
    written = kind == "text" or "text" in part
    media = part.get("media_type", None if written or kind == "resource_link" else "application/octet-stream")
    content = {"text": part.get("text", "")} if written else {"data": data, "blob": data}
    whole = {"name": part.get("name") or uri, "uri": uri, "mime_type": media, **content}
    return {"type": kind, "resource": whole} if kind == "resource" else {"type": kind, **whole}


def links_of(passages: Iterable[Source | Citation | TextSearchResult]) -> tuple[ResourceLink, ...]:
    """Return a link to each document of passages; those without a URL have none."""
    links: dict[str, str] = {}
    for each in passages:
        # It is no URL where it cannot be split.
        with suppress(ValueError):
            if each.link and urlsplit(each.link).scheme:
                links[mend(each.link)] = mend(each.name or each.link)
    return tuple(ResourceLink(uri=link, name=name) for link, name in links.items())


Work = Callable[[Callable[[RunEvent], None]], Awaitable[Any]]


@define
class Call:
    """A call of a tool as a client made it.

    ``approved`` is the digest of the plan that the user approved, empty for none yet; None where no plan of the client
    runs. Then ``emit`` takes the steps of a saved plan. No progress names the ``hidden`` functions. ``run`` is the
    name of the run that began. ``agreed`` is what the user agreed to: a run, the step that it is held at, and why, with
    the values.
    """

    context: ServerRequestContext[Any, Any]
    params: CallToolRequestParams
    approved: str | None = None
    hidden: frozenset[str] = frozenset()
    emit: Callable[[RunEvent], None] | None = None
    run: str = ""
    agreed: tuple[str, str | None, str] | None = None
    _steps: list[str] = field(factory=list, init=False)

    async def carry_out(self, work: Work, *, planned: int | None = None) -> Any:
        """Await ``work``, and tell the client of its steps; a cancelled call cancels it once, and waits for its end.

        ``work`` gets what takes the events of a run. ``planned`` is the number of its steps, if that is known. It runs
        in its own task, because the SDK cancels again at each await, and a run has to write its end into the journal.
        """
        events: asyncio.Queue[RunEvent | None] = asyncio.Queue()

        def take(event: RunEvent) -> None:
            if isinstance(event, Event.RunStarted):
                self.run = event.run
            events.put_nowait(event)

        async def run() -> Any:
            return await work(take)

        task = asyncio.create_task(run())
        task.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                await self._tell(event, planned)
            return await task
        finally:
            if not task.done():
                task.cancel()
                with anyio.CancelScope(shield=True):
                    await asyncio.wait([task])

    async def _tell(self, event: Any, planned: int | None) -> None:
        """Report a step that began or ended; steps inside of others are not counted beforehand, so not reported."""
        if (verb := _VERBS.get(type(event))) is not None and event.step.own:
            function = event.step.function if verb == "began" else None
            self._steps.append(
                f"{event.step.id} {verb}"
                + (f": {function}" if isinstance(function, str) and function not in self.hidden else "")
            )
            # Two for each step: a number may not come twice.
            await self.context.session.report_progress(len(self._steps), planned and 2 * planned, self._steps[-1])

    @property
    def can_ask(self) -> bool:
        """Whether the client can ask its user with a form."""
        session = self.context.session
        asking = session.client_capabilities and session.client_capabilities.elicitation
        if not asking or (asking.form is None and asking.url is not None):
            return False
        return self.context.protocol_version >= ANY_JSON or session.can_send_request

    async def ask(self, question: str, shown: str, waiting: dict[str, str]) -> bool | InputRequiredResult:
        """Ask the user, and return whether that is approved; a client of a newer revision calls again with the answer.

        ``shown`` is all that is asked about: an answer to another question does not count, and none counts twice.
        ``waiting`` are the questions without an answer yet. Raises ``PorticoError`` where the client cannot ask.
        """
        context, params = self.context, self.params
        digest = hashlib.sha256(json.dumps([shown, params.name, params.arguments], sort_keys=True).encode()).hexdigest()
        answer: object
        if context.protocol_version >= ANY_JSON:
            asked = waiting.pop(params.request_state or "", None)
            answer = (params.input_responses or {}).get(_QUESTION) if asked == digest else None
            if answer is None:
                while len(waiting) >= _MOST_WAITING:
                    del waiting[next(iter(waiting))]
                state = secrets.token_urlsafe(16)
                waiting[state] = digest
                form = ElicitRequestFormParams(message=question, requested_schema=_FORM)
                return InputRequiredResult(input_requests={_QUESTION: ElicitRequest(params=form)}, request_state=state)
        else:
            try:
                answer = await context.session.elicit_form(question, _FORM, context.request_id)
            except (MCPError, ValueError) as error:
                raise PorticoError(f"The client could not ask its user, so nothing ran: {error}") from error
        if not isinstance(answer, ElicitResult) or answer.action != "accept":
            return False
        return (answer.content or {}).get("run") is True
