"""A text split into its requests: nothing is lost, nothing is asked for that means nothing."""

from __future__ import annotations

import pytest
from hypothesis import example, given, strategies as st

from portico.plugins import words
from portico_basics.contextual.choosing import requests_in

PIECES = st.sampled_from(
    [
        "Book a cheap flight",
        "thanks",
        "and then",
        "Also",
        ".",
        "!",
        "\n",
        "。",
        "play some jazz music",
        "3.5",
        '"',
        " ",
        "查天气",
    ]
)


@example(" and then also ")
@given(st.text() | st.lists(PIECES).map(" ".join))
def test_a_text_that_is_not_blank_makes_a_request_and_no_request_is_blank(text: str) -> None:
    found = requests_in(text)
    assert bool(found) == bool(text.strip())
    assert all(part.strip() for part in found)


@given(st.lists(PIECES).map(" ".join))
def test_words_are_not_made_up_and_stay_in_order(text: str) -> None:
    rest = iter(words(text))
    made = words(" ".join(requests_in(text)))
    assert all(word in rest for word in made), f"{made} is not in the order of {words(text)}"


@given(
    st.lists(st.sampled_from(["Book a cheap flight.", "Play some jazz music!", "Water the green plants?"]), min_size=1)
)
def test_each_sentence_that_asks_for_something_is_a_request(sentences: list[str]) -> None:
    for between in (" ", "\n", "\n\n", "  \t "):
        assert requests_in(between.join(sentences)) == tuple(sentences)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Find cheap flights to Rome and then book a quiet hotel",
            ("Find cheap flights to Rome", "book a quiet hotel"),
        ),
        ("Hello! Find cheap flights to Rome. Thank you.", ("Hello! Find cheap flights to Rome. Thank you.",)),
        ("It costs 3.5 at example.org today", ("It costs 3.5 at example.org today",)),
        ("给我的老板发一封邮件。播放一首周杰伦的歌！", ("给我的老板发一封邮件。", "播放一首周杰伦的歌！")),
        ("आज मौसम कैसा है। मेरे लिए होटल बुक करो।", ("आज मौसम कैसा है।", "मेरे लिए होटल बुक करो।")),
        ("???", ("???",)),
        ("hi", ("hi",)),
        (" \n ", ()),
        ("", ()),
    ],
)
def test_requests_of(text: str, expected: tuple[str, ...]) -> None:
    assert requests_in(text) == expected


@pytest.mark.parametrize("text", [" ", ". ", "a then ", ")", "。", "\n ", ",", "then "])
def test_long_texts_of_one_thing_are_read_in_one_go(text: str) -> None:
    # Ten seconds and more where a pattern goes over the text again from each place: pytest's time limit says so.
    requests_in(f".{text * 50_000}")
