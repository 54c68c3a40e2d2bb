"""Files of cases: what they may hold, and how a mistake in one is reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico.errors import ConfigurationError
from portico_cli.failures import Misused
from portico_eval.cases import Case, Fact, fold, read_cases

ONE = {"id": "cancel", "question": "Until when?", "sources": ["orders.md"], "facts": ["packed", {"any": ["a", "b"]}]}
TWO = {"question": "Who won?", "refused": True, "limits": {"seconds": 2.5, "steps": 3}}
TOML = """
[[cases]]
id = "cancel"
question = "Until when?"
sources = ["orders.md"]
facts = ["packed", { any = ["a", "b"] }]

[[cases]]
question = "Who won?"
refused = true
limits = { seconds = 2.5, steps = 3 }
"""
GOOD = '{"question": "Why?"}\n'


def read(folder: Path, text: str, name: str = "cases.jsonl") -> list[Case]:
    (folder / name).write_text(text, "utf-8")
    return read_cases(str(folder / name))


def test_the_same_cases_are_read_from_json_lines_a_list_and_toml(tmp_path: Path) -> None:
    lines = read(tmp_path, f"\n{json.dumps(ONE)}\n\n{json.dumps(TWO)}\n")
    assert lines == read(tmp_path, json.dumps([ONE, TWO], indent=2))
    assert lines == read(tmp_path, TOML, "cases.toml")
    assert [case.id for case in lines] == ["cancel", "Who won?"]
    assert lines[0].facts == (Fact(("packed",)), Fact(("a", "b")))
    assert lines[1].refused
    assert lines[1].limits == {"seconds": 2.5, "steps": 3}


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (GOOD + "{'question': 1}", 2, "JSON"),
        (GOOD + '{"question": "x"} {}', 2, "JSON"),
        (GOOD + "[]", 2, "object"),
        (GOOD + '{"question": "x", "fact": []}', 2, "`facts`"),
        (GOOD + '{"question": "x", "limits": {"second": 1}}', 2, "`seconds`"),
        (GOOD + '{"question": "x", "limits": {"seconds": -1}}', 2, "seconds"),
        (GOOD + '{"question": "x", "limits": {"seconds": NaN}}', 2, "NaN"),
        (GOOD + '{"question": " "}', 2, "question"),
        (GOOD + '{"question": "x", "question": "y"}', 2, "twice"),
        (GOOD + '{"question": "x", "facts": [{"pattern": "("}]}', 2, "regular expression"),
        (GOOD + '{"question": "x", "facts": [{"any": []}]}', 2, "any"),
        (GOOD + '{"question": "x", "sources": "a.md"}', 2, "sources"),
        (GOOD + '{"question": "x", "plan": {"version": 1, "steps": 3}}', 2, "plan"),
        (GOOD + '{"question": "x", "refused": true, "facts": ["y"]}', 2, "refused"),
        (GOOD + '{"question": "Why?"}', 2, "Why?"),
        ('[\n{"question": "x"},\n{"question": 3}\n]', 3, "question"),
        ('[\n{"question": "x"},\n{"question": "y"}', 3, "JSON"),
        ('[\n{"question": "x"}\n{"question": "y"}]', 3, "JSON"),
        ('[{"question": "x"}]\nmore', 2, "JSON"),
        ("\n", 1, "no case"),
    ],
)
def test_a_mistake_is_reported_with_its_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'cases.jsonl'}:{line}: ")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[[cases]]\nquestion = x", 2),
        (f'{TOML}\n[[cases]]\nquestion = "z"\nkind = 1', 13),
        ("cases = 3", 1),
        ('title = "x"', 1),
    ],
)
def test_a_mistake_in_toml_is_reported_with_the_line_of_its_case(tmp_path: Path, text: str, line: int) -> None:
    with pytest.raises(ConfigurationError, match=rf"cases\.toml:{line}: "):
        read(tmp_path, text, "cases.toml")


_KEYS = st.sampled_from([*ONE, *TWO, "plan", "any", "pattern"])
_PLAIN = st.none() | st.booleans() | st.integers() | st.text()
_VALUES = st.recursive(_PLAIN, lambda inner: st.lists(inner) | st.dictionaries(_KEYS, inner))


@pytest.mark.fuzz
@given(st.text() | _VALUES)
def test_whatever_a_file_has_it_is_cases_or_one_clear_error(
    tmp_path_factory: pytest.TempPathFactory, value: Any
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.jsonl"
    file.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8", "replace")
    try:
        cases = read_cases(str(file))
    except (ConfigurationError, Misused):
        return
    assert all(case.question.strip() and case.id for case in cases)


@given(st.text(min_size=1), st.text(), st.text())
def test_a_text_stands_in_every_answer_around_it(text: str, before: str, after: str) -> None:
    if text.strip():
        assert Fact((text,)).stands_in(f"{before} {text.upper() if fold(text.upper()) == fold(text) else text} {after}")


@pytest.mark.parametrize(
    ("fact", "answer", "stands"),
    [
        ("until it is packed", "Until it\n is  PACKED.", True),
        ("until it is packed", "until it was packed", False),
        ({"any": ["30 kg", "30 kilograms"]}, "It may weigh 30 kilograms.", True),
        ({"pattern": r"\b30\s*k(g|ilograms)\b"}, "At most 30KG.", True),
        ({"pattern": r"\b30\s*k(g|ilograms)\b"}, "At most 130 kg.", False),
    ],
)
def test_facts_are_compared_without_case_and_white_space(tmp_path: Path, fact: Any, answer: str, stands: bool) -> None:
    [case] = read(tmp_path, json.dumps({"question": "x", "facts": [fact]}))
    assert case.facts[0].stands_in(answer) is stands
