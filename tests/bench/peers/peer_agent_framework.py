"""Agent Framework: its client for Chat Completions, `tool`, its store in memory."""

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from tests.bench.chat_calls import QUESTION
from tests.bench.peers import work
from tests.bench.peers.peer_semantic_kernel import vectors
from tests.bench.peers.work import Call, Once, Peer, Tools, chat, each, repeated

IMPORTS = """
from agent_framework import Agent, Message, tool
"""
FIRST = """
import asyncio
from agent_framework import Message
from agent_framework.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o-mini", base_url=ADDRESS + "/reply", api_key="sk-0")
print(asyncio.run(client.get_response([Message("user", ["Hello?"])])).text)
"""


async def calls(address: str) -> Mapping[str, Call]:
    """Return the work of each row."""
    import agent_framework
    from agent_framework import InMemoryStore, Message, tool
    from agent_framework.openai import OpenAIChatCompletionClient

    def client(path: str) -> Any:
        return OpenAIChatCompletionClient(model="gpt-4o-mini", base_url=f"{address}/{path}", api_key="sk-0")

    add: Any = tool(work.add)
    question = [Message("user", [QUESTION])]
    plain, streaming, structured = client("reply"), client("stream"), client("structured")
    form = work.pydantic_form()

    async def reply() -> object:
        return (await plain.get_response(question)).text

    async def stream() -> object:
        pieces = 0
        async for update in streaming.get_response(question, stream=True):
            pieces += bool(update.text)
        return pieces

    def turn(path: str, functions: Tools) -> Once:
        asking = client(path)
        offered = [tool(function) for function in functions]

        async def asked() -> object:
            return (await asking.get_response(question, options={"tools": offered})).text

        return asked

    async def typed() -> object:
        return (await structured.get_response(question, options={"response_format": form})).value.final_answer

    return {
        "native": repeated('await add.invoke(arguments={"a": 1, "b": 2}, skip_parsing=True)', add=add),
        "json": repeated("await add.invoke(arguments=json.loads(text), skip_parsing=True)", add=add),
        **chat(reply, stream, turn, typed),
        "vectors": each(await vectors(InMemoryStore(), agent_framework, itemgetter("record"), generate_vectors=False)),
    }


PEER = Peer(
    "Agent Framework",
    ("agent-framework-core==1.23.0", "agent-framework-openai==1.17.0", "numpy==2.4.6"),
    IMPORTS,
    FIRST,
    calls,
)
