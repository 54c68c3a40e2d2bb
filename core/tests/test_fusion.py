"""Rankings made into one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from portico.fusion import fuse_by_rank

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
