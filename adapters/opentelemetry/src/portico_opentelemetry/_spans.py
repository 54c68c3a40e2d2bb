"""Spans of what a kernel does: runs, proposals, steps, tool calls and the turns of agents."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.metrics import Meter
from opentelemetry.trace import Link, Span, SpanKind, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from portico import Answer, Infeasible, Paused, Plan, RequireApproval, Usage
from portico.errors import FunctionFailed
from portico.plans import Refusal, plan_to_json
from portico_opentelemetry import _names as names

if TYPE_CHECKING:
    from typing import TypeAlias

    from portico import (
        Middleware,
        PlanReview,
        ProposalInvocation,
        Run,
        RunInvocation,
        StepRun,
        ToolResult,
        TurnInvocation,
    )

    Reviewed: TypeAlias = Plan | Refusal | RequireApproval | None

_CONTEXT = TraceContextTextMapPropagator()
_END = object()
LONGEST = 100_000
"""Characters of a text, or of a value as JSON, that are written at most."""


class Tracing:
    """Makes spans, and counts tokens and durations. With ``content`` the spans have texts, arguments and results."""

    def __init__(self, tracer: Tracer, meter: Meter, *, content: bool) -> None:
        self.content = content
        self._tracer = tracer
        self.tokens = meter.create_histogram(
            names.TOKEN_USAGE,
            "{token}",
            "Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=names.TOKEN_BOUNDARIES,
        )
        self.seconds = meter.create_histogram(
            names.DURATION,
            "s",
            "GenAI operation duration.",
            explicit_bucket_boundaries_advisory=names.SECONDS_BOUNDARIES,
        )

    def start(
        self,
        operation: str,
        subject: str,
        attributes: Mapping[str, Any],
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        context: Context | None = None,
        links: Sequence[Link] = (),
    ) -> Span:
        """Start a span that is not the current one yet; attributes that are None are left out."""
        known = {name: value for name, value in attributes.items() if value is not None}
        name = f"{operation} {subject}".rstrip()
        given = {names.OPERATION: operation, **known}
        return self._tracer.start_span(name, context, kind, given, links)

    @contextmanager
    def span(self, operation: str, subject: str, attributes: Mapping[str, Any], **options: Any) -> Iterator[Span]:
        """Do the work of the block in a span, which ends with it. An error of the block is the span's too."""
        span = self.start(operation, subject, attributes, **options)
        try:
            with inside(span):
                yield span
        except BaseException as error:
            fail(span, error)
            raise
        finally:
            span.end()

    def tell(self, span: Span, name: str, value: Any, *, text: bool = False) -> None:
        """Write content into a span, if it is to be there: a ``text`` as it is, all else as JSON."""
        if self.content and span.is_recording():
            written = value if text else as_json(value)
            cut = written if len(written) <= LONGEST else f"{written[:LONGEST]}…"
            # Half of a character would stop whatever sends the spans.
            span.set_attribute(name, cut.encode("utf-8", "replace").decode())

    def observe(self, middleware: Middleware) -> None:
        """Add middleware around everything that another middleware may do."""
        watch = _Watch(self, middleware)
        middleware.run.insert(0, watch.run)
        middleware.proposal.insert(0, watch.proposal)
        middleware.step.insert(0, watch.step)
        middleware.tool_call.insert(0, watch.tool_call)
        middleware.turn.insert(0, watch.turn)
        middleware.origin.append(carried)


class _Watch:
    """The middleware of one kernel."""

    def __init__(self, tracing: Tracing, middleware: Middleware) -> None:
        self._tracing = tracing
        self._middleware = middleware

    async def run(self, context: RunInvocation, proceed: Callable[[], Awaitable[Run]]) -> Run:
        # Alone, a middleware for plans would have each approval written into the journal.
        if self._middleware.plan and self.plan not in self._middleware.plan:
            # Another list: a plan that is under review counts its middleware by position.
            self._middleware.plan = [self.plan, *self._middleware.plan]
        attributes = {
            names.WORKFLOW: context.planner,
            names.PLANNER: context.planner,
            names.RUN: context.run,
            names.RESUMED: context.resumed or None,
            names.PLAN_DIGEST: None if context.plan is None else digest(context.plan),
        }
        before = trace.get_current_span(_CONTEXT.extract(context.origin)).get_span_context()
        alone = not trace.get_current_span().get_span_context().is_valid
        options: dict[str, Any] = {}
        if before.is_valid and alone and not context.resumed:
            options["context"] = trace.set_span_in_context(trace.NonRecordingSpan(before))
        elif before.is_valid:
            options["links"] = [Link(before)]
        with self._tracing.span(names.INVOKE_WORKFLOW, context.planner, attributes, **options) as span:
            self._tracing.tell(span, names.INPUT_MESSAGES, [said("user", context.goal)])
            run = await proceed()
            outcome = run.outcome
            span.set_attribute(names.OUTCOME, _outcome(outcome))
            if isinstance(outcome, Paused):
                span.set_attribute(names.APPROVAL, "held")
            self._tracing.tell(span, names.OUTPUT_MESSAGES, [said("assistant", _words(outcome))])
            return run

    async def proposal(
        self, context: ProposalInvocation, proceed: Callable[[], Awaitable[Plan | Answer | Infeasible]]
    ) -> Plan | Answer | Infeasible:
        attributes = {names.AGENT: context.planner, names.PLANNER: context.planner}
        with self._tracing.span(names.PLAN, context.planner, attributes) as span:
            proposed = await proceed()
            span.set_attribute(names.OUTCOME, "plan" if isinstance(proposed, Plan) else _outcome(proposed))
            if isinstance(proposed, Plan) and span.is_recording() and (known := digest(proposed)):
                span.set_attribute(names.PLAN_DIGEST, known)
                span.set_attribute(names.PLAN_STEPS, len(proposed.steps))
            return proposed

    async def plan(self, context: PlanReview, proceed: Callable[[], Awaitable[Reviewed]]) -> Reviewed:
        answer = await proceed()
        span = trace.get_current_span()
        decided = {Plan: "edited", Refusal: "refused", RequireApproval: "held"}
        span.set_attribute(names.APPROVAL, decided.get(type(answer), "approved"))
        span.set_attribute(names.PLAN_DIGEST, digest(context.plan))
        return answer

    async def step(self, context: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        step = context.step
        attributes: dict[str, Any] = {names.STEP: step.id, names.RUN: context.run}
        if isinstance(step.function, str):
            operation, subject = names.EXECUTE_TOOL, step.function
            attributes |= {names.TOOL_NAME: subject, names.TOOL_TYPE: "function"}
        else:
            # A plan, or a template, inside of this one.
            operation, subject = names.INVOKE_WORKFLOW, step.id
            attributes[names.WORKFLOW] = step.id
        with self._tracing.span(operation, subject, attributes) as span:
            self._tracing.tell(span, names.TOOL_ARGUMENTS, context.arguments)
            result = await proceed()
            if isinstance(result, RequireApproval):
                span.set_attribute(names.APPROVAL, "held")
            else:
                self._tracing.tell(span, names.TOOL_RESULT, result)
            return result

    async def tool_call(self, context: Any, proceed: Callable[[], Awaitable[ToolResult]]) -> ToolResult:
        call = context.call
        attributes = {names.TOOL_NAME: call.name, names.TOOL_TYPE: "function", names.TOOL_CALL: call.id}
        with self._tracing.span(names.EXECUTE_TOOL, call.name, attributes) as span:
            self._tracing.tell(span, names.TOOL_ARGUMENTS, call.arguments, text=True)
            result = await proceed()
            if result.error:
                fail(span, result.cause)
            self._tracing.tell(span, names.TOOL_RESULT, result.content, text=True)
            return result

    async def turn(self, context: TurnInvocation, events: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]:
        attributes = {names.AGENT: context.agent, names.CONVERSATION: context.thread, names.PROVIDER: "portico"}
        span = self._tracing.start(names.INVOKE_AGENT, context.agent, attributes)
        async with aclosing(ended_with(span, lambda: events)) as inner:
            async for event in inner:
                if (usage := getattr(event, "usage", None)) is not None:
                    span.set_attributes(tokens_of(usage))
                yield event


async def ended_with(span: Span, begin: Callable[[], AsyncGenerator[Any, None]]) -> AsyncGenerator[Any, None]:
    """Yield events that are made inside a span, which ends with them.

    The span is the current one while an event is made, and not for the reader of the events.
    """
    events = None
    try:
        with inside(span):
            events = begin()
        while True:
            with inside(span):
                event = await anext(events, _END)
            if event is _END:
                return
            yield event
    except GeneratorExit:
        raise
    except BaseException as error:
        fail(span, error)
        raise
    finally:
        try:
            with inside(span):
                if (close := getattr(events, "aclose", None)) is not None:
                    await close()
        finally:
            span.end()


def inside(span: Span) -> Any:
    """Make a span the current one for a block; it gets nothing of an error, whose text may have a secret in it."""
    return trace.use_span(span, record_exception=False, set_status_on_exception=False)


def fail(span: Span, error: BaseException | None) -> None:
    """Give a span the type of an error, and nothing else of it. A pause is no error."""
    if isinstance(getattr(error, "hold", None), RequireApproval):
        span.set_attribute(names.APPROVAL, "held")
        return
    kind = error_type(error)
    span.set_attribute(names.ERROR_TYPE, kind)
    span.set_status(StatusCode.ERROR, kind)


def error_type(error: BaseException | None) -> str:
    """Return the name of an error's type; of a function that failed, what it raised."""
    if isinstance(error, FunctionFailed) and error.__cause__ is not None:
        error = error.__cause__
    return "_OTHER" if error is None else type(error).__name__


def carried() -> dict[str, str]:
    """Return the current span as an origin keeps it, so that another process finds it."""
    carrier: dict[str, str] = {}
    _CONTEXT.inject(carrier)
    return carrier


def digest(plan: Plan) -> str:
    """Return a text that equal plans share: of their goal, steps and result; "" of one that cannot be JSON."""
    try:
        body = {name: value for name, value in plan_to_json(plan).items() if name not in ("notes", "fingerprints")}
        return sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    except Exception:  # noqa: BLE001 - a planner may give anything; its check says what is wrong
        return ""


def as_json(value: Any) -> str:
    """Return a value as JSON; what has no form in it is written as Python shows it."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except Exception:  # noqa: BLE001 - code of the value shows it
        return f"<{type(value).__name__}>"


def said(role: str, text: str) -> dict[str, Any]:
    """Return words as the conventions write a message."""
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def tokens_of(usage: Usage) -> dict[str, Any]:
    """Return the attributes of what a reply or a turn used; none where a service counts nothing."""
    if usage == Usage():
        return {}
    spent = {
        names.INPUT_TOKENS: usage.input_tokens,
        names.OUTPUT_TOKENS: usage.output_tokens,
        names.CACHED_TOKENS: usage.cached_tokens,
        names.CACHE_WRITTEN_TOKENS: usage.cache_written_tokens,
        names.REASONING_TOKENS: usage.reasoning_tokens,
    }
    return spent if usage.cost is None else {**spent, names.COST: usage.cost}


def _outcome(outcome: Any) -> str:
    if isinstance(outcome, Paused):
        return "uncertain" if outcome.uncertain else "held"
    return "infeasible" if isinstance(outcome, Infeasible) else "done"


def _words(outcome: Any) -> str:
    return str(outcome.reason if isinstance(outcome, Paused) else outcome.text)
