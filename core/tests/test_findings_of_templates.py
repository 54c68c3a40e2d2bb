"""What the check says of tries, templates and plans that are called: each finding whole, as it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.findings import told

from portico._functions.functions import FunctionSpec
from portico._plans.check import check_plan
from portico._plans.plan import Expression, From, Plan, PlanTemplate, Step, Value
from portico._prompts.calling import FunctionCall
from portico.errors import PluginNotInstalled, TemplateError

TEXT, COUNT = {"type": "string"}, {"type": "integer"}


def spec(name: str, *required: str, closed: bool = True, effects: bool = False, **parameters: Any) -> FunctionSpec:
    schema = {"type": "object", "properties": parameters, "required": list(required)}
    return FunctionSpec(name, "", {**schema, **({"additionalProperties": False} if closed else {})}, TEXT, effects)


CATALOGUE = {
    each.name: each
    for each in (
        spec("Weather-forecast", "city", city=TEXT, days=COUNT, never=False),
        spec("Clock-now"),
        spec("say", "text", text=TEXT, tone=TEXT),
        spec("total", "numbers", numbers={"type": "array", "items": COUNT}),
        spec("loose", "a", "b", closed=False, a=TEXT),
        spec("Box-open.lid", effects=True),
        spec("send", "text", effects=True, text=TEXT),
    )
}
W = Step("w", "Weather-forecast", {"city": Value("Oslo")})
CALLS = {
    "plain": [],
    "unknown": [FunctionCall("shout", 1, (), 1, 3), FunctionCall("sya", 1, (), 2, 5), FunctionCall("say", 1, (), 3, 1)],
    "other": [FunctionCall("weather.forecast", 1, ("Days", "hours", "minutes"), 1, 3)],
    "many": [FunctionCall("say", 3, (), 4, 7), FunctionCall("loose", 1, ("z",), 5, 1)],
    "named": [FunctionCall("say", 0, ("tone",), 1, 1), FunctionCall("say", 0, ("TEXT",), 2, 2)],
    "loose": [FunctionCall("loose", 0, (), 1, 1)],
    "lid": [FunctionCall("Box-open.lid", 0, (), 1, 1)],
    "again": [FunctionCall("s", 0, (), 1, 1)],
    "effects": [FunctionCall("Clock-now", 0, (), 1, 1), FunctionCall("Send", 1, (), 1, 9)],
    "round": [FunctionCall("p", 0, (), 1, 1)],
}


class Compiled:
    """A template whose calls and variables are known."""

    def __init__(self, source: str) -> None:
        self.calls = CALLS[source.split(maxsplit=1)[0]]
        self.variables = ("who", "when") if "who" in source else ()


def templates(source: str, language: str) -> Any:
    if language != "known":
        raise PluginNotInstalled(f"There is no language {language}.")
    if source == "bare":
        return object()
    if source == "broken":
        raise TemplateError("A tag is open.", line=2, column=5)
    if source == "placed":
        raise TemplateError("At line 2, column 5, a tag is open.", line=2, column=5)
    if source == "nowhere":
        raise TemplateError("A tag is open.")
    return Compiled(source)


def template(source: str, *, id: str = "t", language: str = "known", attempts: int | None = None, **given: Any) -> Step:
    return Step(id, PlanTemplate(source, language), given, attempts=attempts)


def plan(*steps: Step, result: Expression | None = None, input: Mapping[str, Any] | None = None) -> Plan:
    return Plan("g", steps, result, input=input)


def found(made: Plan, options: Mapping[str, Any]) -> list[str]:
    return told(check_plan(made, CATALOGUE, **{"templates": templates, **options}))


@pytest.mark.parametrize(
    ("made", "options", "findings"),
    [
        pytest.param(
            plan(
                Step("x", "Clock-now", seconds=0),
                Step("y", "Clock-now", seconds=-1.5, attempts=0),
                Step("z", template("plain").function, seconds=0.5, attempts=0),
                Step("v", "Clock-now", seconds=0.001, attempts=1),
            ),
            {},
            [
                "error in x seconds: expected a number above 0, of at most 1,000,000, not 0",
                "error in y seconds: expected a number above 0, of at most 1,000,000, not -1.5",
                "error in y attempts: expected a whole number from 1 to 100, not 0",
                "error in z attempts: expected a whole number from 1 to 100, not 0",
            ],
            id="times that no step can have",
        ),
        pytest.param(
            plan(
                Step("x", "send", {"text": Value("a")}, attempts=2),
                Step("y", "Send", {"text": Value("a")}, attempts=3),
                Step("z", plan(W, Step("i", plan(Step("j", "send", {"text": Value("a")})))), attempts=2),
                Step("v", "zzz", attempts=2),
                Step("u", "send", {"text": Value("a")}, attempts=1),
            ),
            {},
            [
                "error in x attempts: send has effects: it must not happen twice, and is tried once only",
                "  fix: ('x',) ('attempts',) None",
                "error in y function: there is no function 'Send'; it is written 'send'",
                "  near: send",
                "  fix: ('y',) ('function',) send",
                "error in y attempts: send has effects: it must not happen twice, and is tried once only",
                "  fix: ('y',) ('attempts',) None",
                "error in z attempts: send has effects: it must not happen twice, and is tried once only",
                "  fix: ('z',) ('attempts',) None",
                (
                    "error in v function: there is no function 'zzz'; the functions are: Weather-forecast, "
                    "Clock-now, say, total, loose, Box-open.lid, send"
                ),
            ],
            id="tries that are too many",
        ),
        pytest.param(
            plan(template("broken"), template("placed", id="u"), template("nowhere", id="v")),
            {},
            [
                "error in t function: line 2, column 5: A tag is open.",
                "error in u function: At line 2, column 5, a tag is open.",
                "error in v function: A tag is open.",
            ],
            id="a template that cannot be read",
        ),
        pytest.param(
            plan(
                template("plain", language="jinja"),
                template("plain", id="v", language="liquid"),
                template("broken", id="x"),
            ),
            {},
            [
                "error in t function: There is no language jinja.",
                "error in v function: There is no language liquid.",
                "error in x function: line 2, column 5: A tag is open.",
            ],
            id="a template whose language is not there",
        ),
        pytest.param(plan(template("bare")), {}, [], id="a template that tells nothing of itself"),
        pytest.param(
            plan(template("plain who", when=Value(1), other=From("y"))),
            {},
            [
                "error in t arguments.other: there is no step 'y'; the steps are: t",
                "error in t arguments: the template needs the argument 'who'",
            ],
            id="a template without what it needs",
        ),
        pytest.param(
            plan(template("unknown")),
            {},
            [
                (
                    "error in t function: line 1, column 3: there is no function 'shout'; the functions are: "
                    "Weather-forecast, Clock-now, say, total, loose, Box-open.lid, send"
                ),
                "error in t function: line 2, column 5: there is no function 'sya'; nearest: say",
                "  near: say",
            ],
            id="a template that calls what is not there",
        ),
        pytest.param(
            plan(template("other")),
            {},
            [
                (
                    "error in t function: line 1, column 3: Weather-forecast has no parameter 'hours'; it has: "
                    "city, days"
                ),
                (
                    "error in t function: line 1, column 3: Weather-forecast has no parameter 'minutes'; it has: "
                    "city, days"
                ),
            ],
            id="a template that calls a function of another spelling",
        ),
        pytest.param(
            plan(template("many")),
            {},
            [
                "error in t function: line 4, column 7: say takes 2 arguments, not 3 without a name",
                "error in t function: line 5, column 1: loose needs the argument 'b'",
            ],
            id="a template that gives too much",
        ),
        pytest.param(
            plan(template("named")),
            {},
            ["error in t function: line 1, column 1: say needs the argument 'text'"],
            id="a template that names its arguments",
        ),
        pytest.param(
            plan(
                template("loose"),
                template("loose", id="u", input=Value(1)),
                template("loose input", id="v"),
                template("loose", id="x", a=Value(1)),
                template("loose b", id="y", input=Value(1)),
            ),
            {},
            [
                "error in t function: line 1, column 1: loose needs the argument 'a'",
                "error in t function: line 1, column 1: loose needs the argument 'b'",
                "error in u function: line 1, column 1: loose needs the argument 'b'",
                "error in v function: line 1, column 1: loose needs the argument 'b'",
                "error in x function: line 1, column 1: loose needs the argument 'b'",
            ],
            id="a template that gives nothing",
        ),
        pytest.param(
            plan(template("effects", attempts=2), template("effects", id="u", attempts=1), template("effects", id="v")),
            {},
            [
                "error in t attempts: send has effects: it must not happen twice, and is tried once only",
                "  fix: ('t',) ('attempts',) None",
            ],
            id="a template with effects is not tried again",
        ),
        pytest.param(
            plan(template("broken"), template("plain", id="u", language="jinja")),
            {"templates": None},
            [],
            id="templates that nobody looks into",
        ),
        pytest.param(
            plan(template("plain"), Step("y", "total", {"numbers": From("t")})),
            {},
            ["error in y arguments.numbers: string is given where total takes array"],
            id="the result of a template",
        ),
        pytest.param(
            plan(template("named", input=Value(1))),
            {},
            ["error in t function: line 1, column 1: say needs the argument 'text'"],
            id="an argument without a name, which is not there for one that has others",
        ),
    ],
)
def test_what_is_wrong_with_a_template_is_said_with_what_is_meant(
    made: Plan, options: dict[str, Any], findings: list[str]
) -> None:
    assert found(made, options) == findings
