"""The plans that the recorded planner proposes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TRIP = "Book the morning ferry to Oslo for two, for 300 kroner at most, and write to the travellers"
MANY = "Take five hundred moments"
STEPS = ("timetable", "forecast", "tide", "choose", "price", "seats", "pier", "check", "book", "letter")
LETTER = "We take the ferry at 09:00 to Oslo, from pier 4. Our ticket is ticket 4711."


def step(id: str, function: str, reason: str = "", **arguments: Any) -> dict[str, Any]:
    """Return a step; an argument that is a mapping is an expression."""
    given = {name: each if isinstance(each, Mapping) else {"value": each} for name, each in arguments.items()}
    return {"id": id, "function": f"harbour-{function}", "arguments": given, **({"reason": reason} if reason else {})}


def of(step: str) -> dict[str, Any]:
    """Return the expression for the result of a step."""
    return {"from": step, "path": "$"}


def plan(goal: str, *steps: Mapping[str, Any], result: str) -> dict[str, Any]:
    """Return a plan as JSON."""
    return {"version": 2, "goal": goal, "steps": list(steps), "result": of(result)}


def trip() -> dict[str, Any]:
    """Return a plan of ten steps, one of which costs money."""
    return plan(
        TRIP,
        step("timetable", "Timetable", "which crossings there are", place="Oslo"),
        step("forecast", "Forecast", "whether it will be rough", place="Oslo"),
        step("tide", "Tide", place="Oslo"),
        step("choose", "Choose", crossings=of("timetable"), weather=of("forecast"), tide=of("tide")),
        step("price", "Price", crossing=of("choose"), people=2),
        step("seats", "Seats", crossing=of("choose"), people=2),
        step("pier", "Pier", crossing=of("choose")),
        step("check", "Check", "whether it is within the budget", price=of("price"), most=300),
        step("book", "Book", crossing=of("choose"), seats=of("seats")) | {"after": ["check"]},
        step("letter", "Letter", ticket=of("book"), pier=of("pier"), crossing=of("choose")),
        result="letter",
    )


def short_trip() -> dict[str, Any]:
    """Return what is proposed where the ten steps are refused: the same without the tide and the weather."""
    whole = trip()
    kept = [each for each in whole["steps"] if each["id"] not in ("forecast", "tide", "choose")]
    first = step("choose", "Choose", crossings=of("timetable"), weather="any", tide="any")
    return {**whole, "steps": [kept[0], first, *kept[1:]]}


def many(count: int = 500, lanes: int = 5) -> dict[str, Any]:
    """Return a plan of many steps, in lanes side by side."""
    steps = [
        step(f"t{number}", "Tick", number=number if number < lanes else of(f"t{number - lanes}"))
        for number in range(count)
    ]
    return plan(MANY, *steps, result=f"t{count - 1}")


def recorded() -> dict[str, list[dict[str, Any]]]:
    """Return what the planner proposes, by the goal."""
    return {TRIP: [trip(), short_trip()], MANY: [many()]}
