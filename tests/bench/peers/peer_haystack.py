"""Haystack: its chat generator, `Agent`, tools, `PromptBuilder`, a pipeline as a document, its store in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.bench.chat_calls import QUESTION
from tests.bench.peers import floor, work
from tests.bench.peers.work import Call, Once, Peer, Tools, chat, each, repeated

IMPORTS = """
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage
from haystack.tools import tool
"""
FIRST = """
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret
model = OpenAIChatGenerator(Secret.from_token("sk-0"), "gpt-4o-mini", api_base_url=ADDRESS + "/reply")
print(model.run(messages=[ChatMessage.from_user("Hello?")])["replies"][0].text)
"""


async def calls(address: str) -> Mapping[str, Call]:
    """Return the work of each row."""
    from haystack import Document, Pipeline
    from haystack.components.agents import Agent
    from haystack.components.builders import PromptBuilder
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.dataclasses import ChatMessage
    from haystack.document_stores.in_memory import InMemoryDocumentStore
    from haystack.tools import SearchableToolset, create_tool_from_function
    from haystack.utils import Secret
    from tests.bench.peers import haystack_steps

    def model(path: str, **given: Any) -> Any:
        key = Secret.from_token("sk-0")
        return OpenAIChatGenerator(key, "gpt-4o-mini", api_base_url=f"{address}/{path}", **given)

    add = create_tool_from_function(work.add)
    question = [ChatMessage.from_user(QUESTION)]
    form = work.pydantic_form()
    plain, streaming = model("reply"), model("stream")
    structured = model("structured", generation_kwargs={"response_format": form})
    builder = PromptBuilder(work.DOUBLE)

    async def reply() -> object:
        return (await plain.run_async(messages=question))["replies"][0].text

    async def stream() -> object:
        pieces = 0

        async def seen(chunk: Any) -> None:
            nonlocal pieces
            pieces += bool(chunk.content)

        await streaming.run_async(messages=question, streaming_callback=seen)
        return pieces

    def turn(path: str, functions: Tools) -> Once:
        tools = [create_tool_from_function(function) for function in functions]
        agent = Agent(chat_generator=model(path), tools=tools)

        async def asked() -> object:
            return (await agent.run_async(messages=question))["last_message"].text

        return asked

    async def typed() -> object:
        made = (await structured.run_async(messages=question))["replies"][0]
        return form.model_validate_json(made.text).final_answer

    manuals = work.catalogue()
    offered = [create_tool_from_function(work.add, name=each, description=text) for each, text in manuals]
    toolset = SearchableToolset(offered, top_k=work.CHOSEN)
    (search,) = toolset
    name, sentence = work.wanted()

    async def choose() -> object:
        return name in search.invoke(tool_keywords=sentence)

    document = haystack_steps.document()

    async def plan() -> object:
        # Nothing in it waits, and `run_async` would take threads.
        pipeline = Pipeline.from_dict(json.loads(document), allowed_modules=[haystack_steps.__name__])
        return pipeline.run({"upper": {"text": "hello"}})["shout"]["text"]

    rows = floor.vectors()
    store = InMemoryDocumentStore(embedding_similarity_function="dot_product", return_embedding=False)
    store.write_documents([Document(id=str(n), embedding=row.tolist()) for n, row in enumerate(rows[:-1])])
    wanted = rows[-1].tolist()

    async def nearest() -> object:
        return [document.id for document in store.embedding_retrieval(wanted, top_k=5)]

    return {
        "native": repeated("await add.invoke_async(a=1, b=2)", add=add),
        "json": repeated("await add.invoke_async(**json.loads(text))", add=add),
        "jinja2": repeated('builder.run(**variables)["prompt"]', builder=builder),
        **chat(reply, stream, turn, typed),
        "selection": each(choose),
        "plan": each(plan),
        "vectors": each(nearest),
    }


PEER = Peer("Haystack", ("haystack-ai==3.4.1",), IMPORTS, FIRST, calls)
