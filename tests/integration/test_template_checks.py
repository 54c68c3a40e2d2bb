"""What the check of plans says of template steps, in the real languages, against what rendering them does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from portico import Answer, Kernel, function
from portico.errors import PlanInvalid, PorticoError
from portico.plans import From, Plan, PlanTemplate, Step, Value
from portico_templates.handlebars.language import HandlebarsTemplates
from portico_templates.jinja2.language import Jinja2Templates


@dataclass(frozen=True)
class Case:
    """A template in both languages, its variables, and what the check says of it, by language where that differs."""

    handlebars: str
    jinja2: str
    says: tuple[str, ...] = ()
    arguments: dict[str, Any] = field(default_factory=dict)


CASES = {
    "no call": Case("a b", "a b"),
    "a call with a name": Case("{{Tone-shout text='a'}}", "{{ Tone.shout(text='a') }}"),
    "a call without a name": Case("{{Tone-shout 'a'}}", "{{ Tone.shout('a') }}"),
    "a call inside of another": Case(
        "{{Tone-shout text=(Tone-shout text='a')}}", "{{ Tone.shout(text=Tone.shout(text='a')) }}"
    ),
    "a call in a loop": Case(
        "{{#each all}}{{Tone-shout text=this}}{{/each}}",
        "{% for each in all %}{{ Tone.shout(text=each) }}{% endfor %}",
        arguments={"all": ["a", "b"]},
    ),
    "an argument that is a variable": Case("{{Tone-shout text=x}}", "{{ Tone.shout(text=x) }}", arguments={"x": "a"}),
    "a default that is not given": Case("{{Tone-say text='a'}}", "{{ Tone.say(text='a') }}"),
    "an unknown function": Case(
        "a\n {{Tone-shot text='a'}}",
        "a\n {{ Tone.shot(text='a') }}",
        ("line 2, column 4: there is no function 'Tone-shot'", "line 2, column 5: there is no function 'Tone-shot'"),
    ),
    "a missing argument": Case(
        "{{Tone-say times=2}}", "{{ Tone.say(times=2) }}", ("Tone-say needs the argument 'text'",)
    ),
    "an argument that no function has": Case(
        "{{Tone-shout text='a' loud=true}}",
        "{{ Tone.shout(text='a', loud=true) }}",
        ("Tone-shout has no parameter 'loud'",),
    ),
    "too many arguments": Case("{{Tone-shout 'a' 'b'}}", "{{ Tone.shout('a', 'b') }}", ("takes 1 arguments, not 2",)),
    "a template that does not end": Case("{{#if a}}", "{% if a %}", ("line 1",)),
}


class Tone:
    @function
    def shout(self, text: str) -> str:
        """Say loudly."""
        return text.upper()

    @function
    def say(self, text: str, times: int = 1) -> str:
        """Say some times."""
        return text * times


def kernel() -> Kernel:
    made = Kernel(template_languages=[HandlebarsTemplates(), Jinja2Templates()])
    made.add_plugin(Tone(), "Tone")
    return made


@pytest.mark.parametrize("language", ["handlebars", "jinja2"])
@pytest.mark.parametrize("name", CASES)
async def test_the_check_refuses_what_rendering_fails_at_and_nothing_else(name: str, language: str) -> None:
    case = CASES[name]
    source = getattr(case, language)
    step = Step("t", PlanTemplate(source, language), {name: Value(value) for name, value in case.arguments.items()})
    plan = Plan("g", (step,), result=From("t"))
    if not case.says:
        run = await kernel().run_plan(plan)
        assert isinstance(run.outcome, Answer), run.outcome
        assert run.outcome.value == await kernel().render_prompt(source, case.arguments, language=language)
        return
    with pytest.raises(PlanInvalid) as caught:
        await kernel().run_plan(plan)
    assert any(each in str(caught.value) for each in case.says), str(caught.value)
    with pytest.raises(PorticoError):
        await kernel().render_prompt(source, case.arguments, language=language)


@pytest.mark.parametrize(
    ("language", "source"), [("handlebars", "{{Tone-shout text=s}}"), ("jinja2", "{{ Tone.shout(text=s) }}")]
)
async def test_what_an_earlier_step_gave_is_a_variable_of_a_template(language: str, source: str) -> None:
    plan = Plan(
        "g",
        (
            Step("s1", "Tone-say", {"text": Value("ab"), "times": Value(2)}),
            Step("t", PlanTemplate(source, language), {"s": From("s1")}),
        ),
        result=From("t"),
    )
    run = await kernel().run_plan(plan)
    assert isinstance(run.outcome, Answer)
    assert run.outcome.value == "ABAB"


@pytest.mark.parametrize(("language", "source"), [("handlebars", "Hi {{name}}"), ("jinja2", "Hi {{ name }}")])
async def test_a_template_is_refused_without_a_variable_that_it_writes(language: str, source: str) -> None:
    """Rendering leaves it empty; in a plan it is a step's argument that was forgotten."""
    plan = Plan("g", (Step("t", PlanTemplate(source, language)),), result=From("t"))
    with pytest.raises(PlanInvalid, match="the template needs the argument 'name'"):
        await kernel().run_plan(plan)
