"""Drawings of plans: every value and every wait is a line, and no plan writes Mermaid of its own."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from tests.support.strategies import plans

from portico._plans.plan import From, Plan, PlanTemplate, Step, TextOf, Value
from portico._plans.text_form import plan_to_mermaid

# Exactly what this writes; the parser of Mermaid itself is asked by tests/differential/mermaid.
LABEL = r'"(?:[^"#;<>&%`\\\[\]{}()|:\x00-\x1f]|#[0-9]+;|<br/>)*"'
LINES = re.compile(
    rf"flowchart TD|    end| +end"
    rf"| +n[0-9]+(?:\[{LABEL}\]|\(\[{LABEL}\]\)|\[\[{LABEL}\]\]|\({LABEL}\))"
    rf"| +subgraph n[0-9]+\[{LABEL}\]"
    rf"| +n[0-9]+ (?:--> |-\.-> |-- {LABEL} --> )n[0-9]+"
)


def test_a_plan_is_drawn_with_its_values_waits_input_and_result() -> None:
    plan = Plan(
        "Tell",
        (
            Step("s1", "Weather-get", {"city": From("input", ("city",))}),
            Step("s2", "Tone-shout", {"text": TextOf((From("s1", ("date",)), From("s1", ("text",))))}, ("s1",)),
            Step("s3", "Log-write", {}, ("s2",)),
        ),
        result=From("s2"),
    )
    assert plan_to_mermaid(plan).splitlines() == [
        "flowchart TD",
        '    n0(["input"])',
        '    n1["s1<br/>Weather-get"]',
        '    n2["s2<br/>Tone-shout"]',
        '    n3["s3<br/>Log-write"]',
        '    n4(["result"])',
        '    n0 -- "#36;.city" --> n1',
        '    n1 -- "#36;.date, #36;.text" --> n2',
        "    n2 --> n4",
        "    n2 -.-> n3",
    ]


def test_a_nested_plan_is_a_box_with_lines_to_it_and_from_it() -> None:
    inner = Plan("inner", (Step("a", "F-f", {"x": From("input", ("x",))}),), result=From("a"))
    plan = Plan(
        "outer", (Step("s1", "F-f"), Step("s2", inner, {"x": From("s1", ("y",))}), Step("s3", "F-f", {}, ("s2",)))
    )
    assert plan_to_mermaid(plan).splitlines() == [
        "flowchart TD",
        '    n0["s1<br/>F-f"]',
        '    subgraph n1["s2#58; inner"]',
        '        n2(["input"])',
        '        n3["a<br/>F-f"]',
        '        n4(["result"])',
        "    end",
        '    n5["s3<br/>F-f"]',
        '    n2 -- "#36;.x" --> n3',
        "    n3 --> n4",
        '    n0 -- "#36;.y" --> n1',
        "    n1 -.-> n5",
    ]


def test_a_template_and_a_step_of_earlier_have_shapes_of_their_own() -> None:
    drawn = plan_to_mermaid(Plan("g", (Step("s9", PlanTemplate("Hi", "jinja2"), {"x": From("s1")}),)))
    assert '    n0[["s9<br/>jinja2 template"]]' in drawn
    assert '    n1("s1<br/>earlier")' in drawn
    assert "    n1 --> n0" in drawn


def test_a_plan_without_anything_is_still_a_drawing() -> None:
    assert plan_to_mermaid(Plan("")) == 'flowchart TD\n    n0["nothing to do"]'
    assert "subgraph" in plan_to_mermaid(Plan("", (Step("s1", Plan("")),)))


STEP = Step("a", "F-f")


@pytest.mark.parametrize(
    ("plan", "lines"),
    [
        pytest.param(
            Plan("g", (STEP,), input={"type": "object"}),
            ['    n0(["input"])', '    n1["a<br/>F-f"]'],
            id="an input that nothing reads",
        ),
        pytest.param(
            Plan("g", (replace(STEP, after=("input",)),), result=TextOf((From("input"), From("input", ("x",))))),
            [
                '    n0(["input"])',
                '    n1["a<br/>F-f"]',
                '    n2(["result"])',
                '    n0 -- "#36;, #36;.x" --> n2',
                "    n0 -.-> n1",
            ],
            id="a step that waits for the input, and a result with all and with a part of it",
        ),
        pytest.param(
            Plan("g", (replace(STEP, after=("old", "older")),), result=From("oldest", ("x",))),
            [
                '    n0["a<br/>F-f"]',
                '    n1("old<br/>earlier")',
                '    n2("older<br/>earlier")',
                '    n3(["result"])',
                '    n4("oldest<br/>earlier")',
                '    n4 -- "#36;.x" --> n3',
                "    n1 -.-> n0",
                "    n2 -.-> n0",
            ],
            id="a result and waits of earlier",
        ),
        pytest.param(
            Plan("g", (Step("n", Plan(" ", (replace(STEP, after=("old",)),), From("older")), {"x": Value(1)}),)),
            [
                '    subgraph n0["n"]',
                '        n1(["input"])',
                '        n2["a<br/>F-f"]',
                '        n3("old<br/>earlier")',
                '        n4(["result"])',
                '        n5("older<br/>earlier")',
                "    end",
                "    n5 --> n4",
                "    n3 -.-> n2",
            ],
            id="a nested plan that is given something, without a goal",
        ),
        pytest.param(
            Plan("g", (Step("n", Plan("in", (STEP,))), Step("m", Plan("", result=Value(1)), after=("n",)))),
            [
                '    subgraph n0["n#58; in"]',
                '        n1["a<br/>F-f"]',
                "    end",
                '    subgraph n2["m"]',
                '        n3(["result"])',
                "    end",
                "    n0 -.-> n2",
            ],
            id="nested plans that are given nothing",
        ),
        pytest.param(
            Plan("g", (Step("n", Plan("", (STEP,)), {"x": From("z")}), Step("m", Plan("", (STEP,)))), From("m")),
            [
                '    subgraph n0["n"]',
                '        n1(["input"])',
                '        n2["a<br/>F-f"]',
                "    end",
                '    subgraph n3["m"]',
                '        n4["a<br/>F-f"]',
                "    end",
                '    n5("z<br/>earlier")',
                '    n6(["result"])',
                "    n5 --> n0",
                "    n3 --> n6",
            ],
            id="lines to a nested plan and from one without a result",
        ),
        pytest.param(
            Plan("g", (Step("n", Plan("", result=Value(1))), replace(STEP, arguments={"x": From("n")}, after=("n",)))),
            ['    subgraph n0["n"]', '        n1(["result"])', "    end", '    n2["a<br/>F-f"]', "    n0 --> n2"],
            id="a line from a nested plan says that its step is waited for",
        ),
    ],
)
def test_what_a_plan_takes_and_gives_is_drawn_where_it_stands(plan: Plan, lines: list[str]) -> None:
    assert plan_to_mermaid(plan).split("\n") == ["flowchart TD", *lines]


@pytest.mark.parametrize(("length", "shown"), [(79, "x" * 79), (80, "x" * 80), (81, "x" * 79 + "…")])
def test_a_label_is_cut_at_eighty_characters(length: int, shown: str) -> None:
    drawn = plan_to_mermaid(Plan("", (Step("x" * length, "x" * length),)))
    assert drawn == f'flowchart TD\n    n0["{shown}<br/>{shown}"]'


@settings(max_examples=80)
@given(plans())
def test_no_plan_writes_mermaid_of_its_own(plan: Plan) -> None:
    for line in plan_to_mermaid(plan).split("\n"):
        assert LINES.fullmatch(line), f"this line is not one that is written here: {line!r}"


@pytest.mark.parametrize(
    "evil",
    [
        'x"] --> y["',
        "end",
        "%%{init: {'theme': 'dark'}}%%",
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "`**bold**`",
        "#quot;#35;",
        "&lt;b&gt;",
        "a\nb --> c",
        "a;b",
        "style n0 fill:#f00;",
        "click n0 href javascript:alert(1)",
        "\\",
        "\u202e\x1b[31m\u2028",
        "{{}}[[]](())||",
        "x" * 10_000,
    ],
)
def test_an_injection_is_only_a_label(evil: str) -> None:
    inner = Plan(evil, (Step(evil, evil),), result=From(evil, (evil,)))
    steps = (Step(evil, evil, {evil: Value(evil)}, reason=evil), Step("s2", inner, {"a": From(evil, (evil,))}, (evil,)))
    drawn = plan_to_mermaid(Plan(evil, (*steps, Step("s3", PlanTemplate(evil, evil))), result=From(evil, (evil,))))
    for line in drawn.split("\n"):
        assert LINES.fullmatch(line), f"this line is not one that is written here: {line!r}"
    assert len(drawn) < 10_000
