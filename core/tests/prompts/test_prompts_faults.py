"""Errors of templates: the place in words, the line around it, and the mark under it."""

from __future__ import annotations

from hypothesis import example, given, strategies as st

from portico._prompts.prompt import Prompt

lines = st.text("ab {", max_size=8) | st.integers(0, 140).map(lambda length: ("abcdefghij" * 14)[:length])


@given(st.lists(lines, max_size=3), lines, st.lists(lines, max_size=2), st.integers(0, 140), st.integers(1, 100))
@example([], "", ["the next line"], 0, 1)
@example(["", ""], "{{$a-b}}", [], 2, 4)
@example(["before"], "x" * 41, ["behind", "it"], 41, 3)
@example([], "x" * 140, [], 139, 9)
def test_an_error_tells_line_and_column_and_marks_the_place_in_the_line_that_it_shows(
    before: list[str], line: str, behind: list[str], column: int, length: int
) -> None:
    column = min(column, len(line))
    source = "\n".join([*before, line, *behind])
    error = Prompt.fault("Wrong.", source, sum(len(each) + 1 for each in before) + column, length, name="letter")
    message, shown, mark = str(error).split("\n")
    assert (error.line, error.column) == (len(before) + 1, column + 1)
    assert message == f"letter, line {error.line}, column {error.column}: Wrong."
    # Forty characters before the place, and eighty in all.
    first = max(0, column - 40)
    around = line[first : first + 80]
    left = "  … " if first else "  "
    assert shown == left + around.rstrip()
    marked = min(length, len(around) - (column - first))
    assert mark == " " * (len(left) + column - first) + "^" * (marked or 1), "what is missing at an end has a mark too"


def test_a_place_without_a_length_is_one_character_of_the_prompt() -> None:
    assert str(Prompt.fault("There is no name.", "Dear {{$}},", 7)) == (
        "prompt, line 1, column 8: There is no name.\n  Dear {{$}},\n         ^"
    )
