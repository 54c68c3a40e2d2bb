"""Passages come apart where a reader would cut them, at exact places."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from portico_basics.extractive._text import LONGEST, split
from portico_basics.extractive._words import Words, language_of


def parts(text: str) -> list[str]:
    return [text[unit.start : unit.end] for unit in split(text)]


@given(st.one_of(st.text(), st.text(alphabet="aA.?! \n-#`|=\t1:“”。", max_size=200)))
@settings(deadline=None)
def test_units_are_in_order_do_not_overlap_and_are_not_blank(text: str) -> None:
    end = 0
    for unit in split(text):
        assert end <= unit.start < unit.end <= len(text)
        assert unit.end - unit.start <= LONGEST
        assert text[unit.start : unit.end].strip()
        end = unit.end


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One is here. Two is there! Is three? Yes.", ["One is here.", "Two is there!", "Is three?", "Yes."]),
        ("Dr. J. Smith came, e.g. by bus. He left.", ["Dr. J. Smith came, e.g. by bus.", "He left."]),
        ("Set `a. B` in portico.toml. Then run it.", ["Set `a. B` in portico.toml.", "Then run it."]),
        ("Das gilt z. B. für Musik. Es endet.", ["Das gilt z. B. für Musik.", "Es endet."]),
        ("It was 3.5 bar. (See below.) Good.", ["It was 3.5 bar.", "(See below.)", "Good."]),
        ("He said “Go.” She went.", ["He said “Go.”", "She went."]),
        ("一つ目です。二つ目です。", ["一つ目です。", "二つ目です。"]),
        ("A sentence over\ntwo lines. Another.", ["A sentence over\ntwo lines.", "Another."]),
        ("# Title\n\nText.\n\nTitle\n-----\nMore.", ["Text.", "More."]),
        ("- one\n- two\n  goes on\n3. three", ["one", "two\n  goes on", "three"]),
        ("| a | b |\n|---|---|\n| c | d |", ["| a | b |", "| c | d |"]),
        ("Text.\n```sh\nrun. Now.\n```\nMore.", ["Text.", "```sh\nrun. Now.\n```", "More."]),
        ("> Quoted words go here. And here.\n> More.", ["> Quoted words go here.", "And here.", "> More."]),
        (
            "class A:\n    x = 1\n\n    def f(self):\n        return 1",
            ["class A:\n    x = 1", "    def f(self):\n        return 1"],
        ),
    ],
)
def test_a_text_comes_apart(text: str, expected: list[str]) -> None:
    assert parts(text) == expected


def test_a_unit_knows_its_headings() -> None:
    units = split("# Guide\n\n## Setup\n\nOne.\n\n## Use\n\nTwo.\n\n# Other\n\nThree.")
    assert [unit.heading for unit in units] == ["Guide Setup", "Guide Use", "Other"]


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("How do I write it?", "english"),
        ("faiss", "english"),
        ("Does the process die?", "english"),
        ("Wie schreibe ich das?", "german"),
        ("Was kosten die Lampen?", "german"),
        ("Comment écrire un connecteur ?", "french"),
        ("¿Dónde está el archivo?", "spanish"),
        ("Dove si trova il file?", "italian"),
        ("Waar staat het bestand?", "dutch"),
        ("Onde está o arquivo?", "portuguese"),
    ],
)
def test_the_language_of_a_question_shows_in_its_small_words(question: str, language: str) -> None:
    assert language_of(question) == language


def test_words_come_to_the_same_term_in_all_their_forms() -> None:
    words = Words("english")
    for forms in (
        "write writes writing written wrote",
        "index indexes indices indexing",
        "install installation installed",
    ):
        assert len(set(words.terms(forms))) == 1, f"{forms}: {words.terms(forms)}"
    assert words.terms("get_text_search SearchConnector HTTPServer") == words.terms(
        "text search search connector http server"
    )
    assert words.terms("isn't don’t what's it’s how") == []
