"""The Handlebars strategy: a model writes the whole plan as one template, which the loop renders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from portico import FunctionSpec, Message
from portico.errors import LimitExceeded, TemplateError
from portico.plans import (
    Answer,
    Asking,
    Emit,
    Expression,
    FittedFunctions,
    From,
    Infeasible,
    Plan,
    PlanTemplate,
    ReplyProblem,
    Step,
    Task,
    Value,
)
from portico.plugins import Services
from portico.ports import ChatService, TemplateLanguage
from portico_templates.planner._checks import template_problems
from portico_templates.planner._manual import helper_manual
from portico_templates.planner._prompt import failed_template, messages_for, repair
from portico_templates.planner._reply import Written, read_reply
from portico_templates.planner.config import HandlebarsPlannerSettings

_LANGUAGE = "handlebars"


class HandlebarsPlanner:
    """Reach a goal with one Handlebars template, written by a model, whose helpers are the functions.

    >>> from portico.plans import From
    >>> HandlebarsPlanner.name
    'handlebars'

    The plan has one step, a template; the loop renders it, and each call in it is a step of its own in the journal.
    A reply that is no usable template goes back to the model with what is wrong, ``repairs`` times; then it is a
    ``PlanError``. A template that failed half-way is followed by another one, ``replans`` times, in which the results
    that there are stand as variables. A model that says that it cannot makes the goal infeasible.
    """

    name = "handlebars"
    asks_model = True

    def __init__(self, settings: HandlebarsPlannerSettings, services: Services) -> None:
        self._settings = settings
        self._services = services

    async def propose(self, task: Task, *, emit: Emit) -> Plan | Answer | Infeasible:
        """Ask the model for a template; raises ``PlanError`` when it writes none that can be used."""
        task.require_functions()
        settings = self._settings
        number = task.plan_number(replans=settings.replans)
        fitted = FittedFunctions.of(task.functions, task.goal, tokens=settings.manual_tokens, write=helper_manual)
        arguments = _arguments(task)
        messages = messages_for(
            task,
            fitted.text,
            allow_loops=settings.allow_loops,
            instructions=settings.instructions,
            variables={name: _value(expression, task) for name, expression in arguments.items()},
        )
        written = await self._written(task, messages, arguments, emit)
        if isinstance(written, Infeasible):
            return fitted.explain(written)
        step = Step(next(task.fresh_ids()), PlanTemplate(written.source, _LANGUAGE), arguments)
        notes: dict[str, Any] = {"plan": number}
        if written.recovered:
            notes["recovered"] = list(written.recovered)
        return Plan(task.goal, (step,), From(step.id), notes)

    async def _written(
        self, task: Task, messages: list[Message], arguments: Mapping[str, Expression], emit: Emit
    ) -> Written | Infeasible:
        settings = self._settings
        chat = self._services.get(ChatService, settings.chat)
        language = self._services.get(TemplateLanguage, _LANGUAGE)
        catalogue = {spec.name: spec for spec in task.functions}
        request = Asking.request(messages, settings)

        def read(text: str) -> Written | Infeasible:
            written = read_reply(text)
            if isinstance(written, Written):
                self._check(written.source, language, arguments, catalogue)
            return written

        written, _ = await Asking.until_usable(chat, request, emit, read=read, repair=repair, repairs=settings.repairs)
        return written

    def _check(
        self,
        source: str,
        language: TemplateLanguage,
        arguments: Mapping[str, Expression],
        catalogue: Mapping[str, FunctionSpec],
    ) -> None:
        try:
            template = language.compile(source, name="plan")
        except (TemplateError, LimitExceeded) as error:
            raise ReplyProblem(str(error)) from error
        loops = self._settings.allow_loops
        problems = list(template_problems(source, template, arguments, catalogue, allow_loops=loops))
        if problems:
            raise ReplyProblem("\n".join(f"- {problem}" for problem in problems))


def _arguments(task: Task) -> dict[str, Expression]:
    """Return the variables that the template has: the input, and the results of what was done."""
    arguments: dict[str, Expression] = {}
    if task.input is not None:
        arguments["input"] = From("input")
    _, children = failed_template(task)
    done: list[Expression] = [From(record.step.id) for record in task.own_steps if record.error is None]
    # A call inside of a step is no step that a plan could refer to.
    done += [Value(record.result) for record in children]
    return arguments | {f"done{number}": expression for number, expression in enumerate(done, 1)}


def _value(expression: Expression, task: Task) -> Any:
    if isinstance(expression, Value):
        return expression.value
    if expression == From("input"):
        return task.input
    return task.result_of(expression.step) if isinstance(expression, From) else None
