"""The kernel: functions and services, and the ways to use them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast, overload

from portico._functions.functions import Function, FunctionPlugin, FunctionSpec
from portico._functions.middleware import FunctionInvocation, Middleware, call_function, run_middleware, run_to_end
from portico._types.compiling import same
from portico.errors import FunctionFailed, PluginNotInstalled, PorticoError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Coroutine, Iterable

    from portico._chat.messages import ChatRequest, ToolCall, ToolResult
    from portico._flows.check import DecideFlow
    from portico._flows.policy import Policy
    from portico._plans.findings import Finding
    from portico._plans.plan import Plan
    from portico._plans.task import Budget, Emit
    from portico._plugins.registration import Services
    from portico._ports.function_selector import FunctionSelector
    from portico._ports.job_queue import JobQueue
    from portico._ports.plan_store import PlanStore
    from portico._ports.planner import Planner
    from portico._ports.run_store import RunStore
    from portico._ports.runner import Runner
    from portico._ports.schema_validator import SchemaValidator
    from portico._ports.template_language import Template, TemplateLanguage
    from portico._ports.type_codec import TypeCodec
    from portico._prompts.rendering import PromptOptions, Prompts
    from portico._runs.checking import DecidePlan, DecideStep
    from portico._runs.outcome import GivenContext, Proposal, Run, RunOptions, SubmitOptions
    from portico._runs.submitting import JobHandler
    from portico._tool_loop.asking import Asking
    from portico._tool_loop.toolset import Toolset
    from portico._tool_loop.values import Asked, Turn, TurnEvent, TurnOptions


P = TypeVar("P")
T = TypeVar("T")


class Kernel:
    """Hold functions and services, and call them.

    >>> from portico import Kernel, function
    >>> @function
    ... def greet(name: str) -> str:
    ...     '''Greet a person.'''
    ...     return f"Hello {name}!"
    >>> kernel = Kernel()
    >>> kernel.add_function(greet).full_name
    'greet'
    >>> kernel.run_sync(kernel.invoke("greet", name="Ada"))
    'Hello Ada!'

    A kernel belongs to one event loop at a time; calls may run concurrently. ``services`` come from the host
    (`portico_host.open`), or are a mapping of instances: ``{ChatService: chat, (Planner, "mine"): planner}``. Without a
    name, the first of a port is meant. A ``function_selector`` chooses the functions for a model where there are many;
    without one, a model gets all. ``planner_include`` and ``planner_exclude`` name the functions and plugins that
    planners may use and may not use. A ``policy`` says what untrusted values may reach. Raises ``TypeError`` for a
    mapping with another key.
    """

    def __init__(
        self,
        services: Services | Mapping[Any, Any] | None = None,
        plugins: Iterable[FunctionPlugin] = (),
        *,
        middleware: Middleware | None = None,
        schema_validator: SchemaValidator | None = None,
        runner: Runner | None = None,
        run_store: RunStore | None = None,
        plan_store: PlanStore | None = None,
        budget: Budget | None = None,
        policy: Policy | None = None,
        reuse: bool = False,
        planner_include: Iterable[str] | None = None,
        planner_exclude: Iterable[str] = (),
        type_codecs: Iterable[TypeCodec] = (),
        template_languages: Iterable[TemplateLanguage] = (),
        function_selector: FunctionSelector | None = None,
    ) -> None:
        self.services = _services_of(services)
        self.middleware = middleware or Middleware()
        self.schema_validator = schema_validator
        self.runner = runner
        self.run_store = run_store
        self.plan_store = plan_store
        self.budget = budget
        self.policy = policy
        self.decide_flow: DecideFlow | None = None
        self.reuse = reuse
        self.planner_include = None if planner_include is None else tuple(planner_include)
        self.planner_exclude = tuple(planner_exclude)
        self.function_selector = function_selector
        self.origin: Mapping[str, Any] | None = None  # what the application writes into the journal of new runs
        self.type_codecs = tuple(type_codecs)
        self.template_languages = {language.name: language for language in template_languages}
        self.plugins: dict[str, FunctionPlugin] = {}
        self._functions: dict[str, Function] = {}
        self._spellings: dict[str, Function] = {}  # other spellings of names, as they are met
        self._manuals: dict[str, FunctionSpec] | None = None
        self.fingerprints: dict[str, str] = {}  # of functions, made when a plan first uses them
        for plugin in plugins:
            self.add_plugin(plugin)

    def add_plugin(self, plugin: FunctionPlugin | object, name: str | None = None) -> FunctionPlugin:
        """Add a plugin, or the marked functions of a module, class or object.

        Raises ``ValueError`` for a name that is in use.
        """
        if not isinstance(plugin, FunctionPlugin):
            plugin = FunctionPlugin.of(plugin, name, codecs=self.type_codecs)
        plugin = plugin.bound(self)
        if plugin.name in self.plugins:
            raise ValueError(f"the kernel has a plugin {plugin.name!r} already")
        self._add(plugin)
        self.plugins[plugin.name] = plugin
        return plugin

    def add_function(self, function: Function | Callable[..., Any]) -> Function:
        """Add a single function; ``ValueError`` for a name that is in use."""
        if not isinstance(function, Function):
            function = Function.of(function, codecs=self.type_codecs)
        function = function.bound(self)
        self._add([function])
        return function

    def _add(self, functions: Iterable[Function]) -> None:
        new = {function.full_name: function for function in functions}
        for name in new:
            if name in self._functions:
                raise ValueError(f"the kernel has a function {name!r} already")
        self._functions.update(new)
        self._manuals = None
        self._spellings.clear()

    def function(self, name: str) -> Function:
        """Find a function by its name.

        ``Plugin-Function`` is the full name; ``Plugin.Function``, ``Plugin_Function`` and a bare ``Function`` work
        where they mean one function only. Raises ``FunctionNotFound`` with the nearest names.
        """
        found = self._functions.get(name) or self._spellings.get(name)
        if found is None:
            found = self._spellings[name] = self._functions[FunctionSpec.find_name(name, self._functions)]
        return found

    @property
    def functions(self) -> Mapping[str, Function]:
        """All functions by full name, in the order of adding."""
        return self._functions

    @property
    def specs(self) -> Mapping[str, FunctionSpec]:
        """The manuals of all functions by full name, made once."""
        if self._manuals is None:
            self._manuals = {name: function.spec for name, function in self._functions.items()}
        return self._manuals

    def service(self, port: Callable[..., P], name: str | None = None) -> P:
        """Return the service configured for a port, or the one of that name; see `Services.get` for errors."""
        if self.services is None:
            raise PluginNotInstalled(
                "This kernel has no services. Open one with portico_host.open(), or give it some: Kernel(services={…})."
            )
        return self.services.get(port, name)

    def invoke(self, function: str | Function, /, **arguments: Any) -> Coroutine[Any, Any, Any]:
        """Call a function with Python values and return its result.

        Raises ``FunctionNotFound``, and what the function raises, unchanged, when it is awaited.
        """
        try:
            if function.__class__ is not Function:
                function = self._functions[function]  # type: ignore[index]
            start = function.start
            if start is not None and not self.middleware.function:
                return start(function.callable, arguments)
        except (KeyError, TypeError):
            pass  # Another spelling, or what is raised when it is awaited.
        return self._invoke(function, arguments)

    async def _invoke(self, function: str | Function, arguments: dict[str, Any]) -> Any:
        if function.__class__ is not Function:
            function = self.function(function)  # type: ignore[arg-type]
        around = self.middleware.function
        if not around:
            return await call_function(function, arguments)
        given = FunctionInvocation(function, arguments)
        return await run_middleware(around, given, lambda: call_function(given.function, given.arguments))

    async def invoke_json(
        self, function: str | Function, arguments: Mapping[str, Any], *, lenient: bool = False
    ) -> Any:
        """Call a function with JSON arguments and return its result as JSON, as plans and models do.

        ``lenient`` is for arguments of a model; see `Function.structure_arguments`. Raises ``ArgumentsInvalid`` with
        every fault, ``FunctionFailed`` from what the function raises, and a ``PorticoError`` unchanged.
        """
        if function.__class__ is not Function:
            function = self._functions.get(function) or self.function(function)  # type: ignore[arg-type]
        values = function.structure_arguments(arguments, lenient=lenient)
        start = None if self.middleware.function else function.start
        try:
            result = await (self._invoke(function, values) if start is None else start(function.callable, values))
            write = function.returns.unstructure
            return result if write is same else write(result)
        except PorticoError:
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # The call itself was not cancelled, but something that the function waited for.
            raise FunctionFailed(function.full_name, error) from error
        except Exception as error:
            raise FunctionFailed(function.full_name, error) from error

    async def call_tool(self, call: ToolCall, *, offered: Toolset | None = None) -> ToolResult:
        """Carry out a model's tool call, with the functions that were offered (`Turn.offered`), or all.

        With those that were offered, a policy that is enforced may refuse the call, for all that the model has read.
        A failure becomes a result that says what is wrong. Only an error of middleware that is not a ``PorticoError``
        is raised: the application stopped the call.
        """
        from portico._tool_loop.loop import carry_out_call

        return await carry_out_call(self, call, offered)

    @overload
    async def complete(self, messages: Asked, *, returns: type[T], **options: Unpack[TurnOptions]) -> Turn[T]: ...
    @overload
    async def complete(
        self, messages: ChatRequest, *, returns: None = None, **options: Unpack[TurnOptions]
    ) -> Turn[Any]: ...
    @overload
    async def complete(self, messages: Asked, *, returns: None = None, **options: Unpack[TurnOptions]) -> Turn[str]: ...
    @overload
    async def complete(self, messages: Asked, *, returns: object, **options: Unpack[TurnOptions]) -> Turn[Any]: ...
    async def complete(self, messages: Asked, *, returns: object = None, **options: Unpack[TurnOptions]) -> Turn[Any]:
        """Ask a chat service and carry out its tool calls until it answers.

        ``messages`` are a question, a conversation or a whole request. ``returns`` is the type of the answer, or a JSON
        Schema; without it, the answer is text, or of the schema that the request has. `TurnOptions` has the other
        options. Raises ``LimitExceeded``, ``ResponseInvalid`` for an answer that is still of another form after all
        repairs, ``UnsupportedOption``, ``FunctionNotFound``, and what the service raises.
        """
        turn: Turn[Any] | None = None
        async for event in self._asking.turn(messages, returns, options, streamed=False):
            turn = event  # type: ignore[assignment]  # the last event is the turn
        assert turn is not None  # noqa: S101 - otherwise it has raised
        return turn

    @overload
    def stream(
        self, messages: Asked, *, returns: type[T], **options: Unpack[TurnOptions]
    ) -> AsyncGenerator[TurnEvent[T], None]: ...
    @overload
    def stream(
        self, messages: ChatRequest, *, returns: None = None, **options: Unpack[TurnOptions]
    ) -> AsyncGenerator[TurnEvent[Any], None]: ...
    @overload
    def stream(
        self, messages: Asked, *, returns: None = None, **options: Unpack[TurnOptions]
    ) -> AsyncGenerator[TurnEvent[str], None]: ...
    @overload
    def stream(
        self, messages: Asked, *, returns: object, **options: Unpack[TurnOptions]
    ) -> AsyncGenerator[TurnEvent[Any], None]: ...
    def stream(
        self, messages: Asked, *, returns: object = None, **options: Unpack[TurnOptions]
    ) -> AsyncGenerator[TurnEvent[Any], None]:
        """Do what `complete` does, and yield events; the last one is the `Turn`.

        Pieces of text and of tool calls are `ChatDelta`, tools are `ToolStarted` and `ToolFinished`, and an answer with
        a type is `PartialValue`, each time that it grows. Use ``async with contextlib.aclosing(kernel.stream(…))`` if
        you may stop before the end.
        """
        return self._asking.turn(messages, returns, options, streamed=True)

    @overload
    async def invoke_prompt(
        self,
        prompt: str | Template,
        arguments: Mapping[str, Any] | None = None,
        *,
        returns: type[T],
        **options: Unpack[PromptOptions],
    ) -> T: ...
    @overload
    async def invoke_prompt(
        self,
        prompt: str | Template,
        arguments: Mapping[str, Any] | None = None,
        *,
        returns: None = None,
        **options: Unpack[PromptOptions],
    ) -> str: ...
    @overload
    async def invoke_prompt(
        self,
        prompt: str | Template,
        arguments: Mapping[str, Any] | None = None,
        *,
        returns: object,
        **options: Unpack[PromptOptions],
    ) -> Any: ...
    async def invoke_prompt(
        self,
        prompt: str | Template,
        arguments: Mapping[str, Any] | None = None,
        *,
        returns: object = None,
        **options: Unpack[PromptOptions],
    ) -> Any:
        """Render a prompt, ask with its messages, and return the answer: text, or a value of type ``returns``.

        Texts of others belong in ``arguments``: in the prompt itself, ``{{…}}`` calls functions and tags begin
        messages. See `render_prompt` for ``language`` and ``trusted``, and `complete` for errors.
        """
        if options.get("auto_invoke") is False:
            raise ValueError("invoke_prompt returns a value, and auto_invoke=False may give calls: use complete")
        language, trusted = options.pop("language", None), options.pop("trusted", ())
        text = await self.render_prompt(prompt, arguments, language=language, trusted=trusted)
        return (await self.complete(text, returns=returns, **cast("TurnOptions", options))).value

    async def render_prompt(
        self,
        prompt: str | Template,
        arguments: Mapping[str, Any] | None = None,
        *,
        name: str = "prompt",
        language: str | None = None,
        trusted: Collection[str] = (),
    ) -> str:
        """Render a prompt with this kernel's functions; `complete` takes the result.

        A text is a template in ``language``, by default that of Semantic Kernel, and compiled once. Arguments named in
        ``trusted`` may contain markup. A result with markup is a `Prompt`. Raises ``TemplateError``,
        ``PluginNotInstalled`` for an unknown language, and what a called function raises.
        """
        return await self._prompts.render(prompt, arguments, name=name, language=language, trusted=trusted)

    def template(self, prompt: str | Template, *, language: str | None = None, name: str = "prompt") -> Template:
        """Compile a prompt once; see `render_prompt`. A template is returned as it is."""
        return self._prompts.template(prompt, language=language, name=name)

    @cached_property
    def _prompts(self) -> Prompts:
        from portico._prompts.rendering import Prompts

        return Prompts(self)

    @cached_property
    def _asking(self) -> Asking:
        from portico._tool_loop.asking import Asking

        return Asking(self)

    async def run_goal(self, goal: str, **options: Unpack[RunOptions]) -> Run:
        """Run a goal until an answer, an infeasibility, a pause, or the end of the budget.

        `RunOptions` has the options. Raises ``ValueError`` for a blank goal and a wrong name, ``FunctionNotFound`` for
        an unknown function, ``RunError`` for a run that the journal has already, ``PlanInvalid`` when the planner was
        refused too often in a row, ``StepFailed`` when a step failed and the planner proposes nothing new,
        ``LimitExceeded`` at the end of the budget, ``StoreError`` when the journal cannot be written, ``TypeError`` for
        a wrong proposal and for plan middleware that neither proceeds nor asks for approval, and what the planner and
        ``emit`` raise.
        """
        from portico._runs.run import run_goal

        return await run_goal(self, goal, **options)

    async def propose(
        self,
        goal: str,
        *,
        planner: Planner | str | None = None,
        budget: Budget | None = None,
        context: GivenContext = None,
        emit: Emit | None = None,
        functions: Collection[str] | None = None,
        exclude: Collection[str] = (),
    ) -> Proposal:
        """Ask a planner for its first proposal, check it, and run nothing; `RunOptions` says what the options are.

        Raises ``ValueError`` for a blank goal, ``FunctionNotFound`` for an unknown function, ``TypeError`` for a
        conversation that is none, and what the planner and ``emit`` raise.
        """
        from portico._runs.offer import find_allowed
        from portico._runs.run import propose

        every = find_allowed(self, functions, exclude)
        return await propose(self, goal, planner, every, budget=budget, context=context, emit=emit)

    def approve_plans(self, decide: DecidePlan | None = None) -> None:
        """Ask ``decide`` about each plan before it runs; without ``decide``, pause every plan.

        True lets it run; False, or the reason in words, pauses it, and ``decide`` is asked again when the run is
        resumed. A `Plan` runs instead, and pauses where its check finds an error. With a `Refusal` the planner gets the
        findings and proposes again; a plan without a planner pauses.
        """
        from portico._runs.checking import plan_approval

        self.middleware.plan.append(plan_approval(decide))

    def approve_effects(self, decide: DecideStep | None = None) -> None:
        """Pause each step with effects which ``decide`` does not approve; without ``decide``, pause every such step.

        ``decide`` is asked about one step at a time and may look at its arguments. Of a nested plan, it is asked about
        each step.
        """
        from portico._runs.checking import effect_approval

        self.middleware.step.append(effect_approval(self, decide))

    def approve_flows(self, decide: DecideFlow | None = None) -> None:
        """Ask ``decide`` where the policy wants a person to agree before a value reaches a function.

        Without ``decide`` such steps pause, as they do by default. What was agreed to is in the journal, and holds for
        these values in this step of this run, and where the run continues.
        """
        self.decide_flow = decide

    def may_call(self, plan: Plan) -> set[str]:
        """Return the names of the functions that a plan may call; all where a template does not tell its calls."""
        from portico._plans.functions import calls_of

        names = set(calls_of(plan.steps, self))
        return set(self._functions) if "" in names else names

    def may_have_effects(self, plan: Plan) -> bool:
        """Tell whether a plan may call a function with effects, or one that is not known."""
        from portico._plans.functions import has_effects

        return has_effects(plan, self, {}, set())

    def check_plan(self, plan: Plan, **known: Any) -> list[Finding]:
        """Check a plan against the functions of this kernel, and return what was found, errors and warnings.

        With ``input=`` the value is checked too; without it, only what the plan says of its input is known.
        """
        from portico._runs.checking import UNKNOWN, check

        return check(self, plan, input=known.get("input", UNKNOWN))

    async def run_plan(
        self,
        plan: Plan,
        *,
        input: Any = None,
        budget: Budget | None = None,
        emit: Emit | None = None,
        run: str | None = None,
    ) -> Run:
        """Check a plan and run it, without a planner.

        Its result is the answer; a plan without one gives an empty answer. Raises ``PlanInvalid`` before anything runs,
        or ``PlanStale`` where a change of its functions is the reason, ``StepFailed`` for the first step that failed,
        after all that does not depend on it, ``LimitExceeded`` and ``StoreError`` as `run_goal` does.
        """
        from portico._runs.run import run_plan

        return await run_plan(self, plan, input=input, budget=budget, emit=emit, run=run)

    async def submit(
        self, goal: str, *, input: Any = None, run: str | None = None, **options: Unpack[SubmitOptions]
    ) -> str:
        """Submit a goal to a worker process, and return the name of its run at once.

        `SubmitOptions` has the options; the worker's kernel decides the others. A ``run`` that was submitted before
        does not begin again. Raises ``UnsupportedOption`` for a runner without workers, ``TypeError`` and
        ``ValueError`` for values that cannot be sent to another process, and ``StoreError``.
        """
        from portico._runs.submitting import run_job, submit

        return (await submit(self, [run_job(self, goal, input=input, run=run, **options)]))[0]

    async def submit_all(self, goals: Iterable[str | tuple[str, Any]], **options: Unpack[SubmitOptions]) -> list[str]:
        """Submit goals to worker processes, each alone or with its input, and return the names of their runs.

        All are put into the queue, or none where one of them cannot be sent. See `submit`.
        """
        from portico._runs.submitting import run_job, submit

        both = [(goal, None) if isinstance(goal, str) else goal for goal in goals]
        return await submit(self, [run_job(self, goal, input=input, **options) for goal, input in both])

    async def resume(
        self,
        run: str,
        *,
        planner: Planner | str | None = None,
        retry: Collection[str] = (),
        results: Mapping[str, Any] | None = None,
        budget: Budget | None = None,
        context: GivenContext = None,
        emit: Emit | None = None,
        exclude: Collection[str] = (),
    ) -> Run:
        """Continue a run of the journal, after a pause, a failure, or the end of its process.

        Steps that finished never run again. A step that began and did not end has the result that a durable runner
        recorded of it. Without one it runs again, unless its function has effects: then the run ends with
        ``Paused(uncertain=True)`` until the step is in ``retry`` or its result in ``results``. Middleware that paused
        is asked again. What failed stays failed, unless it is in ``retry``. The planner is that of the journal, unless
        another is given, and so is the conversation before the goal. ``exclude`` names functions and plugins that it
        may not use this time, beside those that the run leaves out. Proposals, steps and cost count over the whole
        run, seconds from now on.

        Raises ``RunNotFound``, ``FunctionNotFound`` for an unknown function, ``RunError`` for a step or a value that
        does not fit, ``StoreBusy`` while another process has the run, ``PlanStale`` and ``PlanInvalid`` where what is
        left of the plan cannot run with the functions as they are, and what `run_goal` raises.
        """
        from portico._runs.run import resume

        return await resume(
            self,
            run,
            planner=planner,
            retry=retry,
            results=results,
            budget=budget,
            context=context,
            emit=emit,
            exclude=exclude,
        )

    def run_sync(self, awaitable: Awaitable[T]) -> T:
        """Run an awaitable to its end from ordinary code, for scripts.

        Raises ``RuntimeError`` inside a running event loop: await there instead.
        """
        return run_to_end(awaitable)

    @staticmethod
    def job_handlers() -> dict[str, JobHandler]:
        """Return what carries out each kind of job, for one worker."""
        from portico._bulk_embedding import KIND, embed_job
        from portico._runs.submitting import RUN_KIND, carry_out

        return {RUN_KIND: carry_out, KIND: partial(embed_job, turn=asyncio.Lock())}

    @staticmethod
    def require_jobs(runner: Runner | None) -> JobQueue:
        """Return the queue of a runner's worker processes; ``UnsupportedOption`` where it has none."""
        from portico._runs.submitting import require_jobs

        return require_jobs(runner)


def _services_of(given: Services | Mapping[Any, Any] | None) -> Services | None:
    if not isinstance(given, Mapping):
        return given
    from portico._plugins.given import GivenServices

    return GivenServices(given)
