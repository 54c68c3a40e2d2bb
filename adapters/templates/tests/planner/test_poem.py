"""The poem of the planner article, from end to end, with a model's recorded replies."""

from __future__ import annotations

import pytest

from portico import ChatRequest, Kernel, prompt_function
from portico.plans import Answer
from portico.ports import ChatService, TemplateLanguage
from portico_templates.handlebars.language import HandlebarsTemplates
from portico_templates.planner.config import HandlebarsPlannerSettings
from portico_templates.planner.planner import HandlebarsPlanner
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.services import FixedServices

GOALS = (
    "Write a poem about John Doe, then translate it into Chinese.",
    "写一首关于 John Doe 的诗，然后把它翻译成中文。",
)
POEM_PLAN = """\
```handlebars
{{! A poem first. }}
{{set "poem" (WriterPlugin-ShortPoem input="John Doe")}}
{{! Then the translation. }}
{{set "translated" (WriterPlugin-Translate input=poem language="Chinese")}}
{{json translated}}
```"""
POEM = "John Doe, nobody knows you,\nyet every form does."
TRANSLATED = "无名氏，无人识你，\n而每张表格都认得。"


def poem_kernel(chat: ScriptedChat) -> Kernel:
    services = FixedServices({ChatService: chat, TemplateLanguage: HandlebarsTemplates()})
    kernel = Kernel(services)
    for name, prompt, description in (
        ("ShortPoem", "Write a short poem about: {{$input}}", "Turn a scenario into a short poem."),
        ("Translate", "Translate into {{$language}}: {{$input}}", "Translate text into a language of your choice."),
    ):
        kernel.add_function(prompt_function(name, prompt, plugin="WriterPlugin", description=description))
    return kernel


def recorded(request: ChatRequest) -> str:
    """Answer as a model did, by what it is asked."""
    words = request.messages[-1].text
    if words == "Write a short poem about: John Doe":
        return POEM
    if words == f"Translate into Chinese: {POEM}":
        return TRANSLATED
    assert any(words.endswith(goal) for goal in GOALS), f"nobody recorded an answer to {words!r}"
    return POEM_PLAN


@pytest.mark.parametrize("goal", GOALS)
async def test_the_poem_is_written_and_translated(goal: str) -> None:
    chat = ScriptedChat(recorded, repeat=True)
    kernel = poem_kernel(chat)
    made = HandlebarsPlanner(HandlebarsPlannerSettings(), kernel.services)
    run = await kernel.run_goal(goal, planner=made)
    assert isinstance(run.outcome, Answer)
    assert run.outcome.text == TRANSLATED
    assert [record.step.id for record in run.steps] == ["s1/1", "s1/2", "s1"]
    assert [record.result for record in run.steps] == [POEM, TRANSLATED, TRANSLATED]
