"""Drawings of plans: every value and every wait is a line, and no plan writes Mermaid of its own."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings

from portico.plans.mermaid import plan_to_mermaid
from portico.plans.plan import From, Plan, PlanTemplate, Step, TextOf, Value
from portico_testkit.strategies import plans

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


def test_a_nested_plan_is_a_box_with_lines_to_its_input_and_from_its_result() -> None:
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
        '    n0 -- "#36;.y" --> n2',
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
