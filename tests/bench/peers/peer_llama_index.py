"""LlamaIndex: `OpenAI`, `FunctionAgent`, `FunctionTool`, its prompt templates, `ObjectIndex`, its simple store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.bench.chat_calls import QUESTION
from tests.bench.peers import floor, work
from tests.bench.peers.work import Call, Once, Peer, Tools, chat, each, repeated

IMPORTS = """
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
"""
FIRST = """
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai import OpenAI
model = OpenAI(model="gpt-4o-mini", api_base=ADDRESS + "/reply", api_key="sk-0")
print(model.chat([ChatMessage("Hello?")]).message.content)
"""


async def calls(address: str) -> Mapping[str, Call]:
    """Return the work of each row."""
    from llama_index.core import VectorStoreIndex
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.core.embeddings import BaseEmbedding
    from llama_index.core.llms import ChatMessage
    from llama_index.core.objects import ObjectIndex
    from llama_index.core.prompts import PromptTemplate, RichPromptTemplate
    from llama_index.core.schema import TextNode
    from llama_index.core.tools import FunctionTool
    from llama_index.core.vector_stores import SimpleVectorStore, VectorStoreQuery
    from llama_index.llms.openai import OpenAI

    def model(path: str) -> Any:
        return OpenAI(model="gpt-4o-mini", api_base=f"{address}/{path}", api_key="sk-0")

    add = FunctionTool.from_defaults(async_fn=work.add)
    question = [ChatMessage(QUESTION)]
    plain, streaming = model("reply"), model("stream")
    structured = model("structured").as_structured_llm(work.pydantic_form())

    def prompt(template: Any) -> Call:
        return repeated("template.format(**variables)", template=template)

    async def reply() -> object:
        return (await plain.achat(question)).message.content

    async def stream() -> object:
        pieces = 0
        async for chunk in await streaming.astream_chat(question):
            pieces += bool(chunk.delta)
        return pieces

    def turn(path: str, functions: Tools) -> Once:
        tools: Any = [FunctionTool.from_defaults(async_fn=function) for function in functions]
        agent = FunctionAgent(tools=tools, llm=model(path), streaming=False)

        async def asked() -> object:
            return (await agent.run(user_msg=QUESTION)).response.content

        return asked

    async def typed() -> object:
        return (await structured.achat(question)).raw.final_answer

    class Words(BaseEmbedding):
        """Embeds by words, as all sides do."""

        def _get_text_embedding(self, text: str) -> list[float]:
            return work.embed(text).tolist()

        _get_query_embedding = _get_text_embedding

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

    manuals = work.catalogue()
    offered = [FunctionTool.from_defaults(async_fn=work.add, name=each, description=text) for each, text in manuals]
    index = ObjectIndex.from_objects(offered, index_cls=VectorStoreIndex, embed_model=Words())
    retriever = index.as_retriever(similarity_top_k=work.CHOSEN)
    name, sentence = work.wanted()

    async def choose() -> object:
        return name in [tool.metadata.name for tool in await retriever.aretrieve(sentence)]

    rows = floor.vectors()
    store = SimpleVectorStore()
    store.add([TextNode(id_=str(n), text="", embedding=row.tolist()) for n, row in enumerate(rows[:-1])])
    query = VectorStoreQuery(query_embedding=rows[-1].tolist(), similarity_top_k=5)

    async def nearest() -> object:
        return store.query(query).ids

    return {
        "native": repeated("(await add.acall(a=1, b=2)).raw_output", add=add),
        "json": repeated("(await add.acall(**json.loads(text))).raw_output", add=add),
        "own": prompt(PromptTemplate(work.BRACES)),
        "jinja2": prompt(RichPromptTemplate(work.DOUBLE)),
        **chat(reply, stream, turn, typed),
        "selection": each(choose),
        "vectors": each(nearest),
    }


PEER = Peer("LlamaIndex", ("llama-index-core==0.14.25", "llama-index-llms-openai==0.8.3"), IMPORTS, FIRST, calls)
