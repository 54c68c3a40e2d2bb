"""OpenAI Agents: `Runner` and `Agent` on Chat Completions, `function_tool`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.bench.chat_calls import QUESTION
from tests.bench.peers import work
from tests.bench.peers.work import Call, Once, Peer, Tools, chat, repeated

IMPORTS = "from agents import Agent, Runner, function_tool"
FIRST = """
from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner
from openai import AsyncOpenAI

model = OpenAIChatCompletionsModel("gpt-4o-mini", AsyncOpenAI(base_url=ADDRESS + "/reply", api_key="sk-0"))
agent = Agent("small", model=model)
print(Runner.run_sync(agent, "Hello?", run_config=RunConfig(tracing_disabled=True)).final_output)
"""


async def calls(address: str) -> Mapping[str, Call]:
    """Return the work of each row."""
    from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner, function_tool
    from agents.tool_context import ToolContext
    from openai import AsyncOpenAI

    config = RunConfig(tracing_disabled=True)

    def agent(path: str, **given: Any) -> Any:
        client = AsyncOpenAI(base_url=f"{address}/{path}", api_key="sk-0")
        return Agent("small", model=OpenAIChatCompletionsModel("gpt-4o-mini", client), **given)

    add = function_tool(work.add)
    given = '{"a": 1, "b": 2}'
    context: Any = ToolContext(None, tool_name="add", tool_call_id="call_0", tool_arguments=given)
    plain, streaming = agent("reply"), agent("stream")
    structured = agent("structured", output_type=work.pydantic_form())

    async def reply() -> object:
        return (await Runner.run(plain, QUESTION, run_config=config)).final_output

    async def stream() -> object:
        pieces = 0
        async for event in Runner.run_streamed(streaming, QUESTION, run_config=config).stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                pieces += bool(event.data.delta)
        return pieces

    def turn(path: str, functions: Tools) -> Once:
        asking = agent(path, tools=[function_tool(function) for function in functions])

        async def asked() -> object:
            return (await Runner.run(asking, QUESTION, run_config=config)).final_output

        return asked

    async def typed() -> object:
        return (await Runner.run(structured, QUESTION, run_config=config)).final_output.final_answer

    return {
        "json": repeated("await add.on_invoke_tool(context, text)", add=add, context=context),
        **chat(reply, stream, turn, typed),
    }


PEER = Peer("OpenAI Agents", ("openai-agents==0.24.0",), IMPORTS, FIRST, calls)
