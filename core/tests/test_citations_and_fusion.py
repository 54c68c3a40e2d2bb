"""Marks of citations in answers, and rankings made into one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico.chat import Citation, Source
from portico.citations import cited_numbers, find_citations, unbacked_citations
from portico.fusion import fuse_by_rank


@given(st.lists(st.integers(1, 9999), max_size=6))
def test_every_mark_is_found_in_the_order_of_first_use(numbers: list[int]) -> None:
    text = " ".join(f"A statement [{number}]." for number in numbers)
    assert cited_numbers(text) == tuple(dict.fromkeys(numbers))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Both [1][2].", (1, 2)),
        ("Both [1, 2] and [3].", (1, 2, 3)),
        ("[2] first", (2,)),
        ("端口是协议[1]。", (1,)),
        ("“Quoted” [1]", (1,)),
        ("items[1] and items[1][2] are code", ()),
        ("`[1]` and ```\n[2]\n``` are code", ()),
        ("unclosed ``` [3]", ()),
        ("a link [1](http://example.org)", ()),
        ("[12345] [a] [] [ 1 ] [1-2]", ()),
        ("", ()),
    ],
)
def test_what_is_a_mark_and_what_is_not(text: str, numbers: tuple[int, ...]) -> None:
    assert cited_numbers(text) == numbers


def test_long_texts_full_of_brackets_take_no_time_to_speak_of() -> None:
    for text in (
        "[1, " * 50_000,
        "[" * 100_000,
        "[1" + " " * 100_000,
        "`" * 100_000,
        "```[1]" * 20_000,
        "[1]" * 50_000,
    ):
        cited_numbers(text)


SOURCES = [Source(1, "Ports are protocols.", "Ports", "file:///a.md#L1"), Source(2, "Plans are data.")]


def test_a_citation_has_what_its_source_has() -> None:
    assert find_citations("So it is [2], [1] and [7].", SOURCES) == (
        Citation(2, None, None, "Plans are data."),
        Citation(1, "Ports", "file:///a.md#L1", "Ports are protocols."),
    )
    assert unbacked_citations("So it is [2], [1] and [7, 9].", SOURCES) == (7, 9)


rankings = st.lists(st.lists(st.sampled_from("abcdefg"), unique=True), max_size=4)


@given(rankings)
def test_fusing_loses_nothing_and_adds_nothing(drawn: list[list[str]]) -> None:
    fused = fuse_by_rank(drawn)
    assert sorted(fused) == sorted({thing for ranking in drawn for thing in ranking})


@given(st.lists(st.sampled_from("abcdefg"), unique=True), st.integers(1, 4))
def test_rankings_that_agree_stay_as_they_are(ranking: list[str], count: int) -> None:
    assert fuse_by_rank([ranking] * count) == ranking


@given(rankings)
def test_what_is_better_everywhere_is_better_in_the_end(drawn: list[list[str]]) -> None:
    fused = fuse_by_rank(drawn)
    for better in fused:
        for worse in fused:
            everywhere = all(
                better in ranking and ranking.index(better) < ranking.index(worse)
                for ranking in drawn
                if worse in ranking
            )
            if everywhere and better != worse and any(worse in ranking for ranking in drawn):
                assert fused.index(better) < fused.index(worse)


def test_things_of_one_key_count_as_one_and_once_for_each_ranking() -> None:
    fused = fuse_by_rank([["a", "A", "b"], ["c", "B"]], key=str.casefold)
    assert fused == ["b", "a", "c"]
