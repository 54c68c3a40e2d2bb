"""The poem of the planner article, run by five planners over every service: one word of the configuration changes.

Everything is real but the model: the configuration file, prompts from a folder, the OpenAI adapter, HTTP, the command
line. A server on loopback replays what a model says to each planner, in the form that this
planner asks for; a prompt it answers by what it is asked to write.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.replayed_model import SERVICES, ReplayedModel, Saying

import portico_host
from portico import Run, ToolCall
from portico.plans import Answer, Event, From, Plan, RunEvent, references
from portico_cli.main import main

ENGLISH = "Write a poem about John Doe, then translate it into Chinese."
CHINESE = "写一首关于John Doe的诗，然后把它翻译成中文。"

POEM = 'John Doe, "nobody" & everyone,\nwalks <alone> beneath the sun.'
TRANSLATED = "约翰·多伊，“无人”亦众人，\n独行于日光之下。"

POEM_PROMPT = "Write a short poem about this: {{$input}}"
TRANSLATE_PROMPT = "Translate this into {{$language}}:\n{{$input}}"


def call(name: str, **arguments: str) -> ToolCall:
    """Return a call whose id is the function's name."""
    return ToolCall(name, name, json.dumps(arguments))


SAYINGS: dict[str, list[Saying]] = {
    "sequential": [
        """<plan>
  <!-- The poem comes first. -->
  <function.WriterPlugin.ShortPoem input="John Doe" setContextVariable="POEM"/>
  <!-- Then its translation. -->
  <function.WriterPlugin.Translate input="$POEM" language="Chinese" appendToResult="RESULT__TRANSLATION"/>
</plan>"""
    ],
    "structured": [
        json.dumps({"next": each})
        for each in (
            {
                "function": "WriterPlugin-ShortPoem",
                "reason": "The poem comes first.",
                "arguments": {"input": {"value": "John Doe"}},
            },
            {
                "function": "WriterPlugin-Translate",
                "reason": "Then its translation.",
                "arguments": {"input": {"from": "s1", "path": "$"}, "language": {"value": "Chinese"}},
            },
            {"function": "finish", "result": {"from": "s2", "path": "$"}},
        )
    ],
    "stepwise": [
        json.dumps({"thought": thought, "action": action}, ensure_ascii=False)
        for thought, action in (
            ("The poem first.", {"function": "WriterPlugin-ShortPoem", "arguments": {"input": "John Doe"}}),
            (
                "Then its translation.",
                {
                    "function": "WriterPlugin-Translate",
                    "arguments": {"input": {"from": "s1", "path": "$"}, "language": "Chinese"},
                },
            ),
            ("It is done.", {"final": TRANSLATED}),
        )
    ],
    "function_calling": [
        call("WriterPlugin-ShortPoem", input="John Doe"),
        call("WriterPlugin-Translate", input=POEM, language="Chinese"),
        TRANSLATED,
    ],
    "handlebars": [
        """```handlebars
{{! The poem comes first. }}
{{set "poem" (WriterPlugin-ShortPoem input="John Doe")}}
{{! Then its translation. }}
{{set "translation" (WriterPlugin-Translate input=poem language="Chinese")}}
{{json translation}}
```"""
    ],
}
PLANNERS = pytest.mark.parametrize("planner", SAYINGS)


def written(prompt: str) -> str | None:
    """Return what the model writes for a prompt of the application, None for what a planner asks."""
    if prompt.startswith("Write a short poem about this: "):
        return POEM
    if prompt.startswith("Translate this into Chinese:\n"):
        return TRANSLATED if prompt.endswith(POEM) else "?"
    return None


@pytest.fixture
def application(tmp_path: Path, model: ReplayedModel) -> Callable[..., Path]:
    """Return what writes the application: for every planner and service the same, but for the word that names it."""
    model.apart = written
    for name, prompt, inputs in (
        ("ShortPoem", POEM_PROMPT, {"input": "What the poem is about."}),
        ("Translate", TRANSLATE_PROMPT, {"input": "The text.", "language": "The language to translate into."}),
    ):
        folder = tmp_path / "prompts" / name
        folder.mkdir(parents=True)
        (folder / "prompt.txt").write_text(prompt)
        lines = [f'description = "{name}, written by a model."']
        for parameter, description in inputs.items():
            lines += ["[[input_variables]]", f'name = "{parameter}"', f'description = "{description}"']
            lines += ["is_required = true"]
        (folder / "prompt.toml").write_text("\n".join(lines))

    def write(planner: str, service: str = "openai") -> Path:
        file = tmp_path / "portico.toml"
        file.write_text(f"""{model.every_service(service)}
[functions.WriterPlugin]
use = "prompts"
path = "prompts"

[planner]
use = "{planner}"
""")
        return file

    return write


@PLANNERS
@pytest.mark.parametrize(("service", "goal"), [("openai", CHINESE), *((service, ENGLISH) for service in SERVICES)])
async def test_the_goal_is_reached_and_the_poem_is_what_is_translated(
    application: Callable[..., Path], model: ReplayedModel, planner: str, goal: str, service: str
) -> None:
    model.sayings = SAYINGS[planner]
    events: list[RunEvent] = []
    async with portico_host.open(application(planner, service)) as kernel:
        run = await kernel.run_goal(goal, emit=events.append)
    assert isinstance(run.outcome, Answer), run.outcome
    assert run.outcome.text.strip() == TRANSLATED
    assert run.planner == planner
    assert model.prompts == ["Write a short poem about this: John Doe", f"Translate this into Chinese:\n{POEM}"], (
        "a prompt was asked otherwise than once, in this order, with exactly the poem"
    )
    assert len(model.asked) == len(SAYINGS[planner]), "a reply of the planner was not used, or mended"
    assert json.dumps(goal, ensure_ascii=False)[1:-1] in json.dumps(model.asked[0], ensure_ascii=False)
    called = [record.step.function for record in run.steps if isinstance(record.step.function, str)]
    assert called == ["WriterPlugin-ShortPoem", "WriterPlugin-Translate"]
    assert all(record.error is None for record in run.steps)
    assert run.usage.output_tokens == 7 * (len(SAYINGS[planner]) + len(model.prompts))
    assert run.services == ("openai" if service == "responses" else service,)
    shown = "".join(event.text for event in events if isinstance(event, Event.TextDelta))
    assert shown in ("", run.outcome.text), "what is shown while it comes is the answer"


@PLANNERS
async def test_what_was_done_can_be_replayed_without_a_model_for_the_planner(
    application: Callable[[str], Path], model: ReplayedModel, planner: str, tmp_path: Path
) -> None:
    model.sayings = SAYINGS[planner]
    file = application(planner)
    async with portico_host.open(file) as kernel:
        run = await kernel.run_goal(ENGLISH)
    asked = len(model.asked)
    model.prompts.clear()
    saved = tmp_path / "plan.json"
    saved.write_text(json.dumps({"answer": TRANSLATED, "plan": _as_json(run)}, ensure_ascii=False), "utf-8")
    again = {"planner": {"use": "recorded", "recorded": {"plan": str(saved)}}}
    async with portico_host.open(file, overrides=again) as kernel:
        replayed = await kernel.run_goal(ENGLISH)
    assert isinstance(replayed.outcome, Answer)
    assert replayed.outcome.text.strip() == TRANSLATED
    assert len(model.asked) == asked, "the replay asked a model what to do"
    assert len(model.prompts) == 2, "the steps were not run again"
    given_by_a_plan = run.plan.result is not None
    assert bool(replayed.outcome.warnings) != given_by_a_plan


def _as_json(run: Run) -> dict[str, Any]:
    from portico.plans import plan_to_json

    return plan_to_json(run.plan)


async def test_where_a_plan_is_written_at_once_the_poem_is_referred_to_and_not_copied(
    application: Callable[[str], Path], model: ReplayedModel
) -> None:
    for planner in ("sequential", "structured"):
        model.sayings, model.asked = SAYINGS[planner], []
        async with portico_host.open(application(planner)) as kernel:
            plan: Plan = (await kernel.run_goal(ENGLISH)).plan
        poem, translation = plan.steps
        assert translation.arguments["input"] == From(poem.id), planner
        assert plan.result is not None, planner
        assert {reference.step for reference in references(plan.result)} == {translation.id}, planner


async def test_without_a_schema_the_stepwise_planner_asks_in_lines_and_has_the_service_stop_at_an_observation(
    application: Callable[[str], Path], model: ReplayedModel
) -> None:
    translate = {"function": "WriterPlugin.Translate", "arguments": {"input": POEM, "language": "Chinese"}}
    model.sayings = [
        'Thought: The poem first.\nAction: {"function": "WriterPlugin.ShortPoem", "arguments": {"input": "John Doe"}}',
        f"Thought: Then its translation.\nAction: {json.dumps(translate)}",
        f"Thought: It is done.\nFinal answer: {TRANSLATED}",
    ]
    events: list[RunEvent] = []
    overrides = {"chat": {"openai": {"response_schema": False}}}
    async with portico_host.open(application("stepwise"), overrides=overrides) as kernel:
        run = await kernel.run_goal(ENGLISH, emit=events.append)
    assert isinstance(run.outcome, Answer)
    assert run.outcome.text == TRANSLATED
    assert "".join(event.text for event in events if isinstance(event, Event.TextDelta)) == TRANSLATED
    assert [body["stop"] for body in model.asked] == [["\nObservation:"]] * 3
    assert not any("response_format" in body for body in model.asked)
    assert json.dumps(POEM, ensure_ascii=False) in model.asked[1]["messages"][-1]["content"]


@PLANNERS
def test_the_command_line_takes_the_planner_by_its_name(
    application: Callable[[str], Path], model: ReplayedModel, planner: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model.sayings = SAYINGS[planner]
    assert main(["ask", ENGLISH, "--planner", planner, "--json", "--config", str(application("retrieval"))]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["answer"].strip() == TRANSLATED
    assert told["planner"] == planner
    assert model.prompts[-1] == f"Translate this into Chinese:\n{POEM}"
    assert len(model.asked) == len(SAYINGS[planner])
