"""Text that is shown while it is being written."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from portico_cli.written_text import WrittenText

words = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=1, max_size=12)
texts = st.lists(
    words | st.sampled_from([" ", "  ", "\n", "\n\n", "    ", "- ", "```", "| ", "# ", "\t"]), max_size=60
).map("".join)


def written(pieces: Sequence[str], width: int = 40) -> str:
    out: list[str] = []
    text = WrittenText(out.append, lambda: width)
    for piece in pieces:
        text.feed(piece)
    text.end()
    return "".join(out)


@given(texts, st.lists(st.integers(0, 400), max_size=10), st.integers(10, 80))
def test_the_pieces_in_which_a_text_comes_make_no_difference(text: str, cuts: list[int], width: int) -> None:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[start:end] for start, end in pairwise(places)]
    assert written(pieces, width) == written([text], width)


@given(texts, st.integers(10, 80))
def test_no_word_is_lost_added_or_moved(text: str, width: int) -> None:
    assert written([text], width).split() == text.split()


@given(st.lists(words, min_size=1, max_size=40), st.integers(24, 80))
def test_no_line_of_prose_is_too_wide(prose: list[str], width: int) -> None:
    from rich.cells import cell_len

    lines = written(["so " + " ".join(prose)], width).split("\n")
    assert all(cell_len(line) <= width or len(line.split()) == 1 for line in lines)


def test_lines_that_were_broken_because_they_were_full_are_joined() -> None:
    full = "A line of a document that somebody broke at a width of sixty."
    assert written([f"{full}\nIt goes on here.\n\nShort.\nNew."], 200) == f"{full} It goes on here.\n\nShort.\nNew.\n"
    for own in ("- item", "1. one", "# Title", "| cell", "> said", "    code", "```"):
        assert written([f"{full}\n{own}"], 200) == f"{full}\n{own}\n"


def test_code_and_tables_are_written_as_they_are() -> None:
    code = "```python\nvalue  =  function(argument_one, argument_two, argument_three)\n\n\nmore = 1\n```\n"
    assert written([code], 20).replace("\n\n\n", "\n\n") == code.replace("\n\n\n", "\n\n")
    row = "| one | two | three | four | five | six |\n"
    assert written([row, row], 20) == row + row


def test_blank_lines_around_a_text_are_left_out() -> None:
    assert written(["\n\n  \nHello\n\n\n\nyou\n\n"]) == "Hello\n\nyou\n"
    assert written(["\n \n"]) == ""
    assert written([]) == ""
