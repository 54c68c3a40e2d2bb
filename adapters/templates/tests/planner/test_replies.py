"""What is taken out of a model's reply: one template, a reason why there is none, or what to write better."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from portico import FunctionSpec
from portico.plans import Infeasible, ReplyProblem
from portico_templates.handlebars.language import HandlebarsTemplates
from portico_templates.planner.planner import read_reply, template_problems

CALL = "{{json (Tone-shout text='hey')}}"


def source(reply: str) -> str:
    written = read_reply(reply)
    assert isinstance(written, str), f"{reply!r} gave {written}"
    return written


@pytest.mark.parametrize(
    "reply",
    [
        f"```handlebars\n{CALL}\n```",
        f"Here you are:\n\n```hbs\n{CALL}\n```\nIt shouts.",
        f"  ```Handlebars  \n{CALL}\n  ```",
        f"~~~handlebars\n{CALL}\n~~~",
        f"````handlebars\n{CALL}\n````",
        f"```json\n{{}}\n```\n```handlebars\n{CALL}\n```",
        f"```handlebars\r\n{CALL}\r\n```",
    ],
)
def test_the_template_is_what_stands_in_the_code_fence(reply: str) -> None:
    written = read_reply(reply)
    assert written == CALL


@pytest.mark.parametrize(
    "reply", [f"```\n{CALL}\n```", f"```html\n{CALL}\n```", f"```handlebars\n{CALL}", f"\n{CALL}\n"]
)
def test_a_template_is_found_without_its_fence_too(reply: str) -> None:
    assert read_reply(reply) == CALL


@pytest.mark.parametrize(
    ("reply", "advice"),
    [
        ("", "no template"),
        ("I would rather not.", "no template"),
        (f"The template is {CALL}, good luck.", "no code fence"),
        (f"```handlebars\n{CALL}\n```\nor\n```handlebars\n{CALL}{CALL}\n```", "2 templates"),
        ("```handlebars\n```", "calls nothing"),
        ("```handlebars\nJust words.\n```", "calls nothing"),
    ],
)
def test_a_reply_without_one_template_says_what_to_write(reply: str, advice: str) -> None:
    with pytest.raises(ReplyProblem, match=re.escape(advice)):
        read_reply(reply)


@pytest.mark.parametrize(
    "reply",
    [
        "CANNOT: There is no mail.\nMISSING: sending mail; reading mail",
        "cannot: There is no mail.\n\nMISSING: sending mail\nMissing: reading mail\n",
        "**CANNOT:** There is no mail.\n- MISSING: sending mail;reading mail;",
        "```\nCANNOT: There is no mail.\nMISSING: sending mail; reading mail\n```",
        "```handlebars\n{{! CANNOT: There is no mail.\nMISSING: sending mail; reading mail }}\n```",
    ],
)
def test_a_model_that_cannot_says_why_and_what_is_missing(reply: str) -> None:
    assert read_reply(reply) == Infeasible("There is no mail.", ("sending mail", "reading mail"))


def test_a_marker_after_a_template_does_not_take_the_template_away() -> None:
    assert source(f"```handlebars\n{CALL}\n```\nCANNOT: be shorter") == CALL


def test_a_reason_is_never_empty() -> None:
    outcome = read_reply("CANNOT:")
    assert isinstance(outcome, Infeasible)
    assert outcome.reason


def test_lines_that_only_set_leave_no_empty_lines_in_the_answer() -> None:
    reply = "```handlebars\n{{set 'a' (P-f)}}\n  {{set\n 'b' a}}  \n{{~set 'c' a~}}\nA: {{set 'd' b}}\n{{json a}}\n```"
    expected = "{{set 'a' (P-f)~}}\n  {{set\n 'b' a~}}  \n{{~set 'c' a~}}\nA: {{set 'd' b}}\n{{json a}}"
    assert source(reply) == expected


@given(st.text(alphabet="`~{}#! \nahCANOT:", max_size=60))
def test_any_reply_is_read_or_refused(reply: str) -> None:
    try:
        written = read_reply(reply)
    except ReplyProblem as problem:
        assert str(problem)
    else:
        assert isinstance(written, str | Infeasible)


def test_a_long_reply_is_read_in_a_moment() -> None:
    for part in ("```\n", "{{set 'a'\n", "{{#", "~~~ a\n", "{{!--", "MISSING: a\n"):
        text = part * 20_000
        try:
            read_reply(text)
        except ReplyProblem:
            continue


_WEATHER = {"type": "object", "properties": {"day": {"type": "string"}}, "additionalProperties": False}
_NOTHING = {"type": "object", "properties": {}}
CATALOGUE = {"P-f": FunctionSpec("P-f", "", _NOTHING, _WEATHER), "P-any": FunctionSpec("P-any", "", _NOTHING, {})}


def problems(template: str, *given: str, allow_loops: bool = True) -> list[str]:
    compiled = HandlebarsTemplates().compile(template)
    return list(template_problems(template, compiled, given, CATALOGUE, allow_loops=allow_loops))


@pytest.mark.parametrize(
    "template",
    [
        "{{set 'a' 1}}{{json a}}{{a}}{{#if a}}{{get 'a'}}{{/if}}",
        "{{set name='a' value=1}}{{get 'a.b'}}",
        "{{#each (range 1 3)}}{{this}}{{other}}{{/each}}",
        "{{json input.city}}",
        "{{! {{json b}} }}{{!-- (get 'b') --}}x{{input}}",
        "{{P-f}}",
        "{{#if b}}{{/if}}",
    ],
)
def test_variables_that_are_there_are_no_problem(template: str) -> None:
    assert problems(template, "input") == []


@pytest.mark.parametrize("template", ["{{json b}}", "{{P-f x=b}}", "{{set 'a' b}}", "{{json (get 'b')}}", "{{b}}"])
def test_a_variable_that_nothing_sets_is_found(template: str) -> None:
    [problem] = problems(template, "input")
    assert "'b'" in problem


@pytest.mark.parametrize("read", ["{{get 'a.date'}}", "{{json (get 'a.date')}}", "{{#if (get 'a.day.x')}}{{/if}}"])
def test_a_field_that_an_output_cannot_have_is_found(read: str) -> None:
    [problem] = problems("{{set 'a' (P-f)}}" + read)
    assert "not in the output of P-f" in problem


@pytest.mark.parametrize(
    "template",
    [
        "{{set 'a' (P-f)}}{{json a.day}}{{get 'a.day'}}",
        "{{set 'a' (P-any)}}{{json (get 'a.date')}}",
        "{{set 'a' (P-f)}}{{set 'a' (P-any)}}{{json (get 'a.date')}}",
        "{{set 'a' (P-f)}}'a.date' {{concat 'a.date'}}",
    ],
)
def test_fields_that_an_output_may_have_are_no_problem(template: str) -> None:
    assert problems(template) == []


def test_a_function_without_its_parentheses_is_told_how_to_be_called() -> None:
    [problem] = problems("{{set 'a' P-f}}{{a}}")
    assert "(P-f …)" in problem


@pytest.mark.parametrize(
    "template",
    [
        "{{#each a}}x{{/each}}",
        "{{#P-list}}x{{/P-list}}",
        "{{#*inline 'a'}}{{> a}}{{/inline}}",
        "{{~#  each a}}x{{/each}}",
    ],
)
def test_loops_are_a_problem_where_they_are_not_allowed(template: str) -> None:
    assert any("loop" in problem for problem in problems(template, "a", allow_loops=False))
    assert not any("loop" in problem for problem in problems(template, "a", allow_loops=True))


def test_conditions_are_no_loops() -> None:
    template = "{{#if a}}{{else if a}}{{/if}}{{#unless a}}{{/unless}}{{#with a}}{{/with}}{{! {{#each a}} }}"
    assert problems(template, "a", allow_loops=False) == []
