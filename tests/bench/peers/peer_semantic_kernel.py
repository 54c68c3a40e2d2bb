"""Semantic Kernel: `Kernel`, `OpenAIChatCompletion`, `FunctionChoiceBehavior`, its three template languages, FAISS."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any

from tests.bench.chat_calls import QUESTION
from tests.bench.peers import floor, work
from tests.bench.peers.work import Call, Once, Peer, Tools, chat, each, repeated

IMPORTS = """
from semantic_kernel import Kernel
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.contents import ChatHistory
from semantic_kernel.functions import kernel_function
"""
FIRST = """
import asyncio
from openai import AsyncOpenAI
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion, OpenAIChatPromptExecutionSettings
from semantic_kernel.contents import ChatHistory

chat = OpenAIChatCompletion("gpt-4o-mini", async_client=AsyncOpenAI(base_url=ADDRESS + "/reply", api_key="sk-0"))
history = ChatHistory()
history.add_user_message("Hello?")
print(asyncio.run(chat.get_chat_message_content(history, OpenAIChatPromptExecutionSettings())))
"""


async def calls(address: str) -> Mapping[str, Call]:
    """Return the work of each row."""
    from openai import AsyncOpenAI
    from semantic_kernel import Kernel
    from semantic_kernel.connectors.ai import FunctionChoiceBehavior
    from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion, OpenAIChatPromptExecutionSettings
    from semantic_kernel.connectors.faiss import FaissStore
    from semantic_kernel.contents import ChatHistory
    from semantic_kernel.data import vector
    from semantic_kernel.functions import KernelArguments, KernelFunctionFromMethod, kernel_function
    from semantic_kernel.prompt_template import (
        HandlebarsPromptTemplate,
        Jinja2PromptTemplate,
        KernelPromptTemplate,
        PromptTemplateConfig,
    )

    def service(path: str) -> Any:
        client = AsyncOpenAI(base_url=f"{address}/{path}", api_key="sk-0")
        return OpenAIChatCompletion("gpt-4o-mini", async_client=client)

    kernel = Kernel()
    add = KernelFunctionFromMethod(method=kernel_function(work.add), plugin_name="Math")
    plain, streaming, structured = service("reply"), service("stream"), service("structured")
    question = ChatHistory()
    question.add_user_message(QUESTION)
    settings = OpenAIChatPromptExecutionSettings()
    form = work.pydantic_form()

    def prompt(kind: Any, text: str, language: Any) -> Call:
        template = kind(prompt_template_config=PromptTemplateConfig(template=text, template_format=language))

        expression = "await template.render(kernel, KernelArguments(**variables))"
        return repeated(expression, template=template, kernel=kernel, KernelArguments=KernelArguments)

    async def reply() -> object:
        return (await plain.get_chat_message_content(question, settings)).content

    async def stream() -> object:
        pieces = 0
        async for chunk in streaming.get_streaming_chat_message_content(question, settings):
            pieces += bool(chunk.content)
        return pieces

    def turn(path: str, functions: Tools) -> Once:
        asking, offered = service(path), Kernel()
        for function in functions:
            offered.add_function("Weather", kernel_function(function))
        choosing = OpenAIChatPromptExecutionSettings(function_choice_behavior=FunctionChoiceBehavior.Auto())

        async def asked() -> object:
            # The turn adds the calls and their results to the history that it is given.
            history = ChatHistory(messages=list(question.messages))
            return (await asking.get_chat_message_content(history, choosing, kernel=offered)).content

        return asked

    async def typed() -> object:
        answered = OpenAIChatPromptExecutionSettings(response_format=form)
        reply = await structured.get_chat_message_content(question, answered)
        return form.model_validate_json(reply.content).final_answer

    return {
        "native": repeated("(await kernel.invoke(add, a=1, b=2)).value", kernel=kernel, add=add),
        "json": repeated(
            "(await kernel.invoke(add, KernelArguments(**json.loads(text)))).value",
            kernel=kernel,
            add=add,
            KernelArguments=KernelArguments,
        ),
        "own": prompt(KernelPromptTemplate, work.SEMANTIC_KERNEL, "semantic-kernel"),
        "handlebars": prompt(HandlebarsPromptTemplate, work.DOUBLE, "handlebars"),
        "jinja2": prompt(Jinja2PromptTemplate, work.DOUBLE, "jinja2"),
        **chat(reply, stream, turn, typed, suffix="-of-weather"),
        # Its FAISS store is faster than its plain one in memory.
        "vectors": each(await vectors(FaissStore(), vector, attrgetter("record"))),
    }


async def vectors(store: Any, module: Any, record_of: Callable[[Any], Any], **options: Any) -> Any:
    """Return the search in a store of Semantic Kernel, or of Agent Framework, whose stores come from it."""

    @module.vectorstoremodel(collection_name="bench")
    @dataclass
    class Record:
        id: Annotated[str, module.VectorStoreField("key")]
        vector: Annotated[
            list[float] | None, module.VectorStoreField("vector", dimensions=256, distance_function="dot_prod")
        ] = None

    rows = floor.vectors().tolist()
    collection = store.get_collection(Record)
    await collection.ensure_collection_exists()
    await collection.upsert([Record(str(number), row) for number, row in enumerate(rows[:-1])], **options)

    async def nearest() -> object:
        found = await collection.search(vector=rows[-1], top=5)
        return [record_of(result).id async for result in found.results]

    return nearest


PEER = Peer("Semantic Kernel", ("semantic-kernel[faiss]==1.45.0",), IMPORTS, FIRST, calls)
