"""Patterns mean what ECMA-262 says, as far as RE2 has it, and none takes long."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico_basics.jsonschema.validator import JsonschemaValidator

VALIDATOR = JsonschemaValidator()


def matches(pattern: str, text: str) -> bool:
    return VALIDATOR.compile({"pattern": pattern})(text) == []


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("^a$", ["a"], ["a\n", "ba", "ab"]),
        ("^.$", ["a", "é", "🙂", "\t"], ["\n", "\u2028", "ab"]),
        (r"^\d+$", ["12"], ["٣", "a"]),
        (r"\w", ["a", "_"], ["é", "-"]),
        (r"^\s$", [" ", "\u00a0", "\ufeff", "\v"], ["a", "\u200b"]),
        (r"^[\s,]\S$", [",a", "\u00a0b"], ["a\u00a0", ", "]),
        (r"^[\s\S]$", ["a", "\n", "\u2003"], ["ab"]),
        (r"^\$[0-9]$", ["$1"], ["1", "$1\n"]),
        ("[$.]", ["$", "."], ["a"]),
        (r"[^\]$]", ["a"], ["]", "$"]),
        ("[[a]", ["[", "a"], ["b"]),
        ("[]", [], ["", "a"]),
        ("^[^]$", ["a", "\n"], ["", "ab"]),
        (r"^[\w-.]+$", ["a-b.c"], ["a b"]),
        (r"^[.-\d]+$", ["1-.2"], ["a"]),
        ("^[a&&b||c~~-]+$", ["&", "|", "-", "~"], ["d"]),
        ("a|^$", ["a", ""], ["b", "\n"]),
        (r"^(?<year>\d{4})$", ["1999"], ["199"]),
        (r"^(?:ab)*c\/$", ["ababc/"], ["aabc/"]),
        (r"\u00e9", ["é"], ["e"]),
        (r"^[\u0061-\u0063]\ud83d\ude42\u{1F642}$", ["b🙂🙂"], ["d🙂🙂"]),
        (r"^\p{Lu}\p{Greek}$", ["Äω"], ["äω"]),
        ("^(?:[0-9]{4},)*$", ["1234,"], ["123,"]),
    ],
)
def test_a_pattern_matches_as_in_ecma_262(pattern: str, yes: list[str], no: list[str]) -> None:
    assert [text for text in yes if not matches(pattern, text)] == []
    assert [text for text in no if matches(pattern, text)] == []


ENDLESS = [
    "(a+)+$", "(a*)*b", "([a-z]+)+$", "^(?:a+){2,}$", "((a+))+b", "(a+|b)+c", "(x+x?)*y", r"^(\w+\s?)*$", ".*.*.*=.*",
    r"^([a-zA-Z0-9_.+-]+)+@([a-zA-Z0-9-]+\.)+[a-z]+$", "^(([a-z])+,?)+$", "(a|aa)+$",
]  # fmt: skip


@pytest.mark.parametrize("pattern", ENDLESS)
def test_a_pattern_that_others_never_end_with_is_checked_at_once(pattern: str) -> None:
    text = "a" * 50_000 + "!"
    assert len(VALIDATOR.compile({"pattern": pattern})(text)) == 1
    schema = {"patternProperties": {pattern: False}, "propertyNames": {"pattern": f"{pattern}|!"}}
    assert VALIDATOR.compile({**schema, "additionalProperties": {"type": "integer"}})({text: 1}) == []


@pytest.mark.parametrize(
    "pattern", ["^(?=.*a)", "(?!b)a", "(?<=a)b", r"(a)\1", r"(?<n>a)\k<n>", "(", "a{2000}", r"\Qa", r"\u", r"\u{}"]
)
def test_a_pattern_that_the_engine_lacks_is_told_of_and_not_checked(
    pattern: str, caplog: pytest.LogCaptureFixture
) -> None:
    validator = JsonschemaValidator()
    with caplog.at_level(logging.WARNING):
        validate = validator.compile({"items": {"pattern": pattern, "maxLength": 1}})
    assert repr(pattern) in caplog.text
    assert validate(["", "bb"]) == ["$[1]: expected at most 1 characters, got 2"]


def test_a_name_that_an_unknown_pattern_may_speak_of_is_not_additional() -> None:
    schema = {"patternProperties": {"(?=a)": {"type": "integer"}}, "additionalProperties": False}
    assert VALIDATOR.compile(schema)({"a": "x"}) == []


@given(st.text(st.sampled_from("ab(|)[]^$*+?{}1,2\\d-:=!<>&~.us"), max_size=14), st.text(max_size=4))
def test_any_text_is_a_pattern_and_any_text_can_be_checked(pattern: str, text: str) -> None:
    validate = VALIDATOR.compile({"pattern": pattern})
    assert len(validate(text)) < 2
    assert len(validate("\ud800")) < 2


@given(st.text(st.sampled_from("ab.*+?|()"), max_size=8), st.text(st.sampled_from("ab"), max_size=12))
def test_a_pattern_without_anchors_means_the_same_to_python(pattern: str, text: str) -> None:
    try:
        expected = re.search(pattern, text) is not None
    except re.error:
        return
    if re.search(r"[*+?]\+", pattern) is None:  # What Python has as possessive is none in ECMA-262.
        assert matches(pattern, text) == expected


EMAIL = r"^[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9]{1,63})*$"
ID = "^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": r"[\s\S]{0,1000}"}, "A line.\n" * 1_300),
        ({"pattern": r"^[\s\S]{0,1000}$"}, "Größe\n" * 160),
        (
            {"items": {"type": "string", "pattern": ID}},
            [f"{one:08x}-0000-4000-8000-{one:012x}" for one in range(27_000)],
        ),
        (
            {"items": {"properties": {"to": {"pattern": EMAIL}}}},
            [{"to": f"ada.{one}@example.org"} for one in range(9_000)],
        ),
        ({"pattern": r"\S"}, "文" * 250_000),
        ({"items": {"pattern": r"^\S.*\S$"}}, [f"{'文字列' * 20}{one}" for one in range(3_000)]),
        ({"items": {"pattern": r"^https?://[^\s/$.?#].[^\s]*$"}}, [f"https://{'文' * 52}" for one in range(3_000)]),
    ],
)
def test_a_usual_pattern_on_usual_values_is_checked_within_the_budget(schema: Any, value: Any) -> None:
    assert VALIDATOR.compile(schema)(value) == []


def test_names_that_are_not_evaluated_beside_patterns_are_told_of(caplog: pytest.LogCaptureFixture) -> None:
    schema = {"patternProperties": {"^x-.+": True}, "unevaluatedProperties": False}
    with caplog.at_level(logging.WARNING):
        assert JsonschemaValidator().compile(schema)({"other": 1}) == []
    assert "unevaluatedProperties" in caplog.text
