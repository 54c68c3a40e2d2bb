"""What calling a function through the kernel costs beside awaiting it: `python -m tests.bench.function_calls`.

The kinds take turns in short batches, and the ratio is the median over the rounds, so that a slow moment of the
machine falls on all of them alike. The floor is a plain ``await`` of the same function with the same arguments. Two
ways through the kernel are held to limits, by full name and by `Function`:

- *invoke*: ``Kernel.invoke`` with Python values;
- *from JSON*: ``Kernel.invoke_json`` with a JSON mapping, which is checked and turned into Python values, and the
  result into JSON again.

A nested dataclass is made of JSON and written as JSON field by field, which has no counterpart in the plain call: it
is reported without a limit.
"""

from __future__ import annotations

import asyncio
import json
import operator
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from portico import Function, Kernel

INVOKE_LIMIT = 5.0
JSON_LIMIT = 15.0
FLOOR = "plain await"
BATCH = 500
ROUNDS = 200

_Batch: TypeAlias = Callable[[range], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Place:
    """A place on a map."""

    name: str
    latitude: float
    longitude: float


@dataclass(frozen=True, slots=True)
class Trip:
    """A journey between places."""

    title: str
    start: Place
    stops: list[Place]
    note: str | None = None


async def nothing() -> None:
    """Do nothing."""


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def greet(name: str, title: str | None = None) -> str:
    """Greet somebody."""
    return name


async def turn_round(trip: Trip) -> Trip:
    """Give a trip back."""
    return trip


_TRIP = {
    "title": "North",
    "start": {"name": "Uppsala", "latitude": 59.86, "longitude": 17.64},
    "stops": [{"name": "Gävle", "latitude": 60.67, "longitude": 17.14}] * 3,
    "note": None,
}
TRIP_VALUE = Trip("North", Place("Uppsala", 59.86, 17.64), [Place("Gävle", 60.67, 17.14)] * 3)


async def plain_nothing(calls: range) -> None:
    for _ in calls:
        await nothing()


async def plain_add(calls: range) -> None:
    for _ in calls:
        await add(a=1, b=2)


async def plain_greet(calls: range) -> None:
    for _ in calls:
        await greet(name="Ada", title="Dr")


async def plain_turn_round(calls: range) -> None:
    for _ in calls:
        await turn_round(trip=TRIP_VALUE)


def invoke_nothing(kernel: Kernel, named: str | Function) -> _Batch:
    async def batch(calls: range) -> None:
        for _ in calls:
            await kernel.invoke(named)

    return batch


def invoke_add(kernel: Kernel, named: str | Function) -> _Batch:
    async def batch(calls: range) -> None:
        for _ in calls:
            await kernel.invoke(named, a=1, b=2)

    return batch


def invoke_greet(kernel: Kernel, named: str | Function) -> _Batch:
    async def batch(calls: range) -> None:
        for _ in calls:
            await kernel.invoke(named, name="Ada", title="Dr")

    return batch


def invoke_turn_round(kernel: Kernel, named: str | Function) -> _Batch:
    async def batch(calls: range) -> None:
        for _ in calls:
            await kernel.invoke(named, trip=TRIP_VALUE)

    return batch


def from_json(kernel: Kernel, named: str | Function, arguments: Mapping[str, Any]) -> _Batch:
    async def batch(calls: range) -> None:
        for _ in calls:
            await kernel.invoke_json(named, arguments)

    return batch


@dataclass(frozen=True)
class Shape:
    """One function, called in each way; each loop is written out, so that nothing else is measured."""

    function: Callable[..., Awaitable[Any]]
    plain: _Batch
    invoke: Callable[[Kernel, str | Function], _Batch]
    arguments: Mapping[str, Any]
    limited: bool = True


SHAPES: Mapping[str, Shape] = {
    "no arguments": Shape(nothing, plain_nothing, invoke_nothing, {}),
    "two ints": Shape(add, plain_add, invoke_add, {"a": 1, "b": 2}),
    "a str and an optional": Shape(greet, plain_greet, invoke_greet, {"name": "Ada", "title": "Dr"}),
    "a nested dataclass": Shape(turn_round, plain_turn_round, invoke_turn_round, {"trip": _TRIP}, limited=False),
}


def ways(kernel: Kernel, shape: Shape) -> dict[str, tuple[_Batch, float | None]]:
    """Return the ways of calling one function, the plain one first, each with its limit."""
    function = kernel.functions[shape.function.__name__]
    name = function.full_name
    json_limit = JSON_LIMIT if shape.limited else None
    return {
        FLOOR: (shape.plain, None),
        "invoke, by name": (shape.invoke(kernel, name), INVOKE_LIMIT),
        "invoke, by function": (shape.invoke(kernel, function), INVOKE_LIMIT),
        "from JSON, by name": (from_json(kernel, name, shape.arguments), json_limit),
        "from JSON, by function": (from_json(kernel, function, shape.arguments), json_limit),
    }


async def sample(batch: _Batch) -> float:
    """Return the nanoseconds of one call, over a batch."""
    calls = range(BATCH)
    started = time.perf_counter_ns()
    await batch(calls)
    return (time.perf_counter_ns() - started) / BATCH


async def measure(kinds: Mapping[str, tuple[_Batch, float | None]]) -> dict[str, dict[str, float]]:
    """Return the median nanoseconds of each kind, and the median of its ratios to the floor of the same round."""
    samples: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(ROUNDS):
        for kind, (batch, _) in kinds.items():
            samples[kind].append(await sample(batch))
    return {
        kind: {
            "ns": statistics.median(values),
            "ratio": statistics.median(map(operator.truediv, values, samples[FLOOR])),
        }
        for kind, values in samples.items()
    }


def main() -> int:
    """Measure, print the table and one JSON line; return 1 where a limit is broken."""
    kernel = Kernel()
    for shape in SHAPES.values():
        kernel.add_function(shape.function)
    print(f"medians of {ROUNDS} batches of {BATCH} calls each, nanoseconds a call")
    print(f"{'':50}{'ns':>10}{'ratio':>9}{'limit':>8}")
    broken: list[str] = []
    report: dict[str, dict[str, dict[str, float]]] = {}
    for title, shape in SHAPES.items():
        kinds = ways(kernel, shape)
        figures = asyncio.run(measure(kinds))
        report[title] = figures
        for kind, (_, limit) in kinds.items():
            time_taken, ratio = figures[kind]["ns"], figures[kind]["ratio"]
            if limit is not None and ratio > limit:
                broken.append(f"{title}: {kind}")
            shown = f"{limit:.0f}x" if limit else ""
            print(f"{title + ': ' + kind:50}{time_taken:10.0f}{ratio:8.2f}x{shown:>8}")
    print(json.dumps({"bench": "function_calls", "broken": broken, "figures": report}))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
