"""Where a finding of a check stands in a plan of JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from portico_cli.plan_files import json_place

PLAN = """{"steps": [
 {"id": "s.1", "arguments": {
   "x": {"value": 1},
   "y": {"value": 2}}},
 {"id": "s2", "function": {"steps": [
   {"id": "inner", "arguments": {"q": {"value": 3}}}]}}],
 "result": {"from": "s1"}}"""


@pytest.mark.parametrize(
    ("step", "place", "line"),
    [
        ("s.1", "arguments.y", 4),
        ("s.1", "after", 2),
        ("s2/inner", "arguments.q", 6),
        (None, "result", 7),
        ("nowhere", "nothing", 1),
    ],
)
def test_a_finding_is_in_the_line_of_its_argument_or_of_its_step(step: str | None, place: str, line: int) -> None:
    assert json_place(PLAN, step, place)[0] == line


@given(st.lists(st.text(min_size=1), min_size=1, unique=True), st.data())
def test_the_step_is_found_whatever_it_is_called(ids: list[str], data: st.DataObject) -> None:
    text = json.dumps({"steps": [{"id": id, "arguments": {}} for id in ids]}, indent=1)
    wanted = data.draw(st.sampled_from([id for id in ids if "/" not in id] or [""]))
    line, _ = json_place(text, wanted, "")
    assert not wanted or json.loads("{" + text.split("\n")[line - 1].rstrip(",") + "}") == {"id": wanted}
