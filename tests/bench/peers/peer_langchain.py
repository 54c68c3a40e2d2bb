"""LangChain: `ChatOpenAI`, `create_agent`, `StructuredTool`, its prompt templates, its store in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.bench.peers import floor, work
from tests.bench.peers.work import QUESTION, Call, Peer, each, together

IMPORTS = """
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
"""
FIRST = """
from langchain_openai import ChatOpenAI
model = ChatOpenAI(model="gpt-4o-mini", base_url=ADDRESS + "/reply", api_key="sk-0")
print(model.invoke("Hello?").text)
"""


async def calls(address: str) -> Mapping[str, Call]:
    """Return the work of each row."""
    from langchain.agents import create_agent
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.messages import HumanMessage
    from langchain_core.prompts import PromptTemplate
    from langchain_core.tools import StructuredTool
    from langchain_core.vectorstores import InMemoryVectorStore
    from langchain_openai import ChatOpenAI

    def model(path: str) -> Any:
        return ChatOpenAI(model="gpt-4o-mini", base_url=f"{address}/{path}", api_key="sk-0")

    add = StructuredTool.from_function(coroutine=work.add)
    question = [HumanMessage(QUESTION)]
    plain, streaming = model("reply"), model("stream")
    structured = model("structured").with_structured_output(work.pydantic_form(), method="json_schema")

    async def native(count: int) -> object:
        result = None
        for _ in range(count):
            result = await add.ainvoke({"a": 1, "b": 2})
        return result

    async def from_json(count: int) -> object:
        result = None
        for _ in range(count):
            result = await add.ainvoke(json.loads('{"a": 1, "b": 2}'))
        return result

    def prompt(text: str, language: Any) -> Call:
        template = PromptTemplate.from_template(text, template_format=language)

        async def render(count: int) -> object:
            result, variables = None, work.VARIABLES
            for _ in range(count):
                result = template.format(**variables)
            return result

        return render

    async def reply() -> object:
        return (await plain.ainvoke(question)).content

    async def stream() -> object:
        pieces = 0
        async for chunk in streaming.astream(question):
            pieces += bool(chunk.content)
        return pieces

    def turn(path: str, further: int = 0) -> Call:
        functions = [work.temperature, *work.further_tools(further)]
        tools = [StructuredTool.from_function(coroutine=function) for function in functions]
        agent: Any = create_agent(model(path), tools=tools)

        async def asked() -> object:
            return (await agent.ainvoke({"messages": question}))["messages"][-1].content

        return each(asked)

    async def typed() -> object:
        return (await structured.ainvoke(question)).final_answer

    rows = floor.vectors()

    class Given(Embeddings):
        """Gives the vectors of the rows by their numbers."""

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [rows[int(text)].tolist() for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return rows[int(text)].tolist()

    store = InMemoryVectorStore(Given())
    store.add_documents([Document(str(number), id=str(number)) for number in range(10_000)])
    wanted = rows[-1].tolist()

    async def nearest() -> object:
        return [document.id for document in await store.asimilarity_search_by_vector(wanted, k=5)]

    return {
        "native": native,
        "json": from_json,
        "own": prompt(work.BRACES, "f-string"),
        "jinja2": prompt(work.DOUBLE, "jinja2"),
        "reply": each(reply),
        "stream": each(stream),
        "at_once": together(reply),
        "tool": turn("one-call"),
        "three_tools": turn("three-calls"),
        "hundred_tools": turn("one-call", 99),
        "typed": each(typed),
        "vectors": each(nearest),
    }


PEER = Peer(
    "LangChain",
    ("langchain==1.5.2", "langchain-core==1.8.3", "langchain-openai==1.7.4", "jinja2==3.1.6", "numpy==2.4.6"),
    IMPORTS,
    FIRST,
    calls,
)
