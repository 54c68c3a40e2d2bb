"""Pydantic AI: `Agent`, `direct.model_request`, `FunctionToolset`, `TemplateStr`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.bench.chat_calls import QUESTION
from tests.bench.peers import work
from tests.bench.peers.work import Call, Once, Peer, Tools, chat, repeated

IMPORTS = "from pydantic_ai import Agent, ModelRequest, Tool"
FIRST = """
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

model = OpenAIChatModel("gpt-4o-mini", provider=OpenAIProvider(base_url=ADDRESS + "/reply", api_key="sk-0"))
print(Agent(model).run_sync("Hello?").output)
"""


async def calls(address: str) -> Mapping[str, Call]:
    """Return the work of each row."""
    from pydantic_ai import Agent, ModelRequest, NativeOutput, RunContext, RunUsage, TemplateStr, Tool
    from pydantic_ai.direct import model_request, model_request_stream
    from pydantic_ai.messages import PartDeltaEvent, PartStartEvent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.toolsets import FunctionToolset

    def model(path: str) -> Any:
        return OpenAIChatModel("gpt-4o-mini", provider=OpenAIProvider(base_url=f"{address}/{path}", api_key="sk-0"))

    plain, streaming = model("reply"), model("stream")
    question = [ModelRequest.user_text_prompt(QUESTION)]
    structured = Agent(model("structured"), output_type=NativeOutput(work.pydantic_form()))
    context = RunContext(deps=None, model=plain, usage=RunUsage(), max_retries=1)
    toolset: Any = FunctionToolset([work.add])
    add = (await toolset.get_tools(context))["add"]
    validator = Tool(work.add).function_schema.validator
    template: Any = TemplateStr(work.DOUBLE)

    async def reply() -> object:
        return (await model_request(plain, question)).text

    async def stream() -> object:
        pieces = 0
        async with model_request_stream(streaming, question) as events:
            async for event in events:
                if isinstance(event, PartDeltaEvent):
                    pieces += 1
                elif isinstance(event, PartStartEvent):
                    pieces += bool(event.part.content)
        return pieces

    def turn(path: str, functions: Tools) -> Once:
        agent = Agent(model(path), tools=functions)

        async def asked() -> object:
            return (await agent.run(QUESTION)).output

        return asked

    async def typed() -> object:
        return (await structured.run(QUESTION)).output.final_answer

    return {
        "native": repeated(
            'await toolset.call_tool("add", {"a": 1, "b": 2}, context, add)', toolset=toolset, context=context, add=add
        ),
        "json": repeated(
            'await toolset.call_tool("add", validator.validate_json(text), context, add)',
            toolset=toolset,
            context=context,
            add=add,
            validator=validator,
        ),
        "handlebars": repeated("template.render(variables)", template=template),
        **chat(reply, stream, turn, typed),
    }


PEER = Peer("Pydantic AI", ("pydantic-ai-slim[openai]==2.68.0", "pydantic-handlebars"), IMPORTS, FIRST, calls)
