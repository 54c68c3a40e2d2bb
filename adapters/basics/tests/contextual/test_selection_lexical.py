"""The lexical index: BM25, the same to the last bit whatever happened before."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from portico_basics.contextual.lexical import LexicalIndex, RequestScores, best

NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
TEXTS = st.lists(st.sampled_from(["rain", "city", "poem", "mail", "send", "天气", "the"]), max_size=8).map(" ".join)


@given(st.dictionaries(NAMES, TEXTS), TEXTS)
def test_the_order_of_the_functions_does_not_matter(texts: dict[str, str], request: str) -> None:
    assert LexicalIndex(texts).score(request) == LexicalIndex(dict(sorted(texts.items()))).score(request)


@given(st.dictionaries(NAMES, TEXTS), TEXTS, st.lists(NAMES))
def test_the_scores_of_some_are_those_that_all_have(texts: dict[str, str], request: str, names: list[str]) -> None:
    index = LexicalIndex(texts)
    found = index.score(request)
    some = {name: score for name, score in found.lexical.items() if name in names}
    assert index.score_of(request, names) == RequestScores(some, found.greatest)


@given(st.dictionaries(NAMES, TEXTS), TEXTS)
def test_scores_lie_between_nothing_and_the_greatest(texts: dict[str, str], request: str) -> None:
    found = LexicalIndex(texts).score(request)
    assert all(0 < score < found.greatest for score in found.lexical.values())
    assert set(found.lexical) == {name for name, text in texts.items() if set(text.split()) & set(request.split())}


@given(st.dictionaries(NAMES, TEXTS, min_size=1), TEXTS, TEXTS)
def test_more_words_never_score_less(texts: dict[str, str], request: str, more: str) -> None:
    index = LexicalIndex(texts)
    before, after = index.score(request), index.score(f"{request} {more}")
    for name, score in before.lexical.items():
        assert after.lexical[name] >= score * (1 - 1e-12)


@given(st.dictionaries(NAMES, TEXTS), st.permutations(["rain", "city", "poem", "send"]), st.integers(1, 3))
def test_neither_order_nor_repetition_in_a_request_matters(texts: dict[str, str], order: list[str], times: int) -> None:
    index = LexicalIndex(texts)
    assert index.score(" ".join(order * times)) == index.score("rain city poem send")


def test_the_formula_is_okapi_bm25() -> None:
    index = LexicalIndex({"a": "rain rain city", "b": "poem"})
    rarity = math.log(1 + (2 - 1 + 0.5) / (1 + 0.5))
    part = 2 * 2.5 / (2 + 1.5 * (0.25 + 0.75 * 3 / 2))
    assert math.isclose(index.score("rain").lexical["a"], rarity * part)
    unknown = math.log(1 + (2 + 0.5) / 0.5)
    assert math.isclose(index.score("rain snow").greatest, 2.5 * (rarity + unknown))


def test_an_empty_index_finds_nothing() -> None:
    assert not LexicalIndex({}).score("rain").lexical
    assert not LexicalIndex({}).score_of("rain", ["a"]).lexical


def test_with_a_number_wanted_common_words_bring_no_more_functions_and_scores_stay_the_same() -> None:
    words = ("poem" if number % 10_000 == 7 else f"w{number}" for number in range(30_000))
    index = LexicalIndex({f"f{number}": f"get the value {word}" for number, word in enumerate(words)})
    found, every = index.score("get the poem", top=2), index.score("get the poem")
    assert set(found.lexical) == {"f7", "f10007", "f20007"}, "equal ones belong together, whatever their order"
    assert all(every.lexical[name] == score for name, score in found.lexical.items())
    assert found.greatest == every.greatest
    assert len(every.lexical) == 30_000
    assert len(index.score("get", top=2).lexical) == 30_000, "a word that all have finds all when there is no other"


@pytest.mark.parametrize(
    ("texts", "request_", "found"),
    [
        (["Book a room in a hotel.", "Send a mail to the list."], "Any bookings for the hotels?", 0),
        (["Calculate the distance between two towns.", "Sing."], "distances, calculated or calculating", 0),
        (["Gibt die Vorhersage des Wetters für eine Stadt.", "Schickt eine Mail an die Liste."], "Vorhersagen", 0),
        (["Réserve une chambre dans un hôtel.", "Donne la météo de la ville."], "des réservations", 0),
        (["Busca los vuelos de una ciudad a otra.", "Manda un correo a la lista."], "buscando un vuelo", 0),
        (["Найти рейсы между городами.", "天气预报 API"], "рейсы", 0),
        (["Найти рейсы между городами.", "天气预报 API"], "今天的天气", 1),
    ],
)
def test_forms_of_a_word_are_one_word_in_the_language_of_the_texts(texts: list[str], request_: str, found: int) -> None:
    scores = LexicalIndex(dict(zip("ab", texts, strict=True))).score(request_).lexical
    assert best(scores, 1) == ["ab"[found]]
