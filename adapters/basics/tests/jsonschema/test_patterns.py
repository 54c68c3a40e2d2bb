"""Patterns mean what ECMA-262 says, and those that may never end are refused."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from portico_basics.jsonschema._dialect import python_pattern, written_pattern


def matches(pattern: str, text: str) -> bool:
    return re.search(python_pattern(pattern), text) is not None


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("^a$", ["a"], ["a\n", "ba", "ab"]),
        (r"^\d+$", ["12"], ["٣", "a"]),
        (r"\w", ["a", "_"], ["é", "-"]),
        (r"^\$[0-9]$", ["$1"], ["1", "$1\n"]),
        ("[$]", ["$"], ["a"]),
        (r"[^\]$]", ["a"], ["]", "$"]),
        ("[[a]", ["[", "a"], ["b"]),
        ("^[a&&b||c~~-]+$", ["&", "|", "-", "~"], ["d"]),
        ("a|^$", ["a", ""], ["b", "\n"]),
        (r"^(?<year>\d{4})-\k<year>$", ["1999-1999"], ["1999-2000"]),
        ("^(?=.*a)(?!b).{2,}?$", ["ca"], ["ba", "a"]),
        ("(?<=a)b(?<!c)", ["ab"], ["cb"]),
        (r"^(?:ab)*c\/$", ["ababc/"], ["aabc/"]),
        (r"\u00e9", ["é"], ["e"]),
    ],
)
def test_a_pattern_matches_as_in_ecma_262(pattern: str, yes: list[str], no: list[str]) -> None:
    assert [text for text in yes if not matches(pattern, text)] == []
    assert [text for text in no if matches(pattern, text)] == []


ENDLESS = [
    "(a+)+", "(a*)*", "(a+)*b", "([a-z]+)+$", "(?:a+){2,}", "((a+))+", "(a+|b)+", "(x+x?)*", "(a?b*)+", r"(\w+\s?)*$",
    "^(([a-z])+.?)+$", "(?<n>a+)+", "(a{1,})+", "((ab)*)*", "(a+){50}",
]  # fmt: skip


@pytest.mark.parametrize("pattern", ENDLESS)
def test_a_repetition_of_what_itself_repeats_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="repeats what itself repeats"):
        python_pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        r"^([a-z]+\.)+[a-z]+$", r"^\d{1,3}(\.\d{1,3}){3}$", "^[^@]+@[^@]+$", "(a+b)*", "(ab)+", "a*b*c*", "(a+)?",
        "(a+){1}", r"^[A-Z][a-z]+( [A-Z][a-z]+)*$", "(?:[0-9]{4},)*", "(?=a+)+",
    ],
)  # fmt: skip
def test_a_repetition_with_something_in_between_is_taken(pattern: str) -> None:
    assert written_pattern(python_pattern(pattern)) == pattern


@pytest.mark.parametrize(
    "pattern", [r"\p{Letter}", "(", ")(", "a)", "[a", "a**", "(?i)a", r"\cA", "[z-a]", "a" * 3 + "{2,1}"]
)
def test_a_pattern_that_python_cannot_match_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="cannot be used"):
        python_pattern(pattern)


@given(st.text(st.sampled_from("ab(|)[]^$*+?{}1,2\\d-:=!<>&~."), max_size=14))
def test_any_text_is_a_pattern_or_refused(text: str) -> None:
    try:
        pattern = python_pattern(text)
    except ValueError:
        return
    re.compile(pattern)


@given(st.text(st.sampled_from("ab.*+?|()"), max_size=8), st.text(st.sampled_from("ab"), max_size=12))
def test_a_pattern_without_anchors_means_the_same_to_python(pattern: str, text: str) -> None:
    try:
        read = python_pattern(pattern)
    except ValueError:
        return
    assert bool(re.search(read, text)) == bool(re.search(pattern, text))
