"""Steps for each item of a list and on a condition: what is offered and taken, and what they surely give."""

from __future__ import annotations

import json
from typing import Any, TypedDict

import pytest
from hypothesis import given, strategies as st

from portico import ChatCapabilities, Each, Kernel, When, function
from portico.errors import PlanError
from portico.plans import Answer, From, Step, StepRecord, Task, Value, evaluate
from portico.plugins import PlainSchemaValidator
from portico.ports import ChatService
from portico_structured_planner.config import StructuredSettings
from portico_structured_planner.forms import ParameterForm
from portico_structured_planner.planner import StructuredPlanner
from portico_structured_planner.steps import Forms, Origin, schema_of
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.services import FixedServices
from portico_testkit.strategies import json_values

STRICT = ChatCapabilities(response_schema=True, strict=True)


class Mail(TypedDict):
    by: str
    text: str
    size: int
    unread: bool
    copies: list[str]


class Mails:
    @function
    def today(self) -> list[Mail]:
        """List the mails of today."""
        lunch = Mail(by="ada", text="Lunch?", size=1, unread=True, copies=["ben"])
        return [lunch, Mail(by="ben", text="Hi.", size=2, unread=False, copies=[])]

    @function
    def answer(self, to: str, text: str = "") -> str:
        """Write a mail."""
        return f"{to}: {text}"

    @function
    def greet(self, names: list[str]) -> str:
        """Greet all."""
        return " and ".join(names)

    @function
    def wait(self, days: int) -> str:
        """Wait."""
        return f"{days} days"


kernel = Kernel()
kernel.add_plugin(Mails)
FUNCTIONS = tuple(kernel.specs.values())


def ref(step: str, path: str = "$") -> dict[str, str]:
    return {"from": step, "path": path}


def value(what: Any) -> dict[str, Any]:
    return {"value": what}


def call(name: str, arguments: dict[str, Any], **control: Any) -> str:
    return json.dumps({"next": {"function": f"Mails-{name}", "reason": "", **control, "arguments": arguments}})


def finish(step: str) -> str:
    return json.dumps({"next": {"function": "finish", "result": ref(step)}})


TODAY = call("today", {}, each=None, when=None)
ALL, ITEM_BY = {"items": ref("s1")}, ref("item", "$.by")


async def propose(*replies: str, steps: tuple[StepRecord, ...] = (), **settings: Any) -> tuple[Any, ScriptedChat]:
    chat = ScriptedChat(*replies, capabilities=STRICT)
    planner = StructuredPlanner(StructuredSettings(**settings), FixedServices({ChatService: chat}))
    return await planner.propose(Task("Answer.", FUNCTIONS, steps), emit=lambda event: None), chat


@pytest.mark.parametrize("capabilities", [STRICT, ChatCapabilities()], ids=["strict", "words"])
async def test_a_loop_with_a_condition_is_planned_and_runs(capabilities: ChatCapabilities) -> None:
    ada = {"not": {"equal": [ITEM_BY, value("ben")]}}
    answers = call("answer", {"to": ITEM_BY, "text": {"text": ["Re: ", ref("item", "$.text")]}}, each=ALL, when=ada)
    chat = ScriptedChat(TODAY, answers, finish("s2"), capabilities=capabilities)
    planner = StructuredPlanner(StructuredSettings(), FixedServices({ChatService: chat}))
    run = await kernel.run_goal("Answer Ada.", planner=planner)
    assert isinstance(run.outcome, Answer)
    assert run.outcome.value == ["ada: Re: Lunch?", None]
    assert [step.each for step in run.plan.steps] == [None, Each(From("s1"))]
    assert run.plan.steps[1].when == When("equal", (From("item", ("by",)), Value("ben")), negated=True)
    assert "This is the step s2. It gives: (string | null)[]" in chat.requests[2].messages[-1].text


@pytest.mark.parametrize(
    ("control", "names"),
    [
        ({"each": ALL, "when": None}, ref("s2")),
        ({"each": None, "when": None}, None),
        ({"each": ALL, "when": {"true": ref("item", "$.unread")}}, None),
        ({"each": ALL, "when": {"present": ref("s1")}}, None),
    ],
)
async def test_a_result_is_offered_where_it_surely_fits_with_its_loop_and_condition(
    control: dict[str, Any], names: dict[str, str] | None
) -> None:
    to = ITEM_BY if control["each"] else value("ada")
    after = call("greet", {"names": ref("s2")}, each=None, when=None)
    replies = (TODAY, call("answer", {"to": to, "text": None}, **control), after)
    if names is None:
        with pytest.raises(PlanError, match=r'arguments.names: .*"s2", "path": "\$"} does not surely fit'):
            await propose(*replies, repairs=0)
    else:
        plan, _ = await propose(*replies, finish("s3"))
        assert plan.steps[2].arguments == {"names": From("s2")}


NO_EACH = 'each: it is null, so there is no {"from": "item"}'
COMPARE = {"each": ALL, "when": None}


@pytest.mark.parametrize(
    ("arguments", "control", "fault"),
    [
        ({"to": ITEM_BY, "text": ITEM_BY}, {"each": None, "when": None}, NO_EACH),
        ({"to": value("a"), "text": None}, {"each": None, "when": {"true": ref("item", "$.unread")}}, NO_EACH),
        ({"to": ITEM_BY, "text": None}, {"each": {"items": ref("s1", "$[0].by")}}, "each.items: .* surely fit"),
        ({"to": ref("item", "$.size"), "text": None}, COMPARE, r'to: .*\$.size"} does not .*"item", "path": "\$.by"'),
        ({"to": ITEM_BY, "text": None}, COMPARE | {"when": {"true": ref("item", "$.size")}}, "when.true: .*unread"),
        ({"to": ITEM_BY, "text": None}, COMPARE | {"when": {"equal": [value("a"), value("a")]}}, "two is a reference"),
        (
            {"to": ITEM_BY, "text": None},
            COMPARE | {"when": {"not": {"equal": [ref("item", "$.size"), value("1")]}}},
            r"when.not.equal\[1\]: expected number or null",
        ),
        ({"to": ITEM_BY, "text": None}, COMPARE | {"when": {"above": [1, 2]}}, "when: expected null, one of"),
    ],
)
async def test_what_does_not_fit_the_list_is_one_clear_fault(
    arguments: dict[str, Any], control: dict[str, Any], fault: str
) -> None:
    with pytest.raises(PlanError, match=fault) as caught:
        await propose(TODAY, call("answer", arguments, **control), repairs=0)
    assert str(caught.value).count("each: it is null") <= 1


async def test_of_the_items_of_several_lists_those_of_the_chosen_one_are_taken() -> None:
    copies = {"items": ref("s3", "$.copies")}
    one = StepRecord(Step("s3", "Mails-one"), {"copies": ["ben"], "paid": [3]})
    plan, _ = await propose(call("answer", {"to": ref("item"), "text": None}, each=copies), finish("s2"), steps=(one,))
    assert plan.steps[0].each == Each(From("s3", ("copies",)))
    with pytest.raises(PlanError, match=r'to: .*"item", "path": "\$"} does not surely fit'):
        paid = {"items": ref("s3", "$.paid")}
        await propose(call("answer", {"to": ref("item"), "text": None}, each=paid), steps=(one,), repairs=0)


async def test_without_loops_a_step_is_what_it_was() -> None:
    plain = json.dumps({"next": {"function": "Mails-today", "reason": "", "arguments": {}}})
    _, chat = await propose(plain, finish("s1"), loops=False)
    for request in chat.requests:
        assert '"each"' not in json.dumps(request.response_schema)
        assert '"each"' not in request.messages[0].text


_ROWS = st.lists(st.fixed_dictionaries({"a": json_values(3)}, optional={"b": st.text(max_size=2)}), max_size=4)


@given(_ROWS | json_values(12) | st.fixed_dictionaries({"rows": _ROWS}))
def test_what_fits_of_the_items_fits_of_every_item(given_value: Any) -> None:
    numbers = {"type": "array", "items": {"type": "integer"}}
    for schema in ({"type": "string"}, {"type": ["number", "null"]}, numbers, True):
        form = ParameterForm(schema)
        for path, inside in Forms().items(Origin("s1", (schema_of(given_value),)), form).items():
            items = evaluate(From("s1", path), {"s1": given_value})
            assert isinstance(items, list)
            found = [evaluate(From("item", each), {"item": item}) for item in items for each in inside]
            assert all(PlainSchemaValidator().compile(schema)(each) == [] for each in found if schema is not True)


async def test_what_another_planner_ran_is_shown_as_it_ran() -> None:
    each, when = Each(From("s1"), 4, "skip"), When("present", (From("s1"),), negated=True)
    steps = (
        StepRecord(Step("s1", "Mails-today"), [{"by": "ada"}]),
        StepRecord(Step("s2[0]", "Mails-answer", {"to": From("item", ("by",))}), "ada: "),
        StepRecord(Step("s2", "Mails-answer", {"to": From("item", ("by",))}, each=each), ["ada: "]),
        StepRecord(Step("s3", "Mails-answer", {"to": Value("ben")}, when=when), skipped=True),
    )
    plan, chat = await propose(finish("s2"), steps=steps)
    assert plan.result == From("s2")
    said = chat.requests[0].messages[1].text
    assert "s2[0]" not in said
    assert '"each": {"items": {"from": "s1"}, "at_once": 4, "failed": "skip"}' in said
    assert "It was skipped, since its condition does not hold." in said
