"""Portico, as its pages show it: a kernel, the chat service of `portico-openai`, templates, a selector, FAISS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from tests.bench.chat_calls import QUESTION, MathReasoning
from tests.bench.peers import floor, work
from tests.bench.peers.work import Call, Once, Peer, Tools, chat, each, repeated

if TYPE_CHECKING:
    from portico.search import Vectors

IMPORTS = "from portico import ChatAgent, Kernel, Message, function"
FIRST = """
import asyncio
from portico import ChatRequest, Message
from portico.plugins import Secret
from portico_openai.chat import OpenAIChat
from portico_openai.config import OpenAIChatSettings

async def main():
    chat = OpenAIChat(OpenAIChatSettings(model="gpt-4o-mini", base_url=ADDRESS + "/reply", api_key=Secret("sk-0")))
    reply = await chat.complete(ChatRequest([Message.of("user", "Hello?")]))
    print(reply.text)
    await chat.aclose()

asyncio.run(main())
"""


class Words:
    """Embeds by words, as all sides do."""

    name = model = "words"

    async def embed(self, texts: Sequence[str], *, purpose: Literal["document", "query"] = "document") -> Vectors:
        """Return one row for each text."""
        from portico.search import Vectors

        return Vectors.from_rows([work.embed(text) for text in texts])


async def calls(address: str) -> Mapping[str, Call]:
    """Return the work of each row."""
    from portico import ChatRequest, Function, FunctionSpec, Kernel, Message, VectorRecord, Vectors
    from portico.plans import XmlPlan
    from portico.plugins import Secret
    from portico_basics.contextual import ContextualSelector
    from portico_faiss.config import FaissSettings
    from portico_faiss.store import FaissVectorStore
    from portico_openai.chat import OpenAIChat
    from portico_openai.config import OpenAIChatSettings
    from portico_templates.handlebars.language import HandlebarsTemplates
    from portico_templates.jinja2.language import Jinja2Templates

    def service(path: str) -> OpenAIChat:
        key = Secret("sk-0")
        return OpenAIChat(
            OpenAIChatSettings(model="gpt-4o-mini", base_url=f"{address}/{path}", api_key=key, strict=True)
        )

    kernel = Kernel(template_languages=[HandlebarsTemplates(), Jinja2Templates()])
    added = Function.of(work.add)
    for callable in (work.add, work.temperature, *work.further_tools()):
        kernel.add_function(callable)
    question = ChatRequest([Message.of("user", QUESTION)])
    chats = {path: service(path) for path in ("reply", "stream", "structured", "one-call", "three-calls")}

    def prompt(text: str, language: str) -> Call:
        expression = "await kernel.render_prompt(prompt, variables, language=language)"
        return repeated(expression, kernel=kernel, prompt=text, language=language)

    async def reply() -> object:
        return (await chats["reply"].complete(question)).text

    async def stream() -> object:
        pieces = 0
        async for delta in chats["stream"].stream(question):
            pieces += bool(delta.text)
        return pieces

    def turn(path: str, functions: Tools) -> Once:
        offered = [each.__name__ for each in functions]

        async def asked() -> object:
            return (await kernel.complete(QUESTION, functions=offered, chat=chats[path])).value

        return asked

    async def typed() -> object:
        made = await kernel.complete(QUESTION, returns=MathReasoning, chat=chats["structured"])
        return made.value.final_answer

    name, sentence = work.wanted()
    manuals = tuple(
        FunctionSpec(each, text, {"type": "object", "properties": {}}, {}) for each, text in work.catalogue()
    )
    selector = ContextualSelector(FaissVectorStore(FaissSettings()), Words())

    async def choose() -> object:
        chosen = await selector.select(manuals, [sentence], limit=work.CHOSEN)
        return name in [each.name for each in chosen.offered]

    planned = Kernel()
    for callable in (work.upper, work.lower, work.join, work.repeat):
        planned.add_function(Function.of(callable, plugin="Text"))

    async def plan() -> object:
        run: Any = await planned.run_plan(XmlPlan.read(work.PLAN, planned.specs).plan)
        return run.outcome.value

    rows = floor.vectors()
    store, wanted = FaissVectorStore(FaissSettings(index="exact")), Vectors(rows[-1:].copy(), 1, 256)
    await store.upsert("bench", [VectorRecord(str(n)) for n in range(10_000)], Vectors(rows[:-1].copy(), 10_000, 256))

    async def nearest() -> object:
        (found,) = await store.search("bench", wanted, top=5)
        return [match.id for match in found]

    return {
        "native": repeated("await kernel.invoke(added, a=1, b=2)", kernel=kernel, added=added),
        "json": repeated("await kernel.invoke_json(added, json.loads(text))", kernel=kernel, added=added),
        "own": prompt(work.SEMANTIC_KERNEL, "semantic-kernel"),
        "handlebars": prompt(work.DOUBLE, "handlebars"),
        "jinja2": prompt(work.DOUBLE, "jinja2"),
        **chat(reply, stream, turn, typed),
        "selection": each(choose),
        "plan": each(plan),
        "vectors": each(nearest),
    }


PEER = Peer(
    "Portico",
    ("./core", "./adapters/wire", "./adapters/openai", "./adapters/templates", "./adapters/basics", "./adapters/faiss"),
    IMPORTS,
    FIRST,
    calls,
)
