"""What is said to the model: the functions, the goal, what was done so far, and what was wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from portico import Message
from portico.plans import Asking, Plan, PromptText, Refusal, StepRecord, Task, plan_to_json
from portico_structured_planner.steps import StepForm

_RULES = """\
You make a plan that reaches a goal by calling functions, one call at a time. You only write the plan: the calls run
later. Answer with one JSON object {"next": …} and nothing else. What stands under "next" is one of these:
"""
_CALL = '{"function": NAME, %s"arguments": {…}} calls a function.'
_FINISH = (
    '{"function": "%s", "result": {"from": "s2", "path": "$"}} ends the plan; the result is what the goal asks for. '
    "End as soon as the steps give it."
)
_GIVE_UP = (
    '{"function": "%s", "reason": "…", "missing": ["…"]} says that these functions cannot reach the goal, '
    "and what is missing."
)
_ARGUMENTS = """\
Each argument is one of these:
- {"value": …} is a value that the goal itself gives.
- {"from": "s1", "path": "$.date"} is a reference: what the step s1 gives, or one place in it ("$" is the whole).
- {"text": ["Dear ", {"from": "s1", "path": "$"}]} is a text put together.
- null leaves out an argument that may be left out.
What an earlier step gives is referred to, never guessed."""
_COLLECTIONS = """
- {"list": [ARGUMENT, …]} and {"object": {"name": ARGUMENT, …}} have references in them."""
_MOST = 1_500
_MOST_FAULTS = 12


def opening(task: Task, spec: str, form: StepForm, *, held: bool, reasons: bool) -> list[Message]:
    """Return the beginning of the conversation: the system's words, then the goal and what was done for it."""
    call = _CALL % ('"reason": "why this step", ' if reasons else "")
    ends = [_FINISH % form.finish, *([_GIVE_UP % form.give_up] if form.rules.give_up else [])]
    arguments = _ARGUMENTS if held else _ARGUMENTS.replace("\n- null", f"{_COLLECTIONS}\n- null")
    system = f"{_RULES}- " + "\n- ".join([call, *ends]) + f"\n{arguments}\n\nThe functions:\n{spec}"
    parts = [f"The goal: {task.goal}"]
    if task.input is not None:
        parts.append(
            f'The goal comes with an input. A reference to it is {{"from": "input", "path": "$"}}. '
            f"It is {_shown(task.input)}"
        )
    parts += [*_done(task.steps), *_refused(task.refused)]
    parts.append("What is the next step?" if task.steps else "What is the first step?")
    return [Message.of("system", system), Message.of("user", "\n\n".join(parts))]


def after_step(reply: str, id: str, returns: Mapping[str, Any], *, last: bool) -> list[Message]:
    """Return the reply that became a step, and what is said of it."""
    then = "No more calls fit into this plan: end it." if last else "What is the next step?"
    return [
        Message.of("assistant", reply),
        Message.of("user", f"This is the step {id}. It gives: {PromptText.shape(returns)}\n{then}"),
    ]


def faulty(reply: str, faults: Sequence[str]) -> list[Message]:
    """Return a reply that is no step, and why."""
    shown = "\n".join(f"- {fault}" for fault in faults[:_MOST_FAULTS])
    return [
        Asking.message(reply, _MOST),
        Message.of("user", f"That is no valid step:\n{shown}\nWrite this step again, as one JSON object."),
    ]


def _shown(value: Any) -> str:
    """Show a JSON value, the beginning of a long one."""
    return _short(PromptText.line(value))


def _done(records: Iterable[StepRecord]) -> Iterable[str]:
    for record in records:
        if "/" in record.step.id:
            continue
        (written,) = plan_to_json(Plan("", (record.step,)))["steps"]
        call = _shown({key: written[key] for key in ("function", "arguments") if key in written})
        if record.error is None:
            yield f"The step {record.step.id} has run: {call}\nIt gave: {_shown(record.result)}"
        else:
            yield f"The step {record.step.id} failed: {call}\nThe error: {_shown(record.error)}"


def _refused(refusals: Iterable[Refusal]) -> Iterable[str]:
    for refusal in refusals:
        faults = "\n".join(f"- {finding}" for finding in refusal.findings[:_MOST_FAULTS])
        steps = _shown(plan_to_json(refusal.plan)["steps"])
        yield f"This plan was refused: {steps}\nThe reasons:\n{faults}"


def _short(text: str) -> str:
    return text if len(text) <= _MOST else f"{text[:_MOST]}…"
