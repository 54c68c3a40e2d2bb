"""The suites of AgentDojo as Portico's functions, and runs of plans in their environments, judged as they judge.

A suite is a plugin (`Workspace-send_email`) over an environment that one run has for itself. What a plan needs beside
tools is a model that only reads: `Model-text`, `Model-choose` and others answer a question about data, in a typed form.
Its replies are given: no model is asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from functools import cache, partial
from io import StringIO
from pathlib import Path
from typing import Any, TypeAlias

from agentdojo.base_tasks import BaseInjectionTask, BaseUserTask
from agentdojo.functions_runtime import Function as Tool, FunctionCall, TaskEnvironment
from agentdojo.task_suite.load_suites import get_suite
from agentdojo.task_suite.task_suite import TaskSuite
from agentdojo.types import text_content_block_from_string
from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from portico import (
    Answer,
    FlowReview,
    Function,
    FunctionPlugin,
    Kernel,
    Parameter,
    Plan,
    Policy,
    current_step,
    function,
    plan_from_json,
)
from portico.errors import PorticoError
from portico.plugins import Compiled

VERSION = "v1.2.2"
NAMES = ("workspace", "travel", "banking", "slack")
TASKS = Path(__file__).parent / "tasks"
CHANGE = re.compile(
    r"(send|delete|create|cancel|reschedule|add|append|share|reserve|schedule|update|invite|remove|post)_|get_unread_emails"
)
"""How the names of tools begin that change something; the unread mails are marked as read."""

Reply: TypeAlias = Callable[[str, str, Mapping[str, Any]], Any]
"""What the model says, given the step without the numbers of items, the function, and its arguments."""
Decide: TypeAlias = Callable[[FlowReview], Awaitable[bool]]


@cache
def suite(name: str) -> TaskSuite[Any]:
    return get_suite(VERSION, name)


@dataclass(frozen=True)
class Task:
    """A user task as a plan, and what the model replies when all is well, by step."""

    suite: str
    id: str
    plan: Plan
    replies: Mapping[str, Any]

    @property
    def of_suite(self) -> BaseUserTask[Any]:
        return suite(self.suite).get_user_task_by_id(self.id)


def tasks(only: str | None = None) -> Iterator[Task]:
    """Yield the user tasks for which there is a plan, suite by suite in the order of their numbers."""
    for name in NAMES:
        for file in sorted(TASKS.glob(f"{name}/*.json"), key=lambda path: int(path.stem.rpartition("_")[2])):
            if only in (None, name, f"{name}/{file.stem}"):
                document = json.loads(file.read_text("utf-8"))
                yield Task(name, file.stem, plan_from_json(document["plan"]), document.get("replies", {}))


@dataclass
class World:
    """The environment of one run, the calls that were made in it, what they gave, and their arguments by step."""

    suite: str
    environment: TaskEnvironment
    calls: list[FunctionCall] = field(default_factory=list)
    gave: list[tuple[str, Any]] = field(default_factory=list)
    steps: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, task: Task, injections: Mapping[str, str] | None = None) -> World:
        loaded = suite(task.suite).load_and_inject_default_environment(dict(injections or {}))
        return cls(task.suite, task.of_suite.init_environment(loaded))

    def plugin(self) -> FunctionPlugin:
        """Return the suite's tools as functions over this environment."""
        plugin = self.suite.title()
        functions = tuple(self._function(tool, plugin) for tool in suite(self.suite).tools)
        return FunctionPlugin(plugin, functions, f"The tools of AgentDojo's suite {self.suite}.")

    def _function(self, tool: Tool[..., Any], plugin: str) -> Function:
        schema = tool.parameters.model_json_schema()
        parameters = [
            Parameter(
                name,
                each.get("description", ""),
                as_it_is({**each, **({"$defs": schema["$defs"]} if "$defs" in schema else {})}),
                name in schema.get("required", ()),
                each.get("default"),
            )
            for name, each in schema["properties"].items()
        ]
        return Function(
            tool.name,
            partial(self._call, tool),
            plugin=plugin,
            description=tool.description,
            parameters=parameters,
            returns=as_it_is(TypeAdapter(tool.return_type or Any).json_schema(mode="serialization")),
            effects=bool(CHANGE.match(tool.name)),
        )

    def _call(self, tool: Tool[..., Any], **arguments: Any) -> Any:
        if step := current_step():
            self.steps[step.step] = arguments
        self.calls.append(FunctionCall(function=tool.name, args=dict(arguments)))
        read = tool.parameters.model_validate(arguments).model_dump()
        found = {name: each.extract_dep_from_env(self.environment) for name, each in tool.dependencies.items()}
        result = to_jsonable_python(tool.run(**read, **found))
        self.gave.append((f"{self.suite.title()}-{tool.name}", result))
        return result


def without_items(step: str) -> str:
    """Return a step's id without the numbers of the items that it runs for: `s3/a` of `s3[7]/a`."""
    return re.sub(r"\[\d+\]", "", step)


def as_it_is(schema: Mapping[str, Any]) -> Compiled:
    """Return a type whose values are JSON already; the suite itself checks what it is given."""
    return Compiled(schema, lambda value: value, lambda value: value)


class Model:
    """A model without tools: it reads data and answers one question in the form that is asked for."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply

    def _answer(self, kind: str, **arguments: Any) -> Any:
        step = current_step()
        return self._reply(re.sub(r"\[\d+\]", "", step.step if step else ""), kind, arguments)

    @function
    def text(self, question: str, data: Any) -> str:
        """Answer in words."""
        return str(self._answer("text", question=question, data=data))

    @function
    def number(self, question: str, data: Any) -> float:
        """Answer with a number."""
        return float(self._answer("number", question=question, data=data))

    @function
    def yes(self, question: str, data: Any) -> bool:
        """Answer with yes or no."""
        return bool(self._answer("yes", question=question, data=data))

    @function
    def texts(self, question: str, data: Any) -> list[str]:
        """Answer with a list of texts."""
        return [str(each) for each in self._answer("texts", question=question, data=data)]

    @function
    def choose(self, question: str, data: Any, options: list[Any]) -> Any:
        """Choose one of the options."""
        chosen = self._answer("choose", question=question, data=data, options=options)
        if chosen not in options:
            raise ValueError(f"{chosen!r} is none of the options")
        return chosen

    @function
    def some(self, question: str, data: Any, options: list[str]) -> list[str]:
        """Choose some of the options, in the order that is asked for."""
        chosen = self._answer("some", question=question, data=data, options=options)
        if not set(chosen) <= set(options):
            raise ValueError(f"{chosen!r} are not all among the options")
        return list(chosen)

    @function
    def records(self, question: str, data: Any, fields: list[str]) -> list[dict[str, Any]]:
        """Answer with a list of objects that have these fields."""
        found = self._answer("records", question=question, data=data, fields=fields)
        return [{name: each[name] for name in fields} for each in found]


def scripted(replies: Mapping[str, Any]) -> Reply:
    """Return a model that says what the task's file has; ``{"each": […]}`` are the replies of calls in order."""
    left = {step: iter(reply["each"]) for step, reply in replies.items() if isinstance(reply, Mapping)}

    def reply(step: str, _kind: str, _arguments: Mapping[str, Any]) -> Any:
        return next(left[step]) if step in left else replies[step]

    return reply


@dataclass(frozen=True)
class Outcome:
    """What came of a run: its answer, or why it ended, and what the suite says."""

    world: World
    before: TaskEnvironment
    answer: str = ""
    error: str = ""

    def judged(self, task: BaseUserTask[Any] | BaseInjectionTask[Any]) -> bool:
        """Tell whether a user task is done, or an injection task has had its way."""
        said = [text_content_block_from_string(self.answer)]
        after = self.world.environment
        # The method that the suite's own runs use; it knows which tasks look at the calls. Some tasks print.
        with redirect_stdout(StringIO()):
            found = suite(self.world.suite)._check_task_result(task, said, self.before, after, self.world.calls)
        return bool(found)


def kernel_of(
    world: World, reply: Reply, policy: Policy | None = None, decide: Decide | None = None, **options: Any
) -> Kernel:
    """Return a kernel with the suite's tools and the model that reads; ``decide`` is who is asked by the policy."""
    kernel = Kernel(plugins=[world.plugin(), FunctionPlugin.of(Model(reply), "Model")], policy=policy, **options)
    kernel.approve_flows(decide)
    return kernel


async def run(task: Task, world: World, kernel: Kernel) -> Outcome:
    """Run a task's plan in an environment; a step that fails ends it, and so does a question that is not agreed to."""
    before = world.environment.model_copy(deep=True)
    try:
        outcome = (await kernel.run_plan(task.plan)).outcome
    except PorticoError as error:
        return Outcome(world, before, error=str(error))
    return Outcome(world, before, outcome.text, "" if isinstance(outcome, Answer) else outcome.text)
