"""LangChain: `ChatOpenAI`, `create_agent`, `StructuredTool`, its prompt templates, its store in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.bench.chat_calls import QUESTION
from tests.bench.peers import floor, work
from tests.bench.peers.work import Call, Once, Peer, Tools, chat, each, repeated

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

    def prompt(text: str, language: Any) -> Call:
        template = PromptTemplate.from_template(text, template_format=language)
        return repeated("template.format(**variables)", template=template)

    async def reply() -> object:
        return (await plain.ainvoke(question)).content

    async def stream() -> object:
        pieces = 0
        async for chunk in streaming.astream(question):
            pieces += bool(chunk.content)
        return pieces

    def turn(path: str, functions: Tools) -> Once:
        tools = [StructuredTool.from_function(coroutine=function) for function in functions]
        agent: Any = create_agent(model(path), tools=tools)

        async def asked() -> object:
            return (await agent.ainvoke({"messages": question}))["messages"][-1].content

        return asked

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
        "native": repeated('await add.ainvoke({"a": 1, "b": 2})', add=add),
        "json": repeated("await add.ainvoke(json.loads(text))", add=add),
        "own": prompt(work.BRACES, "f-string"),
        "jinja2": prompt(work.DOUBLE, "jinja2"),
        **chat(reply, stream, turn, typed),
        "vectors": each(nearest),
    }


PEER = Peer(
    "LangChain",
    ("langchain==1.5.2", "langchain-core==1.8.3", "langchain-openai==1.7.4", "jinja2==3.1.6", "numpy==2.4.6"),
    IMPORTS,
    FIRST,
    calls,
)
