"""The work that every side of the comparison does: values, functions, prompts. It imports the standard library only.

Frameworks read the annotations of functions, some of which may not be strings: so they are none here.
"""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias
from xml.etree import ElementTree as ET

from tests.bench.chat_calls import AT_ONCE, PIECES

Once: TypeAlias = Callable[[], Awaitable[object]]
"""Does something once."""
Tools: TypeAlias = Sequence[Callable[..., Awaitable[object]]]
"""Functions that are offered to a model."""
Call: TypeAlias = Callable[[int], Awaitable[object]]
"""Does the work of a row so many times, and returns what the last one gave: all sides must give the same."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table: its key, what it is called, and what the floor is.

    All is measured by the time of the processor, which other work on the machine does not move, but for processes that
    are started. What waits for an answer is shown by the clock too.
    """

    key: str
    title: str
    floor: str
    waits: bool = False


IMPORT, FIRST = "import", "first"
_CLIENT, _LOOP = "`openai`", "a loop by hand on `openai`"
_NEAREST = "NumPy: a product, the greatest five"
ROWS = (
    Row(IMPORT, "Import a framework, without a service", "an empty program"),
    Row(FIRST, "From start to the first reply", "`openai`, in a fresh process"),
    Row("native", "Call a typed function with values", "`await add(a=1, b=2)`"),
    Row("json", "Call a typed function with JSON", "`json.loads`, `await add(**given)`"),
    Row("own", "A prompt of five variables, in its own language", "an f-string"),
    Row("handlebars", "The same in Handlebars", "an f-string"),
    Row("jinja2", "The same in Jinja2", "an f-string"),
    Row("reply", "One reply", _CLIENT, True),
    Row("stream", f"A stream of {PIECES} pieces", _CLIENT, True),
    Row("at_once", f"{AT_ONCE} replies at once", f"{_CLIENT} and `asyncio.gather`", True),
    Row("tool", "A tool is called, and the answer", _LOOP, True),
    Row("three_tools", "Three tools are called, and the answer", _LOOP, True),
    Row("hundred_tools", "One of 100 tools is called, and the answer", _LOOP, True),
    Row("typed", "A typed answer", f"`parse` of {_CLIENT}", True),
    Row("selection", "Choose 5 of 1,000 functions", _NEAREST),
    Row("plan", "Read, check and run a plan of five steps", "`ElementTree` and five awaits"),
    Row("vectors", "The nearest 5 of 10,000 vectors in memory", _NEAREST),
)


@dataclass(frozen=True, slots=True)
class Peer:
    """A framework: its distributions, what a small application imports, its first reply, its way through the rows.

    ``first`` is a program that prints the text of one reply; it has the address in ``ADDRESS``.
    """

    name: str
    requires: tuple[str, ...]
    imports: str
    first: str
    calls: Callable[[str], Awaitable[Mapping[str, Call]]]
    note: str = ""


def each(once: Once) -> Call:
    """Do something one after the other."""

    async def calls(count: int) -> object:
        result = None
        for _ in range(count):
            result = await once()
        return result

    return calls


def together(once: Once) -> Call:
    """Do something `AT_ONCE` times side by side."""

    async def all_at_once() -> object:
        return (await asyncio.gather(*(once() for _ in range(AT_ONCE))))[-1]

    return each(all_at_once)


def chat(
    reply: Once, stream: Once, turn: Callable[[str, Tools], Once], typed: Once, suffix: str = ""
) -> dict[str, Call]:
    """Return the rows that ask a model; ``turn`` makes a turn at a path of the service, with these tools."""
    return {
        "reply": each(reply),
        "stream": each(stream),
        "at_once": together(reply),
        "tool": each(turn(f"one-call{suffix}", [temperature])),
        "three_tools": each(turn(f"three-calls{suffix}", [temperature])),
        "hundred_tools": each(turn(f"one-call{suffix}", [temperature, *further_tools()])),
        "typed": each(typed),
    }


def repeated(expression: str, **names: object) -> Call:
    """Compute an expression over and over, with nothing else in the loop, as `timeit` does."""
    given = {"json": json, "variables": VARIABLES, "text": '{"a": 1, "b": 2}', **names}
    source = f"""
async def calls(count):
    result = None
    for _ in range(count):
        result = {expression}
    return result
"""
    exec(source, given)
    return given["calls"]  # type: ignore[return-value]


# --- functions and tools ------------------------------------------------------------------------------------------


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Ran:
    """Counts the tools that ran, so that none is left out."""

    tools = 0


async def temperature(city: Annotated[str, "The name of the city."], unit: str = "celsius") -> float:
    """Tell the temperature in a city."""
    Ran.tools += 1
    return 21.5


def further_tools() -> Tools:
    """Return functions that are offered beside `temperature`."""

    def make(number: int) -> Callable[..., Awaitable[str]]:
        async def search(query: str, count: int = 10, order: Literal["newest", "oldest", "best"] = "best") -> str:
            return f"{query} {count} {order}"

        search.__name__ = search.__qualname__ = f"search_{number}"
        search.__doc__ = f"Search part {number} of the catalogue."
        return search

    return [make(number) for number in range(99)]


def pydantic_form() -> Any:
    """Return a pydantic model of the form of `SOLUTION`."""
    from pydantic import BaseModel

    class Step(BaseModel):
        explanation: str
        output: str

    class MathReasoning(BaseModel):
        steps: list[Step]
        final_answer: str

    return MathReasoning


# --- a prompt -----------------------------------------------------------------------------------------------------

VARIABLES = {
    "name": "Ada",
    "role": "a librarian",
    "question": "Who wrote the first program?",
    "language": "English",
    "tone": "friendly",
}
BRACES = "You are {name}, {role}. Answer in {language} and in a {tone} tone.\n\nQuestion: {question}\nAnswer:"
DOLLARS = BRACES.replace("{", "$").replace("}", "")
DOUBLE = BRACES.replace("{", "{{").replace("}", "}}")
SEMANTIC_KERNEL = DOUBLE.replace("{{", "{{$")


# --- functions to choose from -------------------------------------------------------------------------------------

CHOSEN = 5
_SYLLABLES = ("ba", "co", "du", "fe", "gi", "ha", "jo", "ku", "la", "me", "ni", "po", "ri", "su", "ta", "ve", "wo")


def catalogue(count: int = 1_000) -> list[tuple[str, str]]:
    """Return names and descriptions whose words are spread as words of texts are: the n-th has a share of 1/n."""
    draw = random.Random(0)
    vocabulary = ["".join(draw.choices(_SYLLABLES, k=draw.randint(1, 4))) for _ in range(20_000)]
    weights = [1 / (rank + 3) for rank in range(len(vocabulary))]
    found = []
    for number in range(count):
        *words, last = draw.choices(vocabulary, weights, k=13)
        found.append((f"{last}_{number}", " ".join(words)))
    return found


def wanted() -> tuple[str, str]:
    """Return the name of a function of the catalogue and a sentence of eight of its words."""
    name, description = catalogue()[417]
    return name, " ".join(description.split()[:8])


def embed(text: str) -> Any:
    """Turn a text into a vector by its words alone: all that compares vectors compares these."""
    total = sum(_vector_of(word) for word in text.replace("_", " ").split())
    return total / (total @ total) ** 0.5


@cache
def _vector_of(word: str) -> Any:
    import numpy as np

    return np.random.default_rng(list(word.encode())).standard_normal(256).astype(np.float32)


# --- a plan -------------------------------------------------------------------------------------------------------

PLAN = """<plan>
  <!-- Begin with the text -->
  <function.Text.upper text="hello" setContextVariable="UPPER"/>
  <function.Text.lower text="$UPPER" setContextVariable="LOWER"/>
  <function.Text.join left="$UPPER" right="$LOWER" setContextVariable="BOTH"/>
  <function.Text.repeat text="$BOTH and $LOWER" times="2" setContextVariable="TWICE"/>
  <function.Text.upper text="$TWICE" appendToResult="RESULT__SHOUT"/>
</plan>"""


async def upper(text: str) -> str:
    """Write in capitals."""
    return text.upper()


async def lower(text: str) -> str:
    """Write in small letters."""
    return text.lower()


async def join(left: str, right: str) -> str:
    """Put two texts side by side."""
    return left + right


async def repeat(text: str, times: int) -> str:
    """Write a text several times."""
    return text * times


async def five_awaits() -> str:
    """Do what the plan does."""
    first = await upper(text="hello")
    second = await lower(text=first)
    third = await join(left=first, right=second)
    fourth = await repeat(text=f"{third} and {second}", times=2)
    return await upper(text=fourth)


async def read_and_await() -> object:
    """Read the plan's text and do what it says: the floor."""
    ET.fromstring(PLAN)
    return await five_awaits()
