"""What rendering a prompt costs, against Jinja2: `nox -s bench` or `python -m tests.bench.templates`.

The prompt has five variables and one function call. Both sides are compiled before, and do the same: put in five
texts, call one Python function with one of them, return a string. Jinja2 is the floor in its cheapest form: no
autoescaping, no sandbox, no event loop, the function a plain global. Ours goes the whole way through the kernel: the
function is looked up by name, its argument checked against its type; `Kernel.render_prompt` runs filters besides. The
kinds take turns, each with many renderings, and medians are compared.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
from collections.abc import Awaitable, Callable
from time import perf_counter

from tests.bench.peers.work import VARIABLES

from portico import Kernel, function
from portico.plugins import FunctionCall, SemanticKernelTemplates

try:
    import jinja2
except ImportError:
    sys.exit("This compares with Jinja2, which is not installed here: `nox -s bench` installs it.")

OURS = "Semantic Kernel language"
FLOOR = "Jinja2, compiled"
BY_KERNEL = "the same by Kernel.render_prompt"
LIMITS = {OURS: 1.0, BY_KERNEL: 1.0}
ROUNDS = 41
RENDERINGS = 2_000

PROMPT = (
    "You are {{$name}}, {{$role}}. Answer in {{$language}} and in a {{$tone}} tone.\n\n"
    "What is known:\n{{lookup query=$question}}\n\nQuestion: {{$question}}\nAnswer:"
)
THE_SAME = PROMPT.replace("lookup query=$question", "lookup(question)").replace("$", "")


@function
def lookup(query: str) -> str:
    """Look something up."""
    return "Ada Lovelace wrote it in 1843."


async def main() -> int:
    """Measure, print the table and one JSON line; return 1 where a limit is broken."""
    kernel = Kernel()
    kernel.add_function(lookup)
    ours = SemanticKernelTemplates().compile(PROMPT)
    functions = {"lookup": lookup}
    floor = jinja2.Environment(autoescape=False).from_string(THE_SAME, functions)
    suspending = jinja2.Environment(autoescape=False, enable_async=True).from_string(THE_SAME, functions)

    async def render_ours() -> str:
        return await ours.render(VARIABLES, call=FunctionCall.caller(kernel, VARIABLES))

    async def render_by_kernel() -> str:
        return await kernel.render_prompt(ours, VARIABLES)

    async def render_floor() -> str:
        return floor.render(VARIABLES)

    async def render_suspending() -> str:
        return await suspending.render_async(VARIABLES)

    kinds: dict[str, Callable[[], Awaitable[str]]] = {
        FLOOR: render_floor,
        OURS: render_ours,
        BY_KERNEL: render_by_kernel,
        "Jinja2, compiled, asynchronous": render_suspending,
    }
    medians = await measured(kinds, RENDERINGS)

    print(f"medians of {ROUNDS} times {RENDERINGS:,} renderings, microseconds each")
    print(f"{'':38}{'time':>8}{'ratio':>8}{'limit':>8}")
    for kind, median in medians.items():
        shown = f"{LIMITS[kind]:.1f}x" if kind in LIMITS else ""
        print(f"{kind:38}{median:8.2f}{median / medians[FLOOR]:7.2f}x{shown:>8}")
    broken = [kind for kind, limit in LIMITS.items() if medians[kind] / medians[FLOOR] > limit]
    figures = {kind: {"us": median, "ratio": median / medians[FLOOR]} for kind, median in medians.items()}
    print(json.dumps({"bench": "templates", "broken": broken, "figures": figures}))
    return 1 if broken else 0


async def measured(kinds: dict[str, Callable[[], Awaitable[str]]], renderings: int) -> dict[str, float]:
    """Return the median time of each kind, in microseconds; all must give the same text."""
    texts = {await render() for render in kinds.values()}
    assert len(texts) == 1, texts
    samples: dict[str, list[float]] = {kind: [] for kind in kinds}
    for turn in range(ROUNDS + 1):
        for kind, render in kinds.items():
            started = perf_counter()
            for _ in range(renderings):
                await render()
            if turn:  # The first round warms up.
                samples[kind].append((perf_counter() - started) / renderings * 1_000_000)
    return {kind: statistics.median(values) for kind, values in samples.items()}


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
