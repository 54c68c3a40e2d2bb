"""What models write as one turn."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from portico.plans import ReplyProblem
from portico_stepwise_planner._reading import Action, Final, read_reply

CALL = '{"function": "Weather.forecast", "arguments": {"city": "Oslo"}}'
WANTED = Action("Look.", "Weather.forecast", {"city": "Oslo"})

SAME_ACTION = {
    "lines": f"Thought: Look.\nAction: {CALL}",
    "numbered, as in the paper": f"Thought 1: Look.\nAction 1: {CALL}",
    "Markdown": f"**Thought:** Look.\n**Action:** {CALL}",
    "brackets": f"[THOUGHT]\nLook.\n[ACTION]\n{CALL}\n",
    "a fence around the action": f"Thought: Look.\nAction:\n```json\n{CALL}\n```",
    "a fence around all": f"```\nThought: Look.\nAction: {CALL}\n```",
    "written over lines": f"Thought: Look.\nAction:\n{json.dumps(json.loads(CALL), indent=2)}\n",
    "Semantic Kernel's keys": 'Look.\n[ACTION] {"action": "Weather.forecast", "action_variables": {"city": "Oslo"}}',
    "arguments as text": 'Look.\nAction: {"name": "Weather.forecast", "arguments": "{\\"city\\": \\"Oslo\\"}"}',
    "an input of its own": 'Thought: Look.\nAction: Weather.forecast\nAction Input: {"city": "Oslo"}',
    "Python's quotes": "Look.\nAction: {'function': 'Weather.forecast', 'arguments': {'city': 'Oslo',},}",
    "an input in Python's quotes": "Look.\nAction: Weather.forecast\nAction Input: {'city': 'Oslo'}\nThat's it",
    "arguments as such a text": """Look.\nAction: {"name": "Weather.forecast", "arguments": "{'city': 'Oslo'}"}""",
    "no mark": f"Look.\n{CALL}",
    "an object": f'{{"thought": "Look.", "action": {CALL}}}',
    "an object in a fence": f'```json\n{{"thought": "Look.", "action": {CALL}}}\n```',
    "another case": f"THOUGHT: Look.\naction: {CALL}",
    "an invented observation": f'Thought: Look.\nAction: {CALL}\nObservation: {{"sky": "green"}}\nThought: So.',
    "an invented conversation": f"Thought: Look.\nAction: {CALL}\nObservation: rain\nFinal answer: Rain.",
    "several actions": f'Thought: Look.\nAction: {CALL}\nAction: {{"function": "Bomb.explode"}}',
    "several actions in an array": f'Thought: Look.\nAction: [{CALL}, {{"function": "Bomb.explode"}}]',
    "a final answer that nothing was seen for": f"Thought: Look.\nAction: {CALL}\nFinal answer: Rain.",
    "an object with a final answer besides": f'{{"thought": "Look.", "action": {CALL}, "final": "Rain."}}',
}

UNREADABLE = {
    "nothing": ("", "empty"),
    "blank space": (" \n\t ", "empty"),
    "words": ("It will rain.", "neither"),
    "a thought": ("Thought: I wonder.", "neither"),
    "a missing brace": (f"Thought: Look.\nAction: {CALL[:-1]}", "not whole JSON"),
    "a missing quote": ('Action: {"function": "Weather.forecast, "arguments": {}}', "not whole JSON"),
    "a call in code": ("Thought: Look.\nAction: forecast('Oslo')", "not JSON"),
    "an action of ReAct's": ("Thought: Look.\nAction: Search[Oslo]", "not JSON"),
    "an empty action": ("Thought: Look.\nAction:\nObservation: rain", "nothing after"),
    "a key twice": ('Action: {"function": "A", "function": "B"}', "twice"),
    "an argument twice": ('Action: {"function": "A", "arguments": {"x": 1, "x": 2}}', "twice"),
    "an argument beside the arguments": ('Action: {"function": "A", "arguments": {}, "city": "Oslo"}', "'city'"),
    "two kinds of arguments": ('Action: {"function": "A", "arguments": {}, "input": {"x": 1}}', "'input'"),
    "arguments in an array": ('Action: {"function": "A", "arguments": ["Oslo"]}', "no JSON object"),
    "arguments that are words": ('Action: {"function": "A", "arguments": "Oslo"}', "no JSON object"),
    "a number that is none": ('Action: {"function": "A", "arguments": {"x": NaN}}', "NaN"),
    "no function": ('Action: {"arguments": {"x": 1}}', "names no function"),
    "an array of words": ('Action: ["A", "B"]', "no JSON object"),
    "an observation first": (f"Observation: rain\nAction: {CALL}", "before the observation"),
    "an empty answer": ("Thought: Done.\nFinal answer:  ", "empty"),
    "an empty answer in an object": ('{"thought": "", "action": {"final": " "}}', "empty"),
    "an input alone": ('Action input: {"x": 1}', "without an action"),
    "brackets without end": ("Action: " + '{"a":' * 5_000, "JSON|deeply"),
}


@pytest.mark.parametrize("reply", SAME_ACTION.values(), ids=SAME_ACTION)
def test_an_action_is_understood_however_it_is_dressed_and_nothing_behind_it_counts(reply: str) -> None:
    assert read_reply(reply) == WANTED


@pytest.mark.parametrize(("reply", "said"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_is_not_clear_is_refused_and_says_why(reply: str, said: str) -> None:
    with pytest.raises(ReplyProblem, match=said):
        read_reply(reply)


@pytest.mark.parametrize(
    "reply",
    [
        "Thought: Done.\nFinal answer: It rains.\nAll day.",
        "Thought: Done.\nFinal answer: It rains.\nAll day.\nObservation: it did\nThought: Good.",
        "[THOUGHT] Done.\n[FINAL ANSWER] It rains.\nAll day.",
        "[THOUGHT] Done.\n[FINAL-ANSWER] It rains.\nAll day.",
        "Thought: Done.\nFinal-Answer: It rains.\nAll day.",
        '{"thought": "Done.", "action": {"final": "It rains.\\nAll day."}}',
        '{"thought": "Done.", "final_answer": "It rains.\\nAll day.", "action": null}',
        '```json\n{"thought": "Done.", "answer": " It rains.\\nAll day. "}\n```',
    ],
)
def test_a_final_answer_is_what_stands_there_up_to_an_invented_observation(reply: str) -> None:
    assert read_reply(reply) == Final("Done.", "It rains.\nAll day.")


def test_an_answer_that_is_no_text_keeps_its_value() -> None:
    assert read_reply('{"final": {"degrees": 3}}') == Final("", '{\n  "degrees": 3\n}', {"degrees": 3})


PARTS = st.sampled_from([
    "Thought:", "Action:", "Final answer:", "[FINAL ANSWER]", "**Final answer:**", "Observation:", "observ", "\n", " ",
    ":", "*", "so", "{", '{"function": "A"}', "Obs", "[OBSERVATION]", "Final", "- ",
])  # fmt: skip


@given(st.text(max_size=80) | st.lists(PARTS, max_size=20).map("".join))
def test_any_text_is_read_or_refused(reply: str) -> None:
    try:
        assert isinstance(read_reply(reply), Action | Final)
    except ReplyProblem as fault:
        assert str(fault).strip()
