"""llm: its asynchronous model of Chat Completions, `chain` with tools, its templates, its collection in SQLite."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.bench.chat_calls import QUESTION
from tests.bench.peers import floor, work
from tests.bench.peers.work import Call, Once, Peer, Tools, chat, each, repeated

IMPORTS = "from llm import Template, Tool, get_model"
FIRST = """
from llm.default_plugins.openai_models import Chat
print(Chat("gpt-4o-mini", key="sk-0", api_base=ADDRESS + "/reply").prompt("Hello?", stream=False).text())
"""


async def calls(address: str) -> Mapping[str, Call]:
    """Return the work of each row."""
    import llm
    from llm.default_plugins.openai_models import AsyncChat
    from llm.templates import Template

    def model(path: str) -> Any:
        base = f"{address}/{path}"
        return AsyncChat("gpt-4o-mini", key="sk-0", api_base=base, supports_schema=True, supports_tools=True)

    plain, streaming, structured = model("reply"), model("stream"), model("structured")
    form = work.pydantic_form()
    template = Template(name="bench", prompt=work.DOLLARS)

    async def reply() -> object:
        return await plain.prompt(QUESTION, stream=False).text()

    async def stream() -> object:
        pieces = 0
        async for chunk in streaming.prompt(QUESTION):
            pieces += bool(chunk)
        return pieces

    def turn(path: str, functions: Tools) -> Once:
        asking = model(path)
        tools: Any = [llm.Tool.function(function) for function in functions]

        async def asked() -> object:
            return await asking.chain(QUESTION, tools=tools, stream=False).text()

        return asked

    async def typed() -> object:
        return json.loads(await structured.prompt(QUESTION, schema=form, stream=False).text())["final_answer"]

    return {
        "own": repeated('template.evaluate("", dict(variables))[0]', template=template),
        **chat(reply, stream, turn, typed),
        "vectors": each(vectors()),
    }


def vectors() -> Any:
    """Return the search in its collection, in a database in memory."""
    import llm
    from sqlite_utils import Database

    rows = floor.vectors()

    class Given(llm.EmbeddingModel):
        """Gives the vectors of the rows by their numbers."""

        model_id = "given"

        def embed_batch(self, items: Iterable[str | bytes], *, key: str | None = None) -> Iterator[list[float]]:
            return iter([rows[int(item)].tolist() for item in items])

    collection = llm.Collection("bench", Database(memory=True), model=Given())
    collection.embed_multi((str(number), str(number)) for number in range(10_000))
    wanted = rows[-1].tolist()

    async def nearest() -> object:
        return [entry.id for entry in collection.similar_by_vector(wanted, number=5)]

    return nearest


PEER = Peer("llm", ("llm==0.36", "numpy==2.4.6"), IMPORTS, FIRST, calls)
