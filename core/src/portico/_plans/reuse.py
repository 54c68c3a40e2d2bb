"""Saved plans: finding one for a goal, and whether its functions have changed since."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from portico._plans.json_form import plan_from_json, plan_to_json
from portico._plans.saved import SavedPlan
from portico._ports.plan_store import PlanStore
from portico._schema.definitions import with_definitions
from portico.errors import PlanFormatError, StoreDamaged

if TYPE_CHECKING:
    from portico._functions.functions import FunctionSpec
    from portico._plans.plan import Plan

_WORDS = frozenset({"description", "title", "examples", "$comment"})
"""Keywords that are for people: a plan does not rest on them."""
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
"""Keywords whose argument is an object of schemas: its keys are no keywords."""
_DATA = frozenset({"const", "default", "enum", "required"})
_READ_APART = frozenset({"properties", "required", "$defs", "type"})
_LENGTH = 8
PIN = "pin="
"""How a tag begins that stands for all that the owner of a function says of it."""


@dataclass(frozen=True, slots=True)
class Stale:
    """A function that changed after a plan was written; ``changes`` are sentences that say how.

    A ``harmful`` change stops a plan that fits: the function has effects now, or a pinned one is described otherwise.

    >>> print(Stale("Weather-forecast", ("the parameter 'days' is new and needed", "its result changed")))
    Weather-forecast: the parameter 'days' is new and needed; its result changed
    """

    function: str
    changes: tuple[str, ...]
    harmful: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        return f"{self.function}: {'; '.join(self.changes)}"

    @staticmethod
    def of(plan: Plan, catalogue: Mapping[str, FunctionSpec]) -> tuple[Stale, ...]:
        """Return the functions that changed or are gone since the plan was written.

        A plan without fingerprints is never stale.
        """
        found: list[Stale] = []
        for name, recorded in plan.fingerprints.items():
            spec = catalogue.get(name)
            if spec is None:
                found.append(Stale(name, ("it is gone",)))
                continue
            before, now = _read(recorded), _read(fingerprint(spec))
            if before != now:
                harmful = (spec.effects and before.get("e") == 0) or before.get("d") != now.get("d")
                found.append(Stale(name, tuple(_changes(before, now)), harmful))
        return tuple(found)


def fingerprint(spec: FunctionSpec) -> str:
    """Return a short text with a digest of each part of a function that plans depend on.

    >>> from portico import FunctionSpec
    >>> spec = FunctionSpec("f", "", {"properties": {"city": {"type": "string"}}, "required": ["city"]}, {})
    >>> fingerprint(spec)
    '{"e": 0, "p": {"city": "!38a346ca"}, "r": "44136fa3"}'

    ``p`` are the parameters, required ones with ``!``; ``r`` is the result, ``e`` whether it has effects, and ``o`` the
    other rules for the arguments, if there are any. Descriptions and titles do not count, unless a tag ``pin=…`` says
    what stands for all that the function's owner says of it: ``d``.
    """
    parameters = spec.parameters
    definitions = parameters.get("$defs", {})
    required = parameters.get("required", ())
    rest = {key: value for key, value in parameters.items() if key not in _READ_APART}
    if rest.get("additionalProperties") is False:
        del rest["additionalProperties"]
    body: dict[str, Any] = {
        "p": {
            name: ("!" if name in required else "") + _digest(_add_definitions(schema, definitions))
            for name, schema in parameters.get("properties", {}).items()
        },
        "r": _digest(spec.returns),
        "e": int(spec.effects),
    }
    if pinned := next((tag for tag in spec.tags if tag.startswith(PIN)), ""):
        body["d"] = pinned.removeprefix(PIN)
    if _plain(rest):
        body["o"] = _digest(_add_definitions(rest, definitions))
    return json.dumps(body, ensure_ascii=False, sort_keys=True)


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    if not before:
        yield "it changed"
        return
    old, new = before["p"], now["p"]
    for name in dict.fromkeys([*new, *old]):
        if name not in old:
            yield f"the parameter {name!r} is new" + (" and needed" if new[name].startswith("!") else "")
        elif name not in new:
            yield f"the parameter {name!r} is gone"
        elif old[name] != new[name]:
            yield f"the parameter {name!r} changed"
    if before.get("o") != now.get("o"):
        yield "the rules for its arguments changed"
    if before["r"] != now["r"]:
        yield "its result changed"
    if before.get("d") != now.get("d"):
        yield "its description changed"
    if before["e"] != now["e"]:
        yield "it has effects now" if now["e"] else "it has no effects any more"


def _read(text: str) -> Mapping[str, Any]:
    """Read a fingerprint; an empty object for a text that is none, as of another version."""
    try:
        body = json.loads(text)
        return body if {"p", "r", "e"} <= body.keys() and isinstance(body["p"], dict) else {}
    except (AttributeError, RecursionError, ValueError):
        return {}


def _digest(schema: Any) -> str:
    text = json.dumps(_plain(schema), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_LENGTH]


def _plain(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _NAMED and isinstance(value, Mapping):
            plain[key] = {name: _plain(each) for name, each in value.items()}
        elif key not in _WORDS:
            plain[key] = value if key in _DATA else _plain(value)
    return plain


def _add_definitions(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """Return a schema with the definitions that it refers to, directly or through others."""
    reached: dict[str, Any] = {}
    ahead: list[Any] = [schema]
    while ahead:
        part = ahead.pop()
        if isinstance(part, list):
            ahead += part
        elif isinstance(part, Mapping):
            name = str(part.get("$ref")).removeprefix("#/$defs/")
            if name in definitions and name not in reached:
                reached[name] = definitions[name]
                ahead.append(definitions[name])
            ahead += part.values()
    return with_definitions(schema, reached) if reached else schema


@dataclass(frozen=True, slots=True)
class FoundPlan:
    """A plan that was saved for a goal, and which of its functions changed since."""

    plan: Plan
    saved: SavedPlan
    stale: tuple[Stale, ...] = ()


def catalogue_hash(specs: Iterable[FunctionSpec]) -> str:
    """Return a hash of all functions: equal in every process and in any order, another when any of them changes.

    >>> catalogue_hash([])
    'e3b0c44298fc1c149afbf4c8996fb924'

    Names, parameters, results and effects count; descriptions do not, so that a better text keeps all saved plans.
    """
    lines = sorted(f"{spec.name}\0{fingerprint(spec)}\n" for spec in specs)
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def saved_plan(
    goal: str,
    plan: Plan,
    specs: Mapping[str, FunctionSpec],
    *,
    planner: str = "",
    called: Iterable[str] = (),
    at: datetime | None = None,
) -> SavedPlan:
    """Return a plan as a store keeps it, under ``goal``, with a fingerprint of each function that it uses.

    ``called`` are functions that its templates call. Raises ``ValueError`` for a blank goal and for a plan without a
    result, and ``PlanFormatError`` for values that JSON does not have.
    """
    if not goal.strip():
        raise ValueError("the goal is blank: nothing would find the plan")
    if plan.result is None:
        raise ValueError("a plan without a result answers nothing: it cannot be used again")
    used = sorted({*plan.functions_used, *called})
    prints = {name: fingerprint(specs[name]) for name in used if name in specs}
    when = datetime.now(UTC) if at is None else at.astimezone(UTC)
    return SavedPlan(
        goal=goal.strip(),
        catalogue=catalogue_hash(specs.values()),
        plan=plan_to_json(replace(plan, fingerprints={**plan.fingerprints, **prints})),
        saved_at=when.isoformat(timespec="microseconds"),
        planner=planner,
    )


async def find_plan(store: PlanStore, goal: str, specs: Mapping[str, FunctionSpec]) -> FoundPlan | None:
    """Return the plan that a store has for a goal: one that is current, else one that is stale, else None.

    A plan made for exactly these functions comes first, then the newest whose functions are unchanged. The plan is not
    checked. Raises ``StoreError``, and ``StoreDamaged`` for a document that is no plan.
    """
    goal = goal.strip()
    exact = await store.get(goal, catalogue_hash(specs.values()))
    first = _read_saved(exact, specs) if exact is not None else None
    if first is not None and not first.stale:
        return first
    for each in await store.plans():
        if each.goal.strip() != goal:
            continue
        found = _read_saved(each, specs)
        if not found.stale:
            return found
        first = first or found
    return first


def _read_saved(saved: SavedPlan, specs: Mapping[str, FunctionSpec]) -> FoundPlan:
    try:
        plan = plan_from_json(dict(saved.plan))
    except PlanFormatError as error:
        raise StoreDamaged(
            f"The plan saved for {saved.goal[:60]!r} is no plan: {error} Remove it from the plan store."
        ) from error
    return FoundPlan(plan, saved, Stale.of(plan, specs))
