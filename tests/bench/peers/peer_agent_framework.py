"""Agent Framework: its client for Chat Completions, `tool`, its store in memory."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from tests.bench.chat_calls import QUESTION
from tests.bench.peers import floor, work
from tests.bench.peers.work import Call, Peer, chat, each, repeated

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
    from agent_framework import Message, tool
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

    def turn(path: str, further: int) -> Callable[[], Awaitable[object]]:
        asking = client(path)
        offered = [tool(function) for function in (work.temperature, *work.further_tools(further))]

        async def asked() -> object:
            return (await asking.get_response(question, options={"tools": offered})).text

        return asked

    async def typed() -> object:
        return (await structured.get_response(question, options={"response_format": form})).value.final_answer

    return {
        "native": repeated('await add.invoke(arguments={"a": 1, "b": 2}, skip_parsing=True)', add=add),
        "json": repeated("await add.invoke(arguments=json.loads(text), skip_parsing=True)", add=add),
        **chat(reply, stream, turn, typed),
        "vectors": each(await vectors()),
    }


async def vectors() -> Any:
    """Return the search in its store in memory."""
    from agent_framework import InMemoryStore, VectorStoreField, vectorstoremodel

    @vectorstoremodel(collection_name="bench")
    @dataclass
    class Record:
        id: Annotated[str, VectorStoreField("key")]
        vector: Annotated[
            list[float] | None, VectorStoreField("vector", dimensions=256, distance_function="dot_prod")
        ] = None

    rows = floor.vectors().tolist()
    store = InMemoryStore().get_collection(Record)
    await store.ensure_collection_exists()
    await store.upsert([Record(str(number), row) for number, row in enumerate(rows[:-1])], generate_vectors=False)

    async def nearest() -> object:
        found = await store.search(vector=rows[-1], top=5)
        return [result["record"].id async for result in found.results]

    return nearest


PEER = Peer(
    "Agent Framework",
    ("agent-framework-core==1.23.0", "agent-framework-openai==1.17.0", "numpy==2.4.6"),
    IMPORTS,
    FIRST,
    calls,
)
