"""One ranking of the scores of several requests."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from portico import Considered
from portico_basics.contextual.lexical import Ranking, RequestScores, fuse

NAMES = st.sampled_from([f"f{number}" for number in range(14)])
# Sixteenths: their sums are exact, so that no rounding stands between what is compared.
BM25 = st.integers(1, 160).map(lambda number: number / 16)
COSINES = st.integers(-16, 16).map(lambda number: number / 16)
REQUESTS = st.builds(
    lambda lexical, cosines: RequestScores(lexical, 16.0, cosines),
    st.dictionaries(NAMES, BM25),
    st.dictionaries(NAMES, COSINES),
)
RANKINGS = st.sampled_from(["fused", "lexical", "vector"])


@given(st.lists(REQUESTS, max_size=4), RANKINGS)
def test_each_function_that_something_speaks_for_is_ranked_once_and_no_other(
    requests: list[RequestScores], ranking: Ranking
) -> None:
    ranked = [each.name for each in fuse(requests, ranking)]
    by_words = {name for each in requests for name in each.lexical}
    by_vectors = {name for each in requests for name, cosine in each.cosines.items() if cosine > 0}
    expected = {"fused": by_words | by_vectors, "lexical": by_words, "vector": by_vectors}[ranking]
    assert sorted(ranked) == sorted(expected)


@given(st.lists(REQUESTS, max_size=4), RANKINGS)
def test_the_order_of_requests_and_of_their_scores_does_not_matter(
    requests: list[RequestScores], ranking: Ranking
) -> None:
    turned = [
        RequestScores(dict(reversed(each.lexical.items())), each.greatest, dict(reversed(each.cosines.items())))
        for each in reversed(requests)
    ]
    assert fuse(turned, ranking) == fuse(requests, ranking)


@given(st.lists(REQUESTS, min_size=1, max_size=4), NAMES, st.integers(0, 3), BM25, st.booleans())
def test_what_fits_better_does_not_stand_further_behind(
    requests: list[RequestScores], name: str, which: int, more: float, words: bool
) -> None:
    which %= len(requests)
    one = requests[which]
    lexical, cosines = dict(one.lexical), dict(one.cosines)
    if words:
        lexical[name] = lexical.get(name, 0.0) + more
    else:
        cosines[name] = max(cosines.get(name, 0.0), 0.0) + more
    better = [*requests]
    better[which] = RequestScores(lexical, one.greatest, cosines)
    before = [each.name for each in fuse(requests)]
    after = [each.name for each in fuse(better)]
    if name in before:
        assert after.index(name) <= before.index(name)


@given(st.lists(REQUESTS, max_size=4), RANKINGS)
def test_a_request_that_found_nothing_changes_nothing(requests: list[RequestScores], ranking: Ranking) -> None:
    nothing = RequestScores({}, 30.0)
    assert fuse([*requests, nothing], ranking) == fuse(requests, ranking)


@given(REQUESTS, st.integers(2, 4))
def test_a_request_made_twice_is_one(request: RequestScores, times: int) -> None:
    assert fuse([request] * times) == fuse([request])


@given(REQUESTS)
def test_one_request_alone_goes_by_its_halves(request: RequestScores) -> None:
    by_words, by_vectors = fuse([request], "lexical"), fuse([request], "vector")
    scores, cosines = request.lexical, request.cosines
    assert [each.name for each in by_words] == sorted(scores, key=lambda name: (-scores[name], name))
    assert [each.name for each in by_vectors] == sorted(
        (name for name in cosines if cosines[name] > 0), key=lambda name: (-cosines[name], name)
    )
    assert all(each.score == cosines[each.name] for each in by_vectors)


@given(st.lists(REQUESTS, min_size=1, max_size=4))
def test_the_halves_shown_are_the_best_of_any_request(requests: list[RequestScores]) -> None:
    for each in fuse(requests):
        assert each.lexical == max(one.lexical.get(each.name, 0.0) / 16.0 for one in requests)
        measured = [one.cosines[each.name] for one in requests if each.name in one.cosines]
        assert each.vector == max(measured, default=0.0)


def test_the_best_of_each_request_stand_before_the_second_best_of_one() -> None:
    weather = RequestScores({}, 1.0, {"forecast": 0.9, "radar": 0.7, "pollen": 0.7})
    travel = RequestScores({}, 1.0, {"flights": 0.6, "radar": 0.3})
    assert [each.name for each in fuse([weather, travel])][:2] == ["forecast", "flights"]


def test_equal_scores_stand_by_their_names() -> None:
    request = RequestScores(cosines={"b": 0.5, "c": 0.5, "a": 0.5})
    assert fuse([request]) == [Considered(name, "chosen", 0.5, 0.0, 0.5) for name in "abc"]


@pytest.mark.parametrize("requests", [[], [RequestScores()], [RequestScores(cosines={"a": 0.0, "b": -0.5})]])
def test_without_anything_found_there_is_no_ranking(requests: list[RequestScores]) -> None:
    assert fuse(requests) == []
