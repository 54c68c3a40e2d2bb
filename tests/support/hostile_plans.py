"""Hostile plans: each construct of a plan repeated, nested, left open, or doubling what the step before made.

``python -m tests.support.hostile_plans SIZE [NAME…]`` carries out each in this process: reads, checks, writes, draws
and runs it. For each it prints one line of JSON: name, how it ended, seconds of the processor, and the peak of memory
in bytes.
"""

from __future__ import annotations

import asyncio
import json
import re
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from portico import Kernel, function
from portico.errors import PorticoError
from portico.plans import (
    Plan,
    PlanTemplate,
    Step,
    Value,
    XmlPlan,
    plan_from_json,
    plan_to_json,
    plan_to_mermaid,
    plan_to_text,
)
from portico_basics.config import SqliteSettings
from portico_basics.sqlite.store import SqliteRunStore
from portico_templates.handlebars.language import HandlebarsTemplates
from portico_templates.jinja2.language import Jinja2Templates

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")

Make = Callable[[int], tuple[str, str]]
PLANS: dict[str, Make] = {}
ECHO = '{"id":"s1","function":"echo","arguments":{"x":{"value":"abc"}}}'


def repeated(text: str, size: int, end: str = "") -> str:
    return text * (size // max(len(text.encode()), 1)) + end


def echoes(count: int) -> str:
    return ",".join([ECHO.replace("s1", f"i{j}") for j in range(count)])


def json_plan(steps: str = ECHO, result: str = '{"from":"s1"}', more: str = "", goal: str = "g") -> tuple[str, str]:
    return "json", f'{{"version":1,"goal":"{goal}"{more},"steps":[{steps}],"result":{result}}}'


def add(name: str, make: Make) -> None:
    assert name not in PLANS, name
    PLANS[name] = make


# JSON: literals.

LITERALS = [
    "[]",
    "{}",
    "0",
    '""',
    '"a"',
    '"\\u0001"',
    '"\U0001f600"',
    "1e300",
    '{"a":[]}',
    "[[]]",
    '[{"a":"b"}]',
    "-0.5",
]
for literal in LITERALS:
    add(
        f"value {literal}",
        lambda n, one=literal: json_plan(
            f'{{"id":"s1","function":"echo","arguments":{{"x":{{"value":[{repeated(one + ",", n)}0]}}}}}}'
        ),
    )
    add(f"result {literal}", lambda n, one=literal: json_plan(result=f'{{"value":[{repeated(one + ",", n)}0]}}'))
for literal in ("[]", '"a"', "0", '{"a":1}'):
    add(f"notes {literal}", lambda n, one=literal: json_plan(more=f',"notes":[{repeated(one + ",", n)}0]'))
    add(
        f"in a list {literal}",
        lambda n, one=literal: json_plan(
            result=f'{{"list":[{{"value":[{repeated(one + ",", n)}0]}},{{"from":"s1"}}]}}'
        ),
    )
    add(
        f"in a text {literal}",
        lambda n, one=literal: json_plan(
            result=f'{{"text":["a",{{"value":[{repeated(one + ",", n)}0]}},{{"from":"s1"}}]}}'
        ),
    )
    add(
        f"deep {literal}",
        lambda n, one=literal: json_plan(result=f'{{"value":{"[" * 190}{repeated(one + ",", n)}0{"]" * 190}}}'),
    )

# JSON: expressions.

EXPRESSIONS = [
    '{"value":0}',
    '{"value":""}',
    '{"from":"s1"}',
    '{"from":"no"}',
    '{"text":[]}',
    '{"list":[]}',
    '{"object":{}}',
    '{"from":"s1","path":"$[0]"}',
    '{"text":["a"]}',
    '{"value":[[]]}',
]
for written in EXPRESSIONS:
    add(f"text of {written}", lambda n, one=written: json_plan(result=f'{{"text":[{repeated(one + ",", n)}"a"]}}'))
    add(
        f"list of {written}",
        lambda n, one=written: json_plan(result=f'{{"list":[{repeated(one + ",", n)}{{"value":0}}]}}'),
    )
    add(
        f"object of {written}",
        lambda n, one=written: json_plan(
            result='{"object":{' + ",".join(f'"{i}":{one}' for i in range(n // (len(one) + 8))) + "}}"
        ),
    )
    add(
        f"arguments of {written}",
        lambda n, one=written: json_plan(
            ECHO
            + ',{"id":"s2","function":"echo","arguments":{'
            + ",".join(f'"{i}":{one}' for i in range(n // (len(one) + 8)))
            + "}}"
        ),
    )
for opening, closing in (
    ('{"text":[', "]}"),
    ('{"list":[', "]}"),
    ('{"object":{"a":', "}}"),
    ('{"value":[', "]}"),
    ('{"text":["a",{"list":["b",', "]}]}"),
):
    add(
        f"nested {opening}",
        lambda n, a=opening, b=closing: json_plan(result=a * (n // len(a + b)) + '{"value":0}' + b * (n // len(a + b))),
    )
    add(f"open {opening}", lambda n, a=opening: json_plan(result=repeated(a, n)))
for opening in ("[", '{"a":', '"', "\\", '{"version":1,"goal":"g","steps":[{"id":"s","function":', '{"steps":['):
    add(f"only {opening}", lambda n, a=opening: ("json", repeated(a, n)))

# JSON: long words, and many of something.

WORDS = ["a", '\\"', "\\u0001", "\U0001f600", "\\n", "<", "$", "{{", "\\\\", "\ue000", "a ", "."]
for word in WORDS:
    add(f"goal {word}", lambda n, w=word: json_plan(goal=repeated(w, n)))
    add(f"id {word}", lambda n, w=word: json_plan(ECHO.replace("s1", repeated(w, n))))
    add(f"function {word}", lambda n, w=word: json_plan(ECHO.replace("echo", repeated(w, n))))
    add(f"argument {word}", lambda n, w=word: json_plan(ECHO.replace('"x"', f'"{repeated(w, n)}"')))
    add(f"text {word}", lambda n, w=word: json_plan(ECHO.replace("abc", repeated(w, n // 2))))
for part in (".a", "[0]", "['a']", "[-1]", '[\\"a\\"]', "[ 0 ]", "[", ".", "$"):
    add(f"path {part}", lambda n, p=part: json_plan(result=f'{{"from":"s1","path":"${repeated(p, n)}"}}'))
add("many steps", lambda n: json_plan(",".join(ECHO.replace("s1", f"s{i}") for i in range(n // 70))))
add(
    "1,000 steps",
    lambda n: json_plan(
        ",".join(ECHO.replace("s1", f"s{i}").replace("abc", "a" * (n // 1000 - 70)) for i in range(1000))
    ),
)
add("one id", lambda n: json_plan(",".join([ECHO] * min(1000, n // 70))))
add(
    "after",
    lambda n: json_plan(
        f'{ECHO},{{"id":"s2","function":"echo","after":[{repeated(chr(34) + "s1" + chr(34) + ",", n)}"s1"]}}'
    ),
)
add(
    "after all",
    lambda n: json_plan(
        ",".join(
            f'{{"id":"s{i}","function":"echo","after":{json.dumps([f"s{j}" for j in range(min(i, n // 8000))])}}}'
            for i in range(1000)
        )
    ),
)
add(
    "fingerprints", lambda n: json_plan(more=',"fingerprints":{' + ",".join(f'"{i}":"a"' for i in range(n // 13)) + "}")
)
add("unknown keys", lambda n: json_plan(more="".join(f',"k{i}":0' for i in range(n // 11))))
add(
    "input schema",
    lambda n: json_plan(more=',"input":{"properties":{' + ",".join(f'"{i}":{{}}' for i in range(n // 12)) + "}}"),
)
add(
    "nested plans",
    lambda n: json_plan('{"id":"s1","function":{"version":1,"goal":"g","steps":[' * 49 + ECHO + "]}}" * 49),
)
add(
    "plans side by side",
    lambda n: json_plan(
        ",".join(
            f'{{"id":"n{i}","function":{{"version":1,"goal":"g","steps":[{echoes(n // 70000)}]}}}}' for i in range(1000)
        ),
        result='{"value":0}',
    ),
)

# Doubling.


def doubling(expression: str, begin: str = '"abcdefgh"', count: int = 60, function: str = '"echo"') -> tuple[str, str]:
    """Return a chain of steps; ``PREVIOUS`` in the expression is what the step before gave."""
    steps = [f'{{"id":"s0","function":"echo","arguments":{{"x":{{"value":{begin}}}}}}}']
    for i in range(1, count):
        given = expression.replace("PREVIOUS", f'{{"from":"s{i - 1}"}}')
        steps.append(f'{{"id":"s{i}","function":{function},"arguments":{{"x":{given}}}}}')
    return json_plan(",".join(steps), f'{{"from":"s{count - 1}"}}')


GIVEN = '{"from":"input","path":"$.x"}'
COPYING = f'{{"version":1,"goal":"g","steps":[],"result":{{"text":["a",{GIVEN}]}}}}'
INNER = COPYING.replace('"a"', GIVEN)
TEXTS = {"letters": '"abcdefgh"', "wide": '"\U0001f600\U0001f600"', "marks": '"\\"\\\\\\u0001"', "list": "[[[]]]"}
GROWTH = {
    "text": '{"text":[PREVIOUS,PREVIOUS]}',
    "list": '{"list":[PREVIOUS,PREVIOUS]}',
    "object": '{"object":{"a":PREVIOUS,"b":PREVIOUS}}',
    "text of list": '{"text":[{"list":[PREVIOUS,PREVIOUS]}]}',
    "list of text": '{"list":[{"text":[PREVIOUS,PREVIOUS]},PREVIOUS]}',
}
for how, expression in GROWTH.items():
    for what, begin in TEXTS.items():
        add(f"doubling {how}, {what}", lambda n, e=expression, b=begin: doubling(e, b))
for what, begin in TEXTS.items():
    add(f"doubling plans, {what}", lambda n, b=begin: doubling("PREVIOUS", b, function=INNER))
LANGUAGES = {"semantic-kernel": "{{$x}}{{$x}}", "handlebars": "{{json x}}{{json x}}", "jinja2": "{{ x }}{{ x|tojson }}"}
for language, source in LANGUAGES.items():
    step = json.dumps({"template": source, "language": language})
    for what, begin in TEXTS.items():
        add(f"doubling {language}, {what}", lambda n, s=step, b=begin: doubling("PREVIOUS", b, function=s))
HUNDRED = {"times": ('"echo"', '{"text":["a",{"from":"s1"}]}'), "plans": (COPYING, '{"from":"s1"}')}


def hundred(text: str, function: str, given: str, size: int) -> tuple[str, str]:
    """Return steps side by side, each with a copy of one long text."""
    times = min(size, 3_900_000) // len(json.dumps(text, ensure_ascii=False).encode())
    first = ECHO.replace('"abc"', json.dumps(text * times, ensure_ascii=False))
    others = [f'{{"id":"t{i}","function":{function},"arguments":{{"x":{given}}}}}' for i in range(98)]
    return json_plan(",".join([first, *others]))


for what, begin in TEXTS.items():
    letters = json.loads(begin) if what != "list" else "[["
    for how, (callee, argument) in HUNDRED.items():
        add(f"a hundred {how}, {what}", lambda n, t=letters, f=callee, x=argument: hundred(t, f, x, n))

# XML.

CALL = '<function.echo x="abc" setContextVariable="A"/>'
XML = [
    "<function.echo/>",
    "<function.echo",
    '<function.echo x="a"/>',
    '<function.echo x="$A"/>',
    "<plan>",
    "<plan/>",
    "<!-- a -->",
    "<!--",
    "&amp;",
    "&",
    "<",
    ">",
    '"',
    "<b>",
    "</function.echo>",
    "</plan>",
    "<![CDATA[",
    "<?xml ?>",
    "<goal>",
    "<!DOCTYPE a>",
    "a",
    "\n",
    "<function.echo x='",
    '<function.echo x="',
    "<think>",
]
for part in XML:
    add(f"xml {part}", lambda n, p=part: ("xml", f"<plan>{CALL}{repeated(p, n)}</plan>"))
ATTRIBUTES = [
    'x="a" ',
    "$A",
    "a$A",
    "$A.b",
    "$A.b[0]",
    "&lt;",
    "'",
    "$",
    "&",
    "\U0001f600",
    "[",
    '{"a":',
    "appendToResult='R' ",
]
for part in ATTRIBUTES:
    value = part if "=" in part else None
    add(
        f"xml attribute {part}",
        lambda n, p=part, v=value: (
            "xml",
            f"<plan>{CALL}<function.echo " + (repeated(p, n) if v else f'x="{repeated(p, n)}"') + "/></plan>",
        ),
    )
add(
    "xml many",
    lambda n: (
        "xml",
        "<plan>"
        + "".join(
            f'<function.echo x="$V{i - 1}$V{i - 1}" setContextVariable="V{i}" appendToResult="R{i}"/>'
            for i in range(min(999, n // 80))
        )
        + "</plan>",
    ),
)
add(
    "xml doubling",
    lambda n: (
        "xml",
        f"<plan>{CALL.replace(chr(34) + 'A', chr(34) + 'V0')}"
        + "".join(f'<function.echo x="$V{i}$V{i}" setContextVariable="V{i + 1}"/>' for i in range(60))
        + "</plan>",
    ),
)
add("xml outside", lambda n: ("xml", repeated("a", n) + f"<plan>{CALL}</plan>"))

# Templates.

HANDLEBARS = [
    "{{x}}",
    "{{",
    "}}",
    "{{#if x}}",
    "{{#if x}}{{/if}}",
    "{{/if}}",
    "{{echo x=x}}",
    "{{json (echo x=",
    "(",
    "{{!",
    "{{#each x}}a{{/each}}",
    "{{set 'a' x}}",
    "{{> p}}",
    "{{{{raw}}}}",
    "a",
    "\n",
    "{{concat x x}}",
    "{{x.y.z}}",
    "{{#*inline 'p'}}",
    "{{else}}",
    "{{x 'a' ",
]
JINJA = [
    "{{ x }}",
    "{{",
    "{%",
    "{# ",
    "{% if x %}",
    "{% if x %}{% endif %}",
    "{{ [",
    "{{ x|upper }}",
    "{{ x ~",
    "a",
    "\n",
    "{% set a = x %}",
    "{% for i in x %}{% endfor %}",
    "{{ echo(x=x) }}",
    "{{ (",
    "{{ 1 +",
    "{{ not",
]
OWN = [
    "{{$x}}",
    "{{",
    "}}",
    "{{'a'}}",
    "{{echo $x}}",
    "'",
    "{{$",
    "a",
    "\\",
    "{{}}",
    "{{ }}",
    "{{echo x='a' ",
    "<message",
]
for language, parts in (("handlebars", HANDLEBARS), ("jinja2", JINJA), ("semantic-kernel", OWN)):
    for part in parts:
        add(f"{language} {part}", lambda n, own=language, p=part: (own, repeated(p, n)))
ROUNDS = {
    "handlebars": [
        "{{set 'v' 'abcdefgh'}}{{#each (range 1 60)}}{{set 'v' (concat (get 'v') (get 'v'))}}{{/each}}",
        "{{set 'v' 'abcdefgh'}}{{#each (range 1 60)}}{{set 'v' (array (get 'v') (get 'v'))}}{{/each}}{{json v}}",
        "{{set 'v' (range 1 100000)}}{{#each (range 1 900)}}{{json (get 'v')}}{{/each}}",
        "{{set 'v' (range 1 100000)}}{{#each (range 1 900)}}{{get 'v'}}{{/each}}",
        "{{set 'v' (range 1 100000)}}{{#each (range 1 900)}}{{set (concat 'k' this) (json (get 'v'))}}{{/each}}",
        "{{set 'v' (json (range 1 99999))}}{{#each (range 1 900)}}{{set (concat 'k' this) (concat ../v 'a')}}{{/each}}",
        "{{#*inline 'p'}}{{json (range 1 1000)}}{{> p}}{{/inline}}{{> p}}",
        "{{#each (range 1 3000)}}{{#each (range 1 300)}}{{x}}{{/each}}{{/each}}",
    ],
    "jinja2": [
        "{% set n = namespace(v='abcdefgh') %}{% for i in range(60) %}{% set n.v = n.v ~ n.v %}{% endfor %}{{ n.v }}",
        "{% set n = namespace(v=[]) %}{% for i in range(60) %}{% set n.v = [n.v, n.v] %}{% endfor %}{{ n.v }}",
        "{% for i in range(9999) %}{{ range(9999)|list }}{% endfor %}",
    ],
}
for language, sources in ROUNDS.items():
    for number, source in enumerate(sources):
        add(f"{language} growing {number}", lambda n, own=language, s=source: (own, s))


@function
def echo(x: object = None) -> object:
    """Give back what it is given."""
    return x


async def carry_out(form: str, text: str, folder: str) -> str:
    """Read a plan, check it, write it in each form, draw it and run it; return how it ended."""
    store = SqliteRunStore(SqliteSettings(path=Path(folder) / "runs.sqlite3"))
    kernel = Kernel(run_store=store, template_languages=[HandlebarsTemplates(), Jinja2Templates()])
    kernel.add_function(echo)
    try:
        if form == "json":
            plan = plan_from_json(json.loads(text))
        elif form == "xml":
            plan = XmlPlan.read(text, kernel.specs, recover=True).plan
        else:
            plan = Plan("g", (Step("t", PlanTemplate(text, form), {"x": Value("abc")}),))
        findings = kernel.check_plan(plan)
        sum(len(str(finding)) for finding in findings)
        for write in (plan_to_text, plan_to_mermaid, lambda plan: json.dumps(plan_to_json(plan))):
            write(plan)
        run = await kernel.run_plan(plan)
        return type(run.outcome).__name__
    except (PorticoError, ValueError, RecursionError) as error:
        return f"{type(error).__name__}: {str(error)[:100]}"
    finally:
        await store.aclose()


def main() -> None:
    """Carry out plans in this process."""
    resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))
    size, *names = sys.argv[1:]
    for name in names or PLANS:
        form, text = PLANS[name](int(size))
        if RESET.exists():
            RESET.write_text("5")  # The peak begins anew.
        begun = time.process_time()
        with TemporaryDirectory() as folder:
            end = asyncio.run(carry_out(form, text, folder))
        took = time.process_time() - begun
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        if STATUS.exists():
            peak = int(re.search(r"VmHWM:\s*(\d+)", STATUS.read_text())[1]) * 1024
        print(json.dumps([name, end, round(took, 2), peak]), flush=True)


if __name__ == "__main__":
    main()
