"""Plans: making, checking, reading, writing and running them, and helpers for planners."""

from __future__ import annotations

from typing import TYPE_CHECKING

from portico._lazy import lazy_names

if TYPE_CHECKING:
    from portico._planning.asking import AnswerWords as AnswerWords, Asking as Asking
    from portico._planning.model_calls import ModelCall as ModelCall
    from portico._planning.prompts import FittedFunctions as FittedFunctions, PromptText as PromptText, Round as Round
    from portico._plans.check import check_plan as check_plan, path_problem as path_problem
    from portico._plans.difference import plan_difference as plan_difference
    from portico._plans.findings import Finding as Finding
    from portico._plans.functions import plan_function as plan_function, plan_of as plan_of
    from portico._plans.json_form import plan_from_json as plan_from_json, plan_to_json as plan_to_json
    from portico._plans.plan import (
        INPUT as INPUT,
        ITEM as ITEM,
        Each as Each,
        Expression as Expression,
        From as From,
        ListOf as ListOf,
        ObjectOf as ObjectOf,
        Plan as Plan,
        PlanTemplate as PlanTemplate,
        Step as Step,
        TextOf as TextOf,
        Value as Value,
        When as When,
        evaluate as evaluate,
        references as references,
    )
    from portico._plans.reuse import Stale as Stale
    from portico._plans.task import (
        Answer as Answer,
        Budget as Budget,
        Emit as Emit,
        Event as Event,
        Infeasible as Infeasible,
        Refusal as Refusal,
        RunEvent as RunEvent,
        StepRecord as StepRecord,
        Task as Task,
    )
    from portico._plans.text_form import plan_to_mermaid as plan_to_mermaid, plan_to_text as plan_to_text
    from portico._plans.xml_form.reading import XmlPlan as XmlPlan
    from portico._tool_loop.structured import ReplyProblem as ReplyProblem
else:
    __getattr__, __dir__ = lazy_names(__name__)
