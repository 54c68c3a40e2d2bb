"""Rankings made into one."""

from __future__ import annotations

from hypothesis import given, strategies as st

from portico._search.fused import FusedSearch, fuse_by_rank

rankings = st.lists(st.lists(st.sampled_from("abcdefg"), unique=True), max_size=4)


@given(rankings)
def test_fusing_loses_nothing_and_adds_nothing(drawn: list[list[str]]) -> None:
    fused = fuse_by_rank(drawn)
    assert sorted(fused) == sorted({thing for ranking in drawn for thing in ranking})


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


def test_a_thing_counts_once_for_each_ranking_at_its_best_rank() -> None:
    assert fuse_by_rank([["a", "a", "b"], ["c", "b"]]) == ["b", "a", "c"]


Passage = tuple[str | None, str]
passages = st.tuples(
    st.sampled_from([None, "https://a.example/b", "http://a.example/b/", "https://a.example/c", "file:///d.md#L1"]),
    st.sampled_from(["", "one", "two", "three"]),
)


def fused(*rankings: list[Passage]) -> list[tuple[Passage, tuple[int, ...]]]:
    return FusedSearch.fuse(rankings, link=lambda passage: passage[0], text=lambda passage: passage[1])


@given(st.lists(passages, unique=True))
def test_no_text_of_a_single_ranking_is_lost(ranking: list[Passage]) -> None:
    assert {text for (_, text), _ in fused(ranking)} == {text for _, text in ranking}


@given(st.lists(st.lists(passages), max_size=4))
def test_no_place_is_lost_and_each_passage_names_the_rankings_that_have_it(drawn: list[list[Passage]]) -> None:
    found = fused(*drawn)
    spelled = {link and link.replace("https", "http").rstrip("/") for ranking in drawn for link, _ in ranking}
    assert {link and link.replace("https", "http").rstrip("/") for (link, _), _ in found} == spelled
    for passage, rankings in found:
        assert any(passage in drawn[number] for number in rankings)
        assert len(set(rankings)) == len(rankings)


def test_a_page_that_several_rankings_have_is_one_and_its_longest_text_stays() -> None:
    short, long = ("https://a.example/b", "A snippet"), ("http://a.example:80/b/?utm_source=x", "A whole paragraph")
    other = ("https://a.example/c", "Another")
    assert fused([other, short], [long]) == [(long, (0, 1)), (other, (0,))]
    assert fused([short], [short]) == [(short, (0, 1))]


def test_passages_of_one_document_stay_apart() -> None:
    first, second = ("file:///d.md#L1", "The first half"), ("file:///d.md#L1", "The second half")
    assert fused([first, second]) == [(first, (0,)), (second, (0,))]
    assert fused([first, second], [second]) == [(second, (0, 1)), (first, (0,))]
    lines = [("file:///d.md#L1", "The same"), ("file:///d.md#L9", "The same")]
    assert fused(lines) == [(line, (0,)) for line in lines]
