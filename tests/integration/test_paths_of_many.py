"""A plan whose step takes a part of every element of a list."""

from __future__ import annotations

from typing import TypedDict

import pytest

from portico import Kernel, function
from portico.errors import PlanInvalid
from portico.plans import From, Plan, Step, Value


class Page(TypedDict):
    link: str
    words: int


@function
def find(topic: str) -> list[Page]:
    """Find pages."""
    return [{"link": f"/{topic}/{each}", "words": each} for each in range(3)]


@function
def read(links: list[str]) -> str:
    """Read pages."""
    return " ".join(links)


def plan(path: str) -> Plan:
    steps = (
        Step("s1", "find", {"topic": Value("rain")}),
        Step("s2", "read", {"links": From("s1", From.parse_path(path))}),
    )
    return Plan("Read all", steps, result=From("s2"))


async def test_a_step_takes_what_a_path_selects_of_every_element() -> None:
    kernel = Kernel()
    kernel.add_function(find)
    kernel.add_function(read)
    assert (await kernel.run_plan(plan("$[*].link"))).outcome.text == "/rain/0 /rain/1 /rain/2"
    assert (await kernel.run_plan(plan("$[-1:].link"))).outcome.text == "/rain/2"
    with pytest.raises(PlanInvalid, match=r"nearest: \$\[\*\].link"):
        await kernel.run_plan(plan("$[*].lnk"))
    with pytest.raises(PlanInvalid, match=r"of s1, \$\[\*\].link would do"):
        await kernel.run_plan(plan("$[*].words"))
