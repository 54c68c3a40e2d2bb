"""Words of a plan that are spelled otherwise than what they mean: functions, and one letter off."""

from __future__ import annotations

from itertools import product

import pytest

from portico._functions.functions import FunctionSpec
from portico._plans.xml_form.steps import FunctionNames, _one_letter_off

WORDS = [
    "".join(word) for n, letters in enumerate(["", "abc", "abc", "abc", "ab"]) for word in product(letters, repeat=n)
]
MANUALS = {
    name: FunctionSpec(name, "", {}, {})
    for name in ["Writer-Poem", "echo", "A-Twice", "B-Twice", "Writer-Strasse", "Short-Long_Poem", "X_y", "X-y"]
}


def one_change(word: str) -> set[str]:
    """Return every word that one change of at most one letter, or a swap, makes of a word."""
    cuts = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    return {
        word,
        *(left + right[1:] for left, right in cuts),
        *(left + letter + right for left, right in cuts for letter in "abc"),
        *(left + letter + right[1:] for left, right in cuts if right for letter in "abc"),
        *(left + right[1] + right[0] + right[2:] for left, right in cuts if len(right) > 1),
    }


def test_one_letter_off_is_what_one_change_of_a_letter_or_a_swap_makes() -> None:
    for word in WORDS:
        near = one_change(word)
        assert {other for other in WORDS if _one_letter_off(word, other)} == near & set(WORDS), word


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Writer.Poem", "Writer-Poem"),
        ("Writer-Poem", "Writer-Poem"),
        ("WRITER.poem", "Writer-Poem"),
        ("writer_poem", "Writer-Poem"),
        ("_GLOBAL_FUNCTIONS_.Writer-Poem", "Writer-Poem"),
        ("poem", "Writer-Poem"),
        ("echo", "echo"),
        ("ECHO", "echo"),
        ("_GLOBAL_FUNCTIONS_.Echo", "echo"),
        ("short.long.poem", "Short-Long_Poem"),
        ("long_poem", "Short-Long_Poem"),
        ("X.y", "X-y"),
        ("X_y", "X_y"),
        ("A.twice", "A-Twice"),
    ],
)
def test_a_function_is_found_in_any_case_and_without_its_plugin(written: str, name: str) -> None:
    names = FunctionNames(MANUALS)
    for _ in range(2):
        assert names.find(written) == (name, MANUALS[name])


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Twice", "Twice"),  # of two plugins
        ("x_Y", "x_Y"),  # two functions, but for the hyphen
        ("Writer.Straße", "Writer-Straße"),
        ("Other.Poem", "Other-Poem"),
        ("Other.echo", "Other-echo"),
        ("a.b.c", "a.b.c"),
        ("_GLOBAL_FUNCTIONS_.nothing", "nothing"),
        ("_global_functions_.echo", "_global_functions_-echo"),
        ("", ""),
        (".", "-"),
    ],
)
def test_what_no_function_is_called_stays_as_it_is_written_but_for_the_dot(written: str, name: str) -> None:
    assert FunctionNames(MANUALS).find(written) == (name, None)


@pytest.mark.parametrize("written", ["Writer.Poem", "poem", "writer-poem"])
def test_without_a_catalogue_no_name_is_another(written: str) -> None:
    assert FunctionNames(None).find(written) == (written.replace(".", "-"), None)
    assert FunctionNames({}).find(written) == (written.replace(".", "-"), None)
