"""The kernel: names, calls with Python values and with JSON, filters, and scripts."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico._chat.messages import ToolCall, ToolResult
from portico._functions.functions import Function, FunctionPlugin, function
from portico._functions.middleware import FunctionInvocation, Middleware
from portico._kernel import Kernel
from portico._ports.chat_service import ChatService
from portico._ports.planner import Planner
from portico._ports.text_search import TextSearch
from portico.errors import ArgumentsInvalid, FunctionFailed, FunctionNotFound, PluginNotInstalled, PorticoError
from portico_testkit.strategies import json_values


def noop() -> None: ...


def named(plugin: str | None, name: str) -> Function:
    made = Function.of(noop)
    return Function(name, noop, plugin=plugin, returns=made.returns)


def kernel_with(*functions: Function) -> Kernel:
    kernel = Kernel()
    for made in functions:
        kernel.add_function(made)
    return kernel


@pytest.mark.parametrize("spelling", ["Tables-book", "Tables.book", "Tables_book", "book"])
def test_a_function_is_found_by_each_spelling_of_its_name(spelling: str) -> None:
    assert kernel_with(named("Tables", "book"), named("Tables", "cancel")).function(spelling).full_name == "Tables-book"


def test_a_spelling_that_could_mean_two_functions_means_none() -> None:
    kernel = kernel_with(named("A", "x"), named("B", "x"), named("a_b", "c"), named("a", "b_c"))
    for spelling in ("x", "a_b_c"):
        with pytest.raises(FunctionNotFound, match="may be any of") as caught:
            kernel.function(spelling)
        assert set(caught.value.nearest) == ({"A-x", "B-x"} if spelling == "x" else {"a_b-c", "a-b_c"})
    assert kernel.function("B_x").full_name == "B-x"


def test_the_full_name_comes_first() -> None:
    kernel = kernel_with(named(None, "A_x"), named("A", "x"))
    assert kernel.function("A_x").plugin is None
    assert kernel.function("A.x").plugin == "A"


@given(st.lists(st.tuples(st.sampled_from([None, "a", "a_b", "b"]), st.sampled_from(["x", "b_x", "c"])), unique=True))
def test_every_function_is_found_by_its_full_name(names: list[tuple[str | None, str]]) -> None:
    kernel = kernel_with(*(named(plugin, name) for plugin, name in names))
    for full_name, made in kernel.functions.items():
        assert kernel.function(full_name) is made


def test_no_function_takes_the_place_of_another() -> None:
    kernel = kernel_with(named("A", "x"))
    with pytest.raises(ValueError, match="already"):
        kernel.add_function(named("A", "x"))
    with pytest.raises(ValueError, match="already"):
        kernel.add_plugin(FunctionPlugin("A", (named("A", "y"), named("A", "x"))))
    assert list(kernel.functions) == ["A-x"]
    assert kernel.plugins == {}
    kernel.add_plugin(FunctionPlugin("B", (named("B", "x"),)))
    with pytest.raises(ValueError, match="already"):
        kernel.add_plugin(FunctionPlugin("B", ()))


def test_manuals_follow_what_is_added() -> None:
    kernel = kernel_with(named("A", "x"))
    assert list(kernel.specs) == ["A-x"]
    assert kernel.specs is kernel.specs
    kernel.add_function(named("A", "y"))
    assert list(kernel.specs) == ["A-x", "A-y"]


def test_a_kernel_without_services_says_where_they_come_from() -> None:
    with pytest.raises(PluginNotInstalled, match=r"portico_host\.open"):
        Kernel().service(Planner)


def test_a_kernel_takes_its_services_from_a_mapping() -> None:
    kernel = Kernel(services={TextSearch: "docs", (TextSearch, "web"): "web", Planner: "planner"})
    assert kernel.service(TextSearch) == "docs"
    assert kernel.service(TextSearch, "web") == "web"
    assert kernel.services is not None
    assert kernel.services.names(TextSearch) == ("default", "web")
    with pytest.raises(PluginNotInstalled, match=r"No ChatService was given.*none.*Kernel\(services="):
        kernel.service(ChatService)
    with pytest.raises(PluginNotInstalled, match=r"No TextSearch 'wiki' was given; there are: default, web"):
        kernel.service(TextSearch, "wiki")


@pytest.mark.parametrize("key", ["chat", (TextSearch, 1), ("TextSearch", "web")])
def test_services_are_given_by_port_and_not_by_another_key(key: Any) -> None:
    with pytest.raises(TypeError, match="by port"):
        Kernel(services={key: "service"})


class Sums:
    @function
    def add(self, left: int, right: int) -> int:
        """Add two numbers."""
        return left + right

    @function(blocking=True)
    def thread(self) -> int:
        return threading.get_ident()

    @function
    async def divide(self, left: float, right: float = 0) -> float:
        return left / right

    @function
    def refuse(self) -> None:
        raise PorticoError("not today")

    @function
    def strange(self) -> Any:
        return {1, object()}

    @function
    def endless(self) -> Any:
        loop: list[Any] = []
        loop.append(loop)
        return loop

    @function
    def infinite(self) -> float:
        return float("inf")

    @function
    def words(self) -> str:
        return "as they are"

    @function
    async def stop(self) -> None:
        raise asyncio.CancelledError

    @function
    async def wait(self) -> None:
        await asyncio.Event().wait()


@pytest.fixture
def kernel() -> Kernel:
    kernel = Kernel()
    kernel.add_plugin(Sums)
    return kernel


async def test_invoke_takes_python_values_and_gives_what_the_function_does(kernel: Kernel) -> None:
    assert await kernel.invoke("Sums-add", left="a", right="b") == "ab"
    assert await kernel.invoke(kernel.function("add"), left=1, right=2) == 3
    with pytest.raises(ZeroDivisionError):
        await kernel.invoke("Sums-divide", left=1)


@pytest.mark.parametrize("given", [{}, {"left": 1, "rigth": 2}, {"left": 1, "right": 2, "more": 3}])
@pytest.mark.parametrize("name", ["Sums-divide", "divided"])
async def test_what_is_wrong_with_a_call_is_raised_when_it_is_awaited(
    kernel: Kernel, name: str, given: dict[str, int]
) -> None:
    calling = kernel.invoke(name, **given)
    with pytest.raises(TypeError if name == "Sums-divide" else FunctionNotFound):
        await calling


async def test_a_threaded_function_leaves_the_event_loop_alone(kernel: Kernel) -> None:
    assert await kernel.invoke("Sums-thread") != threading.get_ident()
    kernel.middleware.function.append(lambda context, proceed: proceed())
    assert await kernel.invoke("Sums-thread") != threading.get_ident()


async def test_invoke_json_maps_failures(kernel: Kernel) -> None:
    assert await kernel.invoke_json("add", {"left": 1.0, "right": 2}) == 3
    with pytest.raises(FunctionFailed, match="ZeroDivisionError") as caught:
        await kernel.invoke_json("divide", {"left": 1})
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(PorticoError, match=r"^not today$"):
        await kernel.invoke_json("refuse", {})
    with pytest.raises(ArgumentsInvalid, match="right: missing"):
        await kernel.invoke_json("add", {"left": 1})
    with pytest.raises(PorticoError):
        await kernel.invoke_json("strange", {})
    with pytest.raises(FunctionFailed):
        await kernel.invoke_json("endless", {})


async def test_a_cancellation_is_no_failure(kernel: Kernel) -> None:
    for call in (kernel.invoke_json("wait", {}), kernel.call_tool(ToolCall("1", "wait"))):
        calling = asyncio.ensure_future(call)
        await asyncio.sleep(0)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling


async def test_a_function_that_is_cancelled_from_within_has_failed(kernel: Kernel) -> None:
    with pytest.raises(FunctionFailed, match="CancelledError"):
        await kernel.invoke_json("stop", {})
    assert (await kernel.call_tool(ToolCall("1", "stop"))).error


async def test_a_tool_call_is_answered(kernel: Kernel) -> None:
    assert await kernel.call_tool(ToolCall("7", "Sums_add", '{"left": 1, "right": 2}')) == ToolResult(
        "7", "Sums_add", "3"
    )
    assert (await kernel.call_tool(ToolCall("7", "words", ""))).content == "as they are"


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("Sums-ad", "{}", "Nearest: Sums-add"),
        ("add", "{", "not JSON"),
        ("add", "[1, 2]", "one JSON object"),
        ("add", "null", "one JSON object"),
        ("add", '{"left": 1, "right": "b"}', "right: expected an integer, got 'b'"),
        ("add", '{"left": 1, "right": NaN}', "right: expected an integer"),
        ("add", '{"left": ' + "9" * 5000 + ', "right": 1}', "not JSON"),
        ("add", "[" * 200_000, "not JSON"),
        ("divide", '{"left": 1}', "ZeroDivisionError"),
        ("divide", '{"left": Infinity, "right": 1}', "left: expected a number"),
        ("refuse", "", "not today"),
        ("strange", "", "JSON"),
        ("endless", "", "RecursionError"),
        ("infinite", "", "not JSON compliant"),
        ("\x00" * 1000, "", "no function"),
    ],
)
async def test_a_failed_tool_call_is_a_result_that_says_why(
    kernel: Kernel, name: str, arguments: str, says: str
) -> None:
    result = await kernel.call_tool(ToolCall("7", name, arguments))
    assert result.error
    assert says in result.content
    assert (result.id, result.name) == ("7", name)


@given(st.sampled_from(["add", "divide", "words", "Sums-thread", "x"]), json_values().map(json.dumps) | st.text())
def test_no_tool_call_raises_whatever_a_model_writes(name: str, arguments: str) -> None:
    kernel = Kernel()
    kernel.add_plugin(Sums)
    result = asyncio.run(kernel.call_tool(ToolCall("7", name, arguments)))
    assert result.error or result.content


def recording(log: list[str], name: str) -> Callable[[Any, Callable[[], Awaitable[Any]]], Awaitable[Any]]:
    async def filter(context: Any, proceed: Callable[[], Awaitable[Any]]) -> Any:
        log.append(f"{name} before")
        try:
            return await proceed()
        finally:
            log.append(f"{name} after")

    return filter


async def test_function_filters_run_from_the_outside_in(kernel: Kernel) -> None:
    log: list[str] = []
    kernel.middleware.function += [recording(log, "outer"), recording(log, "inner")]
    assert await kernel.invoke("add", left=1, right=2) == 3
    assert log == ["outer before", "inner before", "inner after", "outer after"]


async def test_a_filter_may_change_arguments_function_and_result(kernel: Kernel) -> None:
    async def change(context: FunctionInvocation, proceed: Callable[[], Awaitable[Any]]) -> Any:
        context.function = kernel.function("divide")
        context.arguments = {"left": 10, "right": context.arguments["right"]}
        return -(await proceed())

    kernel.middleware.function.append(change)
    assert await kernel.invoke("add", left=1, right=5) == -2.0


async def test_a_filter_that_does_not_proceed_ends_it_there(kernel: Kernel) -> None:
    log: list[str] = []

    async def instead(context: object, proceed: object) -> str:
        return "instead"

    kernel.middleware.function += [instead, recording(log, "inner")]
    assert await kernel.invoke("refuse") == "instead"
    assert log == []


async def test_tool_call_filters_run_around_the_call_and_may_replace_it(kernel: Kernel) -> None:
    log: list[str] = []
    kernel.middleware.tool_call += [recording(log, "outer"), recording(log, "inner")]
    assert (await kernel.call_tool(ToolCall("1", "words"))).content == "as they are"
    assert log == ["outer before", "inner before", "inner after", "outer after"]

    async def deny(context: Any, proceed: object) -> ToolResult:
        raise PorticoError("not allowed here")

    kernel.middleware.tool_call.insert(0, deny)
    assert await kernel.call_tool(ToolCall("1", "words")) == ToolResult("1", "words", "not allowed here", error=True)


async def test_prompt_filters_run_around_the_rendering() -> None:
    class Shout:
        async def render(self, arguments: Any, *, call: Any) -> str:
            return f"{arguments['text']} {await call('words', {})}"

    async def trim(context: Any, proceed: Callable[[], Awaitable[str]]) -> str:
        context.arguments["text"] = context.arguments["text"].strip()
        return (await proceed()) + "!"

    arguments = {"text": "  taken "}
    kernel = Kernel(plugins=[FunctionPlugin.of(Sums)], middleware=Middleware(prompt=[trim]))
    assert await kernel.render_prompt(Shout(), arguments) == "taken as they are!"
    assert arguments == {"text": "  taken "}


async def test_run_sync_inside_of_a_loop_says_to_await(kernel: Kernel) -> None:
    with pytest.raises(RuntimeError, match="await instead"):
        kernel.run_sync(kernel.invoke("add", left=1, right=2))


def test_what_fails_in_a_script_is_not_told_as_a_failure_to_find_an_event_loop() -> None:
    async def fail() -> None:
        raise LookupError("the reason")

    with pytest.raises(LookupError) as caught:
        Kernel().run_sync(fail())
    assert caught.value.__context__ is None
