"""What the parts of a run need of the kernel, so that the kernel itself is on top."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping

    from portico._flows.check import DecideFlow
    from portico._flows.policy import Policy
    from portico._functions.functions import Function, FunctionPlugin, FunctionSpec
    from portico._functions.middleware import Middleware
    from portico._plans.task import Budget
    from portico._plugins.registration import Services
    from portico._ports.function_selector import FunctionSelector
    from portico._ports.plan_store import PlanStore
    from portico._ports.run_store import RunStore
    from portico._ports.runner import Runner
    from portico._ports.schema_validator import SchemaValidator
    from portico._ports.template_language import Template, TemplateLanguage
    from portico._ports.type_codec import TypeCodec

P = TypeVar("P")


class KernelLike(Protocol):
    """Has the functions, the services and the settings of a `Kernel`, and calls functions."""

    services: Services | None
    middleware: Middleware
    schema_validator: SchemaValidator | None
    runner: Runner | None
    run_store: RunStore | None
    plan_store: PlanStore | None
    budget: Budget | None
    policy: Policy | None
    decide_flow: DecideFlow | None
    reuse: bool
    planner_include: tuple[str, ...] | None
    planner_exclude: tuple[str, ...]
    function_selector: FunctionSelector | None
    origin: Mapping[str, Any] | None
    type_codecs: tuple[TypeCodec, ...]
    template_languages: dict[str, TemplateLanguage]
    plugins: dict[str, FunctionPlugin]
    fingerprints: dict[str, str]

    @property
    def functions(self) -> Mapping[str, Function]: ...
    @property
    def specs(self) -> Mapping[str, FunctionSpec]: ...
    def function(self, name: str) -> Function: ...
    def service(self, port: Callable[..., P], name: str | None = None) -> P: ...
    async def invoke(self, function: str | Function, /, **arguments: Any) -> Any: ...
    async def invoke_json(
        self, function: str | Function, arguments: Mapping[str, Any], *, lenient: bool = False
    ) -> Any: ...
    def template(self, prompt: str | Template, *, language: str | None = None, name: str = "prompt") -> Template: ...
    async def render_prompt(
        self,
        prompt: str | Template,
        arguments: Mapping[str, Any] | None = None,
        *,
        name: str = "prompt",
        language: str | None = None,
        trusted: Collection[str] = (),
    ) -> str: ...
    def run_sync(self, awaitable: Awaitable[Any]) -> Any: ...

    # Options and results of these belong to modules above this one.
    @property
    def complete(self) -> Callable[..., Awaitable[Any]]: ...
    @property
    def stream(self) -> Callable[..., AsyncGenerator[Any, None]]: ...
    @property
    def call_tool(self) -> Callable[..., Awaitable[Any]]: ...
    @property
    def run_plan(self) -> Callable[..., Awaitable[Any]]: ...
