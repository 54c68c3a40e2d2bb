"""Plans: making, checking, reading, writing and running them, and helpers for planners."""

from __future__ import annotations

from typing import TYPE_CHECKING

from portico._lazy import lazy_names

if TYPE_CHECKING:
    from portico._planning.asking import (
        AnswerWords as AnswerWords,
        ask as ask,
        ask_streamed as ask_streamed,
        ask_until_usable as ask_until_usable,
        ReplyProblem as ReplyProblem,
        said_before as said_before,
        sampled_request as sampled_request,
        whole as whole,
    )
    from portico._planning.model_calls import (
        arguments_given as arguments_given,
        call_step as call_step,
        fresh_ids as fresh_ids,
        given_up as given_up,
        object_in as object_in,
        own_steps as own_steps,
        plan_number as plan_number,
        same_at_the_end as same_at_the_end,
        step_faults as step_faults,
    )
    from portico._planning.prompts import (
        as_data as as_data,
        as_text as as_text,
        fit_rounds as fit_rounds,
        fitted_manual as fitted_manual,
        FittedManual as FittedManual,
        one_line as one_line,
        require_functions as require_functions,
        Round as Round,
        shape as shape,
        shortened as shortened,
        signatures as signatures,
        told_of as told_of,
    )
    from portico._plans.check import (
        check_plan as check_plan,
        path_problem as path_problem,
    )
    from portico._plans.difference import plan_difference as plan_difference
    from portico._plans.findings import (
        apply_fixes as apply_fixes,
        Finding as Finding,
    )
    from portico._plans.functions import (
        plan_function as plan_function,
        plan_of as plan_of,
        plans_of as plans_of,
    )
    from portico._plans.json_form import (
        plan_from_json as plan_from_json,
        plan_to_json as plan_to_json,
    )
    from portico._plans.plan import (
        evaluate as evaluate,
        Expression as Expression,
        From as From,
        functions_used as functions_used,
        INPUT as INPUT,
        JsonPath as JsonPath,
        ListOf as ListOf,
        ObjectOf as ObjectOf,
        parse_path as parse_path,
        Plan as Plan,
        PlanTemplate as PlanTemplate,
        print_path as print_path,
        references as references,
        Step as Step,
        TextOf as TextOf,
        Value as Value,
    )
    from portico._plans.reuse import (
        find_plan as find_plan,
        saved_plan as saved_plan,
        Stale as Stale,
        stale_functions as stale_functions,
    )
    from portico._plans.task import (
        Answer as Answer,
        Budget as Budget,
        ChatUsed as ChatUsed,
        Emit as Emit,
        Event as Event,
        Infeasible as Infeasible,
        PlanHeld as PlanHeld,
        PlanReused as PlanReused,
        Proposed as Proposed,
        Refusal as Refusal,
        Refused as Refused,
        Resumed as Resumed,
        Started as Started,
        StepFailure as StepFailure,
        StepFinished as StepFinished,
        StepHeld as StepHeld,
        StepRecord as StepRecord,
        StepRetried as StepRetried,
        StepStarted as StepStarted,
        StepUncertain as StepUncertain,
        Task as Task,
        TextDelta as TextDelta,
        Warned as Warned,
    )
    from portico._plans.text_form import (
        input_in_words as input_in_words,
        plan_to_mermaid as plan_to_mermaid,
        plan_to_text as plan_to_text,
    )
    from portico._plans.xml_form.reading import (
        plan_from_xml as plan_from_xml,
        plan_to_xml as plan_to_xml,
        read_plan as read_plan,
        XmlPlan as XmlPlan,
    )
    from portico._runs.checking import checked as checked
    from portico._runs.loop import (
        Offer as Offer,
        Offers as Offers,
    )
    from portico._runs.outcome import (
        answer_of as answer_of,
        checked_run as checked_run,
    )
    from portico._runs.runners import require_jobs as require_jobs
    from portico._runs.submitting import (
        job_handlers as job_handlers,
        JobHandler as JobHandler,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)
