"""A kernel as a server of the Model Context Protocol."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from attrs import frozen
from mcp.server import Server
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)

from portico import FunctionPlugin, FunctionSpec, Passages
from portico.errors import ConfigurationError, PorticoError, SchemaUnsupported, nearest
from portico.plugins import PlainSchemaValidator
from portico_mcp._choice import choose
from portico_mcp._client.wire import PARTS
from portico_mcp._serving.calls import ANY_JSON, Call, Given, links_of, mend
from portico_mcp._serving.plan_tools import PlanTools, with_plan_schema

if TYPE_CHECKING:
    from portico import Function, Kernel


_log = logging.getLogger(__name__)
_RUNS = "portico://runs/"
_PAGE = 100
_INSTRUCTIONS = (
    "Functions, searches and saved plans of a Portico application. plan_propose makes a plan of them for a goal, and "
    "plan_run checks it and runs it. Runs are resources."
)


DescribeRun = Callable[..., Awaitable[Mapping[str, Any]]]
"""Returns a run of the journal as JSON values, with its steps if ``details`` are wanted."""


@frozen
class _Served:
    """A tool, and what carries out its calls."""

    spec: FunctionSpec
    carry_out: Callable[[Call], Awaitable[Given | InputRequiredResult]]
    untyped: bool

    def tool(self, revision: str) -> Tool:
        """Return what clients of a revision read: in older ones only objects have a schema."""
        spec, returns = self.spec, self.spec.returns
        typed = bool(returns) and not self.untyped and (revision >= ANY_JSON or returns.get("type") == "object")
        return Tool(
            name=FunctionSpec.wire_name(spec.name),
            description=spec.description or None,
            input_schema=dict(spec.parameters),
            output_schema=dict(returns) if typed else None,
            annotations=ToolAnnotations(read_only_hint=not spec.effects, destructive_hint=spec.effects),
        )


def make_server(
    kernel: Kernel,
    *,
    include: Iterable[str] = (),
    exclude: Iterable[str] = (),
    describe_run: DescribeRun | None = None,
    resume: str = "portico resume",
) -> Server[Any]:
    """Return a server whose tools are the functions of a kernel and those for plans; its resources are the runs.

    ``include`` and ``exclude`` are names of tools and of plugins; see `choose`. Plans of clients cannot call a function
    that is left out. ``describe_run`` reads the runs of the kernel's journal, and the command ``resume`` continues one.
    The kernel is the server's from now on: plans with effects need the approval of a client's user. Raises
    ``ConfigurationError`` as `choose` does, and for a function named like an own tool.
    """
    plans = PlanTools(kernel, resume)
    own = {tool.name: tool for tool in FunctionPlugin.of(plans, "plans")}
    named = {name: [FunctionSpec.wire_name(name), each.plugin or name] for name, each in kernel.functions.items()}
    chosen = choose({name: [name] for name in own} | named, tuple(include), tuple(exclude), "--")
    if taken := sorted(chosen & own.keys() & named.keys()):
        raise ConfigurationError(f"The server has its own tool {taken[0]!r}: give your function of this name another.")
    plans.hidden = frozenset(kernel.functions.keys() | own.keys()) - chosen
    served: dict[str, _Served] = {}
    for name, function in kernel.functions.items():
        if name in chosen:
            untyped = function.returns.schema is PARTS or _takes_null(kernel, function.spec)
            served[named[name][0]] = _Served(function.spec, partial(_call_function, plans, function), untyped)
    for name, function in own.items():
        if name in chosen and (kernel.run_store is not None or name != "run_resume"):
            served[name] = _Served(with_plan_schema(function), partial(plans.carry_out, function), untyped=True)
    runs = _Runs(kernel, describe_run, plans.hidden)
    server = Server[Any](
        "portico",
        version=version("portico-mcp"),
        instructions=_INSTRUCTIONS,
        on_list_tools=partial(_list_tools, served),
        on_call_tool=partial(_call_tool, served),
        on_list_resources=runs.list_runs,
        on_list_resource_templates=runs.list_templates,
        on_read_resource=runs.read,
    )
    server.middleware.append(_say_what_failed)
    return server


async def _say_what_failed(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Answer a request with the sentence of its error, such as that the journal cannot be read."""
    try:
        return await call_next(ctx)
    except PorticoError as error:
        raise MCPError(INTERNAL_ERROR, mend(str(error))) from error


def _takes_null(kernel: Kernel, spec: FunctionSpec) -> bool:
    """Tell whether a result may be null, which the protocol cannot tell from none."""
    try:
        return not (kernel.schema_validator or PlainSchemaValidator()).compile(spec.returns)(None)
    except SchemaUnsupported:
        return True


async def _list_tools(
    served: Mapping[str, _Served], context: ServerRequestContext[Any, Any], _: PaginatedRequestParams | None
) -> ListToolsResult:
    return ListToolsResult(tools=[each.tool(context.protocol_version) for each in served.values()])


async def _call_tool(
    served: Mapping[str, _Served], context: ServerRequestContext[Any, Any], params: CallToolRequestParams
) -> CallToolResult | InputRequiredResult:
    tool = served.get(params.name)
    if tool is None:
        near = nearest(params.name, list(served))
        words = f" Nearest: {', '.join(near)}." if near else ""
        raise MCPError(INVALID_PARAMS, f"There is no tool {params.name!r}.{words}")
    try:
        given = await tool.carry_out(Call(context, params))
        return given if isinstance(given, InputRequiredResult) else given.result(context.protocol_version)
    except PorticoError as error:
        words = "\n".join([str(error), *getattr(error, "__notes__", ())])
    except Exception as error:  # noqa: BLE001 - a mistake in one tool must not end the connection
        words = f"Something went wrong in {params.name} that should not: {type(error).__name__}: {error}"
        _log.error("%s", words)
    return Given(None, words, error=True).result(context.protocol_version)


async def _call_function(plans: PlanTools, function: Function, call: Call) -> Given:
    value = await plans.call(call, function)
    if function.returns.schema is PARTS:
        return Given(value, content=True)
    found = function.spec.is_search or "results" in function.tags
    return Given(value, links=links_of(Passages().take(value, found=found)))


@frozen
class _Runs:
    """The runs of the journal as resources, but for those that name a ``hidden`` function."""

    kernel: Kernel
    describe: DescribeRun | None
    hidden: frozenset[str]

    async def list_runs(
        self, _: ServerRequestContext[Any, Any], params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        """List the runs, the newest first, some at a time; the cursor is the oldest run of the page before."""
        names = await self._names()
        after = params.cursor if params is not None else None
        if after is not None:
            if after not in names:
                raise MCPError(INVALID_PARAMS, f"There is no run {after!r} to continue the list after.")
            names = names[: names.index(after)]
        page = names[-_PAGE:][::-1]
        cursor = page[-1] if len(page) < len(names) else None
        resources = [each for name in page if (each := await self._resource(name)) is not None]
        return ListResourcesResult(resources=resources, next_cursor=cursor)

    async def list_templates(
        self, _: ServerRequestContext[Any, Any], __: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        """List the one form that the addresses of runs have."""
        template = ResourceTemplate(
            name="run",
            uri_template=f"{_RUNS}{{run}}",
            description="A run: its state, its plan, and its steps with their results.",
            mime_type="application/json",
        )
        return ListResourceTemplatesResult(resource_templates=[template])

    async def read(self, _: ServerRequestContext[Any, Any], params: ReadResourceRequestParams) -> ReadResourceResult:
        """Read a run, as ``portico runs RUN --json`` shows it."""
        name, run = unquote(params.uri.removeprefix(_RUNS)), None
        if self.describe is not None and params.uri.startswith(_RUNS) and name in await self._names():
            run = await self.describe(name, details=True)
        if run is None or self._names_hidden(run):
            raise MCPError(INVALID_PARAMS, f"There is no resource {params.uri!r}.", {"uri": params.uri})
        text = mend(json.dumps(run, ensure_ascii=False, indent=2))
        content = TextResourceContents(uri=params.uri, mime_type="application/json", text=text)
        return ReadResourceResult(contents=[content])

    async def _names(self) -> list[str]:
        store = self.kernel.run_store
        return [] if store is None or self.describe is None else list(await store.runs())

    def _names_hidden(self, run: Mapping[str, Any]) -> bool:
        text = json.dumps(run)
        return any(json.dumps(name) in text for name in self.hidden)

    async def _resource(self, name: str) -> Resource | None:
        assert self.describe is not None  # noqa: S101 - without it there are no names
        try:
            run = await self.describe(name, details=bool(self.hidden))
            if self._names_hidden(run):
                return None
            about = f"A run that is {run.get('state')}."
        except PorticoError as error:  # the others can be listed
            run, about = {}, str(error)
        return Resource(
            uri=f"{_RUNS}{quote(name, safe='')}",
            name=name,
            title=mend(run.get("goal", "")) or None,
            description=mend(about),
            mime_type="application/json",
        )
