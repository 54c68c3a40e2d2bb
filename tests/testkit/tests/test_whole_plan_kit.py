"""The kit of planners that write whole plans passes a correct one and catches broken ones."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from portico.chat import ChatRequest, Message
from portico.errors import PlanError
from portico.functions import function
from portico.kernel import Kernel
from portico.planning.asking import ask
from portico.planning.fitting import fitted_manual, require_functions, told_of
from portico.planning.repairing import ReplyProblem, ask_until_usable
from portico.planning.replanning import plan_number
from portico.planning.transcript import one_line, shortened
from portico.plans.plan import From, Plan, Step, Value
from portico.plans.task import Emit, Infeasible, Refusal, StepRecord, Task
from portico.ports.chat_service import ChatService
from portico_testkit.kit_failures import KnownFaults
from portico_testkit.kit_of_a_kit import KitOfAKit
from portico_testkit.planner import PlannerKit
from portico_testkit.whole_plan import WholePlanKit

NO_PLAN = "It is no call."


class Tone:
    @function
    def shout(self, text: str) -> str:
        """Say it aloud."""
        return text.upper()


class Writer:
    """Have a model write a call: the function's name and its text, in JSON."""

    name = "writer"
    shown = 100
    """Tokens of a result, an error or the input."""

    def __init__(
        self,
        chat: ChatService,
        *,
        repairs: int = 2,
        replans: int = 2,
        manual_tokens: int | None = 6_000,
        instructions: str = "",
        **sampling: Any,
    ) -> None:
        self.chat = chat
        self.repairs, self.replans, self.manual_tokens = repairs, replans, manual_tokens
        self.instructions, self.sampling = instructions, sampling

    async def propose(self, task: Task, *, emit: Emit) -> Any:
        require_functions(task)
        number = plan_number(task, replans=self.replans)
        fitted = fitted_manual(task.functions, task.goal, tokens=self.manual_tokens)
        request = ChatRequest(tuple(self.messages(task, fitted.text)), **self.sampling)
        read = await self.read(task, request, emit)
        return told_of(read, fitted) if isinstance(read, Infeasible) else replace(read, notes={"plan": number})

    async def read(self, task: Task, request: ChatRequest, emit: Emit) -> Any:
        def read(text: str) -> Plan | Infeasible:
            return self.meant(task, text)

        read_, _ = await ask_until_usable(
            self.chat, request, emit, read=read, repair=lambda problem: problem, repairs=self.repairs
        )
        return read_

    def meant(self, task: Task, text: str) -> Plan | Infeasible:
        if text == "no":
            return Infeasible("Nobody can.")
        try:
            name, said = json.loads(text)
        except ValueError:
            raise ReplyProblem(NO_PLAN) from None
        id = f"s{len(task.steps) + 1}"
        return Plan(task.goal, (Step(id, name, {"text": Value(said)}),), From(id))

    def messages(self, task: Task, manual: str) -> list[Message]:
        told = [f"Input: {self.data(task.input)}", *map(self.record, task.steps[:100]), f"Goal: {task.goal}"]
        messages = [
            Message.of("system", f"Answer with a call.\n{manual}\n{self.instructions}"),
            Message.of("user", "\n".join(told)),
        ]
        for refusal in task.refused:
            messages += self.refused(refusal)
        return messages

    def refused(self, refusal: Refusal) -> list[Message]:
        findings = sorted(refusal.findings, key=lambda finding: finding.severity != "error")
        shown = [str(step.arguments) for step in refusal.plan.steps]
        return [
            Message.of("assistant", "; ".join(shown) or "(nothing)"),
            Message.of("user", "\n".join(finding.message for finding in findings)),
        ]

    def record(self, record: StepRecord) -> str:
        return f"- {record.step.id} gave {self.data(record.error or record.result)}"

    def data(self, value: Any) -> str:
        return shortened(one_line(value), self.shown)


class Contract(WholePlanKit):
    infeasible = "no"
    unusable = (("I shout.", NO_PLAN),)
    made: type[Writer] = Writer

    def planner_with(self, chat: ChatService, **settings: Any) -> Writer:
        return self.made(chat, **settings)

    def reply_to(self, request: ChatRequest) -> str:
        return json.dumps(["Tone-shout", f"hey {sum(len(message.text) for message in request.messages)}"])

    def told_goal(self, text: str) -> str:
        return text.partition("\nGoal: ")[2]


class TestWriter(Contract):
    @pytest.fixture
    def kernel(self) -> Kernel:
        return Kernel(plugins=[Tone])

    @pytest.fixture
    def goal(self) -> str:
        return "Shout hey."


FAULTS = KnownFaults(
    Contract,
    lambda planner: {"kernel": lambda: Kernel(plugins=[Tone]), "goal": lambda: "Shout hey."},
    attributes=lambda planner: {"made": planner},
    beyond=PlannerKit,
)


@FAULTS.caught_by("instructions_and_sampling_are_the_application_s", "the instructions are not at the end")
class ForgetsItsInstructions(Writer):
    def messages(self, task, manual):
        return [Message.of("system", manual), *super().messages(task, manual)[1:]]


@FAULTS.caught_by("instructions_and_sampling_are_the_application_s")
class ForgetsItsSampling(Writer):
    def __init__(self, chat, **settings):
        super().__init__(chat, **{key: value for key, value in settings.items() if key != "seed"})


@FAULTS.caught_by("what_asking_cost_is_told")
class DoesNotTellWhatItCost(Writer):
    async def propose(self, task, *, emit):
        return await super().propose(task, emit=lambda event: None)


@FAULTS.caught_by("a_reply_that_cannot_be_used_goes_back_with_what_is_wrong", "It is no call")
class GivesUpAtOnce(Writer):
    async def read(self, task, request, emit):
        try:
            return self.meant(task, (await ask(self.chat, request, emit)).text)
        except ReplyProblem as error:
            raise PlanError(str(error)) from error


@FAULTS.caught_by("a_reply_that_cannot_be_used_goes_back_with_what_is_wrong")
class TakesHalfAReply(Writer):
    async def read(self, task, request, emit):
        reply = await ask(self.chat, request, emit, cut=True)
        try:
            return self.meant(task, reply.text)
        except ReplyProblem:
            return await super().read(task, request, emit)


@FAULTS.caught_by("repairs_are_bounded_and_the_last_problem_is_in_the_error")
class RepairsForEver(Writer):
    def __init__(self, chat, *, repairs=2, **settings):
        super().__init__(chat, repairs=repairs + 9, **settings)


@FAULTS.caught_by("what_the_service_raises_comes_through", "It did not work: down")
class HidesWhatTheServiceRaises(Writer):
    async def propose(self, task, *, emit):
        try:
            return await super().propose(task, emit=emit)
        except Exception as error:
            raise PlanError(f"It did not work: {error}") from error


@FAULTS.caught_by("without_functions_no_model_is_asked", "a model was asked")
class AsksWithoutFunctions(Writer):
    async def propose(self, task, *, emit):
        await ask(self.chat, ChatRequest((Message.of("user", "Are you there?"),)), emit)
        return await super().propose(task, emit=emit)


@FAULTS.caught_by("an_infeasible_goal_says_when_functions_had_no_room_in_the_manual", "Nobody can")
class KeepsQuietOnFunctionsWithoutRoom(Writer):
    async def propose(self, task, *, emit):
        proposal = await super().propose(task, emit=emit)
        return Infeasible("Nobody can.") if isinstance(proposal, Infeasible) else proposal


@FAULTS.caught_by(
    "of_thousands_of_functions_those_that_the_goal_speaks_of_are_told", "4,000 functions made the prompt .* longer"
)
class TellsOfAllFunctions(Writer):
    def __init__(self, chat, *, manual_tokens=0, **settings):
        super().__init__(chat, manual_tokens=None, **settings)


@FAULTS.caught_by(
    "of_thousands_of_functions_those_that_the_goal_speaks_of_are_told",
    "none of the functions that the goal speaks of is told",
)
class TellsOfTheFirstFunctions(Writer):
    async def propose(self, task, *, emit):
        return await super().propose(replace(task, functions=task.functions[:40]), emit=emit)


@FAULTS.caught_by("a_refused_plan_is_shown_with_what_was_found_errors_first", "a mere hint; a grave error")
class MixesHintsWithErrors(Writer):
    def refused(self, refusal):
        return [
            Message.of("assistant", "A plan."),
            Message.of("user", "; ".join(finding.message for finding in refusal.findings)),
        ]


@FAULTS.caught_by("a_plan_that_fails_again_and_again_is_given_up", "DID NOT RAISE")
class ForgetsHowOftenItTried(Writer):
    async def propose(self, task, *, emit):
        return await super().propose(replace(task, notes=None), emit=emit)


@FAULTS.caught_by("many_large_results_do_not_fill_the_prompt", "100 results made the prompt .* longer")
class ShowsResultsWhole(Writer):
    shown = 1_000_000


@FAULTS.caught_by("what_comes_from_outside_opens_no_message_and_makes_no_lines", "it makes lines of its own")
class ShowsResultsAsTheyAre(Writer):
    def data(self, value):
        return str(value)[:300]


@FAULTS.caught_by("what_comes_from_outside_opens_no_message_and_makes_no_lines")
class CutsTheGoal(Writer):
    def messages(self, task, manual):
        return super().messages(replace(task, goal=task.goal[:20]), manual)


@FAULTS.caught_by("whatever_the_goal_and_the_input_are_the_prompt_has_its_form")
class StripsTheGoal(Writer):
    def messages(self, task, manual):
        return super().messages(replace(task, goal=task.goal.strip()), manual)


class TestTheWholePlanKit(KitOfAKit):
    faults = FAULTS
    correct = (Writer,)
