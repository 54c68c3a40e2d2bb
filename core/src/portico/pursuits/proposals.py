"""The JSON form of a proposal, as a runner records it, and the digest of the task that it was made for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any, TypeAlias

from portico.chat import Usage
from portico.errors import PlanFormatError, StoreDamaged, StoreError
from portico.plans.json_form import plan_from_json, plan_to_json
from portico.plans.plan import Plan
from portico.plans.task import Answer, ChatUsed, Infeasible, Refusal, Task, Warned
from portico.pursuits.journal import refusal_body
from portico.pursuits.outcome import outcome_body, outcome_of

__all__ = ["PROPOSAL_VERSION", "Proposal", "Said", "digest_of", "proposal_from_json", "proposal_to_json"]

PROPOSAL_VERSION = 1
_DIGITS = 32

Proposal: TypeAlias = Plan | Answer | Infeasible
Said: TypeAlias = ChatUsed | Warned
"""What a planner says that counts after it has proposed; all else that it says is for who watches."""

_OTHER = (LookupError, TypeError, ValueError, AttributeError, RecursionError, PlanFormatError)


def proposal_to_json(proposal: object, said: Collection[Said] = ()) -> dict[str, Any] | None:
    """Return a proposal with what its planner said; None where JSON would not give it back as it is, or it is none.

    >>> proposal_to_json(Infeasible("no map", ("maps",)))
    {'version': 1, 'outcome': {'kind': 'infeasible', 'reason': 'no map', 'missing': ['maps']}}

    Values are copied. A plan that could not be read back is refused by its check, with the findings that say why.
    """
    if not isinstance(proposal, Plan | Answer | Infeasible):
        return None
    try:
        document: dict[str, Any] = json.loads(json.dumps(_document(proposal, said), allow_nan=False))
        return document if proposal_from_json(document) == (proposal, tuple(said)) else None
    except (*_OTHER, StoreError):
        return None


def proposal_from_json(document: Any) -> tuple[Proposal, tuple[Said, ...]]:
    """Read a proposal and what its planner said.

    Raises ``StoreDamaged`` for anything that `proposal_to_json` does not write and ``StoreError`` for a newer version.
    """
    try:
        version = document["version"]
        if type(version) is int and version > PROPOSAL_VERSION:
            raise StoreError(
                f"The runner has a proposal of version {version}; this is a Portico that knows version "
                f"{PROPOSAL_VERSION}. Use the newer one."
            )
        proposal = plan_from_json(document["plan"]) if "plan" in document else outcome_of(document["outcome"])
        if proposal is None:
            raise ValueError("it is neither a plan nor an outcome")
        said = tuple(_said(each) for each in document.get("said", ()))
        if _sorted(_document(proposal, said)) != _sorted(document):
            raise ValueError("it is not as it was written")
    except _OTHER as error:
        raise StoreDamaged(f"What the runner recorded is no proposal: {error!r}.") from error
    return proposal, said


def _document(proposal: Proposal, said: Collection[Said]) -> dict[str, Any]:
    document: dict[str, Any] = {"version": PROPOSAL_VERSION}
    document |= {"plan": plan_to_json(proposal)} if isinstance(proposal, Plan) else {"outcome": outcome_body(proposal)}
    told = [asdict(event) for event in said]
    return {**document, "said": told} if told else document


def _sorted(document: Any) -> str:
    return json.dumps(document, allow_nan=False, sort_keys=True)


def _said(each: Mapping[str, Any]) -> Said:
    return Warned(**each) if "warning" in each else ChatUsed(**{**each, "usage": Usage(**each["usage"])})


def digest_of(task: Task, planner: str) -> str | None:
    """Return a digest of what a planner is given; None where something of it is not JSON.

    Equal digests mean the same state, in any process: the seconds that are left are not part of it, nor are the
    refusals that are left, of which every process has its own. A context that is not JSON may be anything.
    """
    budget = task.budget
    given = {field.name: getattr(task, field.name) for field in fields(task) if field.name != "budget"}
    given |= {"planner": planner, "proposals": budget.proposals, "steps_left": budget.steps}
    try:
        text = json.dumps(given, allow_nan=False, sort_keys=True, default=_plain)
    except (TypeError, ValueError, RecursionError):
        return None
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _plain(value: Any) -> Any:
    if isinstance(value, Refusal):
        return refusal_body(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value) if field.compare}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, frozenset):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
