"""The raw floor of each row: plain Python, the `openai` client as its documentation shows it, NumPy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.bench.chat_calls import PIECES, SOLUTION, Raw
from tests.bench.peers import work
from tests.bench.peers.work import Call, Once, Tools, add, each, repeated, temperature, together

__all__ = ["FIRST", "floors", "vectors"]

FIRST = """
import asyncio
from openai import AsyncOpenAI

async def main():
    async with AsyncOpenAI(api_key="sk-0", base_url=ADDRESS + "/reply") as client:
        question = [{"role": "user", "content": "Hello?"}]
        reply = await client.chat.completions.create(model="gpt-4o-mini", messages=question)
        print(reply.choices[0].message.content)

asyncio.run(main())
"""


async def floors(address: str, rows: set[str]) -> dict[str, Call]:
    """Return the floors of these rows: what a peer has not may not be installed for its floor either."""
    raw = Raw(address)

    async def prompt(count: int) -> object:
        result, given = None, work.VARIABLES
        for _ in range(count):
            name, role, question, language, tone = given.values()
            result = (
                f"You are {name}, {role}. Answer in {language} and in a {tone} tone.\n\nQuestion: {question}\nAnswer:"
            )
        return result

    async def reply() -> object:
        made = await raw.reply.chat.completions.create(model="gpt-4o-mini", messages=raw.messages)
        return made.choices[0].message.content

    async def stream() -> object:
        await raw.stream()
        return PIECES

    async def typed() -> object:
        await raw.typed()
        return SOLUTION["final_answer"]

    made: dict[str, Call] = {
        "native": repeated("await add(a=1, b=2)", add=add),
        "json": repeated("await add(**json.loads(text))", add=add),
        **dict.fromkeys(("own", "handlebars", "jinja2"), prompt),
        "reply": each(reply),
        "stream": each(stream),
        "at_once": together(reply),
        "tool": each(loop(raw.one_call, raw.messages)),
        "three_tools": each(loop(raw.three_calls, raw.messages)),
        "hundred_tools": each(loop(raw.one_call, raw.messages, work.further_tools())),
        "typed": each(typed),
        "plan": each(work.read_and_await),
    }
    if "vectors" in rows:
        made["vectors"] = each(nearest(vectors()))
    if "selection" in rows:
        made["selection"] = each(selection())
    return {key: call for key, call in made.items() if key in rows}


def loop(client: Any, question: list[Any], further: Tools = ()) -> Once:
    """Return a turn with tools, as a page of the documentation writes it."""
    parameters = {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "The name of the city."}, "unit": {"type": "string"}},
        "required": ["city"],
    }
    order = {"type": "string", "enum": ["newest", "oldest", "best"]}
    words = {"query": {"type": "string"}, "count": {"type": "integer"}, "order": order}
    functions: list[Mapping[str, Any]] = [
        {"name": "temperature", "description": temperature.__doc__, "parameters": parameters},
        *(
            {
                "name": each.__name__,
                "description": each.__doc__,
                "parameters": {"type": "object", "properties": words, "required": ["query"]},
            }
            for each in further
        ),
    ]
    offered = [{"type": "function", "function": function} for function in functions]

    async def turn() -> object:
        messages = list(question)
        while True:
            reply = await client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=offered)
            message = reply.choices[0].message
            if not message.tool_calls:
                return message.content
            messages.append(message)
            for call in message.tool_calls:
                result = await temperature(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})

    return turn


def vectors() -> Any:
    """Return 10,000 unit vectors of 256 numbers around 100 centres, and one more to look for, as float32."""
    import numpy as np

    random = np.random.default_rng(0)
    centres = random.standard_normal((100, 256))
    made = centres[random.integers(0, 100, 10_001)] + 0.6 * random.standard_normal((10_001, 256))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def nearest(rows: Any, top: int = 5) -> Once:
    """Return a search for the last of these vectors among the others, which gives their numbers, nearest first."""
    import numpy as np

    data, query = rows[:-1].copy(), rows[-1].copy()

    async def search() -> object:
        scores = data @ query
        best = np.argpartition(-scores, top)[:top]
        return [str(number) for number in best[np.argsort(-scores[best])]]

    return search


def selection() -> Once:
    """Return the choice of the five functions nearest to a sentence; whether the right one is among them."""
    import numpy as np

    functions, (name, sentence) = work.catalogue(), work.wanted()
    data = np.array([work.embed(f"{each} {text}") for each, text in functions], np.float32)

    async def choose() -> object:
        scores = data @ work.embed(sentence)
        return name in [functions[number][0] for number in np.argpartition(-scores, work.CHOSEN)[: work.CHOSEN]]

    return choose
