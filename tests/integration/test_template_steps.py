"""Templates as steps, in their real languages: killed after any entry of the journal, and gone on with."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from portico import Each, Kernel, When, function
from portico.errors import StepFailed
from portico.plans import Answer, From, Plan, PlanTemplate, Step, Value, plan_function
from portico.plugins import RunState
from portico_templates.handlebars.language import HandlebarsTemplates
from portico_templates.jinja2.language import Jinja2Templates
from portico_testkit.fakes.run_store import MemoryRunStore

CITIES = ["Oslo", "Rome", "Oslo"]
SENDING = Plan("Send", (Step("s", "World-send", {"text": From("input", ("text",))}),), From("s"))
SOURCES = {
    "handlebars": "{{#each cities}}{{World-send text=(World-weather city=this)}}; {{/each}}"
    "{{#if cities}}{{telling text='done'}}{{else}}{{World-send text='nobody'}}{{/if}}",
    "jinja2": "{% for city in cities %}{{ World.send(text=World.weather(city=city)) }}; {% endfor %}"
    "{% if cities %}{{ telling(text='done') }}{% else %}{{ World.send(text='nobody') }}{% endif %}",
    "semantic-kernel": "{{World.forecasts cities=$cities}}; {{World.send text='x'}}; {{telling text='done'}}",
}
EFFECTS = {"World-send"}


class World:
    """What happens: each call, in order."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    @function
    async def weather(self, city: str) -> str:
        """Look at the sky."""
        self.calls.append(f"weather {city}")
        return f"sun in {city}"

    @function
    async def forecasts(self, cities: list[str]) -> str:
        """Look at all skies."""
        self.calls.append(f"weather {cities}")
        return ", ".join(cities)

    @function(effects=True)
    async def send(self, text: str) -> str:
        """Send a text, once."""
        self.calls.append(f"send {text}")
        return f"sent {text}"


def kernel_of(world: World, store: MemoryRunStore) -> Kernel:
    kernel = Kernel(run_store=store, template_languages=[HandlebarsTemplates(), Jinja2Templates()])
    kernel.add_plugin(world, "World")
    kernel.add_function(plan_function("telling", SENDING))
    return kernel


def plan_of(language: str, source: str | None = None) -> Plan:
    template = PlanTemplate(source or SOURCES[language], language)
    inner = Plan("inside", (Step("t", template, {"cities": From("input", ("cities",))}),), From("t"))
    return Plan("Tell them", (Step("n", inner, {"cities": Value(CITIES)}),), From("n"))


def looped(language: str) -> Plan:
    """Return a plan whose template runs for each of three lists of cities that is not empty."""
    each, when = Each(Value([["Oslo"], [], ["Rome"]])), When("present", (From("item"),))
    template = PlanTemplate(SOURCES[language], language)
    return Plan("Tell them", (Step("t", template, {"cities": From("item")}, each=each, when=when),), From("t"))


@pytest.mark.parametrize("language", SOURCES)
@pytest.mark.parametrize("answer", ["retry", "result"])
@pytest.mark.parametrize("make", [plan_of, looped])
async def test_killed_after_any_entry_it_ends_as_if_it_had_not_been(
    language: str, answer: str, make: Callable[[str], Plan]
) -> None:
    store, first = MemoryRunStore(), World()
    whole = await kernel_of(first, store).run_plan(make(language))
    assert isinstance(whole.outcome, Answer)
    assert "sent done" in whole.outcome.text
    assert make is plan_of or whole.outcome.value[1] is None
    results = {record.step.id: record.result for record in whole.steps}
    entries = list(store._entries[whole.name])
    for count in range(2, len(entries)):
        store._entries[whole.name] = entries[:count]
        state = RunState.of(await store.read(whole.name))
        finished = [record for record in state.records if isinstance(record.step.function, str)]
        world = World()
        kernel = kernel_of(world, store)
        run = await kernel.resume(whole.name)
        asked: list[str] = []
        while not isinstance(run.outcome, Answer):
            step = str(run.outcome.step)  # type: ignore[union-attr]
            assert step not in asked, f"after {count} entries it asks for {step} again"
            asked.append(step)
            if answer == "retry":
                run = await kernel.resume(whole.name, retry=[step])
            else:
                run = await kernel.resume(whole.name, results={step: results[step]})
        assert run.outcome == whole.outcome, f"after {count} entries"
        own = len([record for record in finished if record.step.function != "telling"])
        given = len(asked) if answer == "result" else 0
        assert len(world.calls) == len(first.calls) - own - given, f"after {count} entries: {world.calls}"
        assert {record.step.id for record in run.steps} == set(results)


async def test_calls_in_another_order_are_the_calls_that_they_were() -> None:
    """A template may read a clock, or a set; what was done for one call is not taken for another."""
    store, first = MemoryRunStore(), World()
    plan = plan_of("handlebars", "{{World-send text='a'}} {{World-send text='b'}} {{World-send text='a'}}")
    whole = await kernel_of(first, store).run_plan(plan)
    entries = list(store._entries[whole.name])
    turned = plan_of("handlebars", "{{World-send text='b'}} {{World-send text='a'}} {{World-send text='c'}}")
    for count in range(2, len(entries)):
        changed = [_unchecked(entry).replace(_json(plan), _json(turned)) for entry in entries[:count]]
        store._entries[whole.name] = changed
        world = World()
        kernel = kernel_of(world, store)
        state = RunState.of(await store.read(whole.name))
        if "n/t" in state.results:
            break
        before = [record.step.arguments.get("text") for record in state.records]
        run = await kernel.resume(whole.name)
        while not isinstance(run.outcome, Answer):
            run = await kernel.resume(whole.name, retry=[str(run.outcome.step)])  # type: ignore[union-attr]
        assert run.outcome.text == "sent b sent a sent c", f"after {count} entries"
        for text in ("a", "b", "c"):
            if Value(text) in before:
                assert f"send {text}" not in world.calls, f"after {count} entries {text} was sent again"


def _unchecked(entry: str) -> str:
    """Return an entry without its checksum, as earlier versions wrote it."""
    return re.sub(r',\s*"crc32":\s*"\w+"', "", entry)


def _json(plan: Plan) -> str:
    nested = plan.steps[0].function
    assert isinstance(nested, Plan)
    template = nested.steps[0].function
    assert isinstance(template, PlanTemplate)
    return template.source


@pytest.mark.parametrize("language", ["handlebars", "jinja2"])
async def test_a_failure_inside_can_be_run_again_without_the_rest(language: str) -> None:
    class Shaky(World):
        @function(effects=True)
        async def send(self, text: str) -> str:
            """Send a text, unless it is the second."""
            self.calls.append(f"send {text}")
            if "Rome" in text and "Rome" in broken:
                raise ConnectionError("no line")
            return f"sent {text}"

    broken = {"Rome"}
    store, world = MemoryRunStore(), Shaky()
    kernel = kernel_of(world, store)
    with pytest.raises(StepFailed, match="no line"):
        await kernel.run_plan(plan_of(language))
    broken.clear()
    (run,) = await store.runs()
    failed = [record for record in RunState.of(await store.read(run)).records if record.error is not None]
    inner = next(record.step.id for record in failed if record.step.id.startswith("n/t/"))
    with pytest.raises(StepFailed, match="no line"):
        await kernel.resume(run)
    before = list(world.calls)
    ended = await kernel.resume(run, retry=[inner])
    assert isinstance(ended.outcome, Answer)
    sent = [call for call in world.calls if call.startswith("send")]
    assert sent.count("send sun in Rome") == 2, "only what failed was done again"
    assert sorted(sent) == sorted(["send sun in Oslo"] * 2 + ["send sun in Rome"] * 2 + ["send done"])
    assert not [call for call in world.calls[len(before) :] if call == "weather Rome"]
