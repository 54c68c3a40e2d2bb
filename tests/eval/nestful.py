"""Whether the tasks of NESTFUL load as plans, pass the check, and run with functions that stand in for the real ones.

Each function of the specification becomes one that gives a value made from its output's schema. A task that does not
load, is not clean or cannot run is listed once, with the first of these that it fails at and why.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import re
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.eval.nestful_format import Callable, Task, Unreadable, plan_of, read_functions, read_tasks

from portico import Answer, Function, Kernel, Parameter, Plan, PromptInput
from portico.errors import PorticoError, SchemaUnsupported
from portico.plans import Step, check_plan, plan_from_json, plan_to_json
from portico.plugins import Mismatch
from portico_basics.config import JsonschemaSettings
from portico_basics.jsonschema.validator import JsonschemaValidator

__all__ = ["Kernels", "add_arguments", "describe", "measure", "run"]

_DEEPEST = 20
_ABSENT = object()
_FORMATS = {"date": "2026-01-02", "date-time": "2026-01-02T03:04:05Z", "time": "03:04:05Z", "email": "ada@example.org"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", type=Path, help="the tasks", metavar="DATA")
    parser.add_argument("spec", type=Path, help="the functions", metavar="SPEC")
    parser.add_argument(
        "--overlap", type=float, metavar="SECONDS", help="run the tasks again with steps that take as long, and compare"
    )


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure one file of tasks over one of functions."""
    return asyncio.run(measure(arguments.data, arguments.spec, overlap=arguments.overlap))


def describe(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the figures as lines for people."""
    yield f"{result['loaded']} of {result['tasks']} tasks load, {result['clean']} are clean, {result['ran']} ran"
    for one in result["reasons"]:
        yield f"  {one['task']}: {one['reason']}"
    if "overlap" in result:
        yield "  {seconds:.2f} s for {critical:.2f} s on the critical paths, at worst {worst:.3f} times as long".format(
            **result["overlap"]
        )


async def measure(data: Path, spec: Path, *, overlap: float | None = None) -> dict[str, Any]:
    tasks = read_tasks(data)
    shared = read_functions(spec)
    started = time.perf_counter()
    validator = JsonschemaValidator(JsonschemaSettings(), None)
    kernels = Kernels(shared, validator)
    counts = {"loaded": 0, "clean": 0, "ran": 0}
    reasons: list[dict[str, Any]] = []
    runnable: list[tuple[Kernel, Plan]] = []
    for task in tasks:
        try:
            kernel, plan = kernels.of(task)
        except (Unreadable, PorticoError) as error:
            reasons.append({"task": task.name, "reason": f"it does not load: {error}"})
            continue
        counts["loaded"] += 1
        findings = check_plan(plan, kernel.specs, validator=kernel.schema_validator)
        wrong = [str(finding) for finding in findings if finding.severity == "error"]
        if wrong:
            reasons.append({"task": task.name, "reason": "; ".join(wrong)})
            continue
        counts["clean"] += 1
        fault = await _fault(kernel, plan)
        if fault:
            reasons.append({"task": task.name, "reason": f"it cannot run: {fault}"})
            continue
        counts["ran"] += 1
        runnable.append((kernel, plan))
    print(f"{data}: {len(tasks)} tasks, {time.perf_counter() - started:.2f} s", file=sys.stderr)
    result = {"tasks": len(tasks), **counts, "reasons": reasons}
    if overlap is not None:
        result["overlap"] = await _overlap(kernels, runnable, overlap)
    return result


async def _fault(kernel: Kernel, plan: Plan) -> str | None:
    try:
        run = await kernel.run_plan(plan)
    except PorticoError as error:
        return str(error)
    if not isinstance(run.outcome, Answer):
        return f"it ended as {run.outcome}"
    done = {record.step.id for record in run.steps if record.error is None}
    left = [step.id for step in plan.steps if step.id not in done]
    return f"these steps did not run: {', '.join(left)}" if left else None


async def _overlap(kernels: Kernels, runnable: list[tuple[Kernel, Plan]], seconds: float) -> dict[str, float]:
    kernels.seconds = seconds
    taken = critical = worst = 0.0
    try:
        for kernel, plan in runnable:
            path = seconds * _longest_chain(plan)
            started = time.perf_counter()
            await kernel.run_plan(plan)
            one = time.perf_counter() - started
            taken, critical = taken + one, critical + path
            worst = max(worst, one / path) if path else worst
    finally:
        kernels.seconds = 0.0
    return {"seconds": taken, "critical": critical, "worst": worst}


def _longest_chain(plan: Plan) -> int:
    """Return how many steps stand on the critical path."""
    lengths: dict[str, int] = {}
    left: list[Step] = list(plan.steps)
    while left:
        ready = [step for step in left if step.depends_on() <= lengths.keys()]
        for step in ready:
            lengths[step.id] = 1 + max((lengths[before] for before in step.depends_on()), default=0)
        left = [step for step in left if step.id not in lengths]
    return max(lengths.values(), default=0)


class Kernels:
    """Kernels with the functions of tasks: one for all that bring none along."""

    def __init__(self, shared: Mapping[str, Callable], validator: JsonschemaValidator) -> None:
        self.shared = shared
        self.validator = validator
        self.seconds = 0.0
        self.plain = self.made(shared)

    def of(self, task: Task) -> tuple[Kernel, Plan]:
        """Return a task's kernel and plan, the plan as it comes back from its JSON form."""
        kernel, names = self.plain
        if task.functions:
            kernel, names = self.made({**self.shared, **read_functions(task.functions)})
        plan = plan_of(task)
        named = replace(
            plan,
            steps=tuple(replace(step, function=names.get(str(step.function), step.function)) for step in plan.steps),
        )
        read = plan_from_json(plan_to_json(named))
        if read != named:
            raise Unreadable("its plan is another after its JSON form")
        return kernel, read

    def made(self, functions: Mapping[str, Callable]) -> tuple[Kernel, dict[str, str]]:
        """Return a kernel with stand-ins, and their names in it by those of the specification."""
        kernel = Kernel(schema_validator=self.validator)
        names: dict[str, str] = {}
        for function in functions.values():
            name = re.sub(r"[^0-9A-Za-z_]", "_", function.name) or "_"
            while name in kernel.functions:
                name += "_"
            try:
                kernel.add_function(self.stand_in(name, function))
            except (SchemaUnsupported, Mismatch) as error:
                print(f"{function.name} has no stand-in: {error}", file=sys.stderr)
            else:
                names[function.name] = name
        return kernel, names

    def stand_in(self, name: str, function: Callable) -> Function:
        value = _value(function.returns, name)
        returns = PromptInput.compile(function.returns, (), self.validator)
        # A stand-in that broke its own schema would show nothing.
        returns.structure(value)

        async def call(**arguments: Any) -> Any:
            if self.seconds:
                await asyncio.sleep(self.seconds)
            return value

        required = function.parameters["required"]
        parameters = [
            Parameter(
                each,
                str(schema.get("description", "")),
                PromptInput.compile(schema, (), self.validator),
                each in required,
                _ABSENT,
            )
            for each, schema in function.parameters["properties"].items()
        ]
        return Function(name, call, description=function.description, parameters=parameters, returns=returns)


def _value(schema: Mapping[str, Any], name: str, depth: int = 0) -> Any:
    """Return a value of a schema: every property, two elements of every array, a text where anything may be."""
    if schema.get("enum"):
        return schema["enum"][0]
    if "anyOf" in schema:
        return _value(schema["anyOf"][0], name, depth)
    match schema.get("type"):
        case "object":
            properties = schema.get("properties", {}) if depth < _DEEPEST else {}
            return {key: _value(member, key, depth + 1) for key, member in properties.items()}
        case "array":
            return [_value(schema.get("items", {}), name, depth + 1) for _ in range(2)] if depth < _DEEPEST else []
        case "integer":
            return math.ceil(schema["minimum"]) if "minimum" in schema else math.floor(schema.get("maximum", 1))
        case "number":
            return schema.get("minimum", schema.get("maximum", 1))
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return _FORMATS.get(schema.get("format", ""), f"some {name}")
