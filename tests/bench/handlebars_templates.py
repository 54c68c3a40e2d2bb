"""What the ten-result loop costs in Handlebars, against Jinja2: `nox -s bench -- tests/bench/handlebars_templates.py`.

The loop writes name, value and link of ten search results: of mappings and of dataclasses. With an index and a
condition it is measured too, without a limit. Jinja2 is the floor in its cheapest form: compiled, no autoescaping, no
sandbox, no event loop. The kinds take turns, each with many renderings, and medians are compared. Then a hundred calls
of a helper that waits 50 ms are timed.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
from dataclasses import dataclass
from time import perf_counter

from portico import Kernel, function
from portico.plugins import FunctionCall
from portico_templates.handlebars.language import HandlebarsTemplates

try:
    import jinja2
except ImportError:
    sys.exit("This compares with Jinja2, which is not installed here: `nox -s bench` installs it.")

from tests.bench.templates import ROUNDS, measured

LIMIT = 1.2
RENDERINGS = 1_000
CONCURRENT = 100
WAIT_SECONDS = 0.05
LIMIT_SECONDS = 0.08

LOOP = "{{#each results}}Name: {{name}}\nValue: {{value}}\nLink: {{link}}\n-----------------\n{{/each}}\n"
THE_SAME = (
    "{% for each in results %}Name: {{ each.name }}\nValue: {{ each.value }}\nLink: {{ each.link }}\n"
    "-----------------\n{% endfor %}"
)
MORE = "{{#each results}}{{@index}}. {{name}}: {{value}}{{#if link}} ({{link}}){{/if}}\n{{/each}}"
MORE_THE_SAME = (
    "{% for each in results %}{{ loop.index0 }}. {{ each.name }}: {{ each.value }}"
    "{% if each.link %} ({{ each.link }}){% endif %}\n{% endfor %}"
)


@dataclass(frozen=True, slots=True)
class Result:
    name: str
    value: str
    link: str


@function
async def slow(query: str) -> str:
    """Wait."""
    await asyncio.sleep(WAIT_SECONDS)
    return query


async def main() -> int:
    """Measure, print the tables and one JSON line; return 1 where a limit is broken."""
    call = FunctionCall.caller(Kernel())
    texts = [
        (f"Result {number}", f"What it says, {number}. " * 8, f"https://example.org/{number}") for number in range(10)
    ]
    mappings = {"results": [{"name": name, "value": value, "link": link} for name, value, link in texts]}
    objects = {"results": [Result(*each) for each in texts]}
    kinds = {
        "mappings": (LOOP, THE_SAME, mappings),
        "dataclasses": (LOOP, THE_SAME, objects),
        "mappings, with index and condition": (MORE, MORE_THE_SAME, mappings),
        "dataclasses, with index and condition": (MORE, MORE_THE_SAME, objects),
    }
    language = HandlebarsTemplates()
    figures = {}
    broken = []
    print(f"medians of {ROUNDS} times {RENDERINGS:,} renderings, microseconds each; the limit is {LIMIT}x")
    print(f"{'':40}{'Jinja2':>8}{'ours':>8}{'ratio':>8}")
    for kind, (source, the_same, variables) in kinds.items():
        ours = language.compile(source)
        floor = jinja2.Environment(autoescape=False, keep_trailing_newline=True).from_string(the_same)

        async def render_ours(template=ours, variables=variables) -> str:
            return await template.render(variables, call=call)

        async def render_floor(template=floor, variables=variables) -> str:
            return template.render(variables)

        medians = await measured({"floor": render_floor, "ours": render_ours}, RENDERINGS)
        ratio = medians["ours"] / medians["floor"]
        print(f"{kind:40}{medians['floor']:8.2f}{medians['ours']:8.2f}{ratio:7.2f}x")
        figures[kind] = {"us": medians["ours"], "ratio": ratio}
        broken += [kind] if ratio > LIMIT and source is LOOP else []

    seconds = await concurrent(language)
    print(
        f"{CONCURRENT} calls of {WAIT_SECONDS * 1000:.0f} ms: {seconds * 1000:.1f} ms; limit {LIMIT_SECONDS * 1000:.0f}"
    )
    figures["concurrent"] = {"seconds": seconds}
    broken += ["concurrent"] if seconds > LIMIT_SECONDS else []
    print(json.dumps({"bench": "handlebars_templates", "broken": broken, "figures": figures}))
    return 1 if broken else 0


async def concurrent(language: HandlebarsTemplates) -> float:
    """Return the median seconds of a rendering with a hundred calls."""
    kernel = Kernel()
    kernel.add_function(slow)
    template = language.compile("{{#each queries}}{{slow this}} {{/each}}")
    variables = {"queries": [f"q{number}" for number in range(CONCURRENT)]}
    seconds = []
    for _ in range(5):
        started = perf_counter()
        await template.render(variables, call=FunctionCall.caller(kernel, variables))
        seconds.append(perf_counter() - started)
    return statistics.median(seconds)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
