"""What happened so far, within a budget of tokens."""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies as st

from portico._chat.messages import Message
from portico._planning.prompts import PromptText, Round

TEXTS = st.text(max_size=400) | st.integers(0, 3_000).map(lambda size: "long words " * size)
ROUNDS = st.lists(st.builds(Round, st.integers(0, 200), st.lists(TEXTS, max_size=3).map(tuple)), min_size=1, max_size=6)
NOTE = 30
"""Tokens that the note of what was left out takes by itself, at most."""

SMALLEST = 60


@given(TEXTS, st.integers(0, 500))
def test_a_text_is_whole_or_has_a_note_and_its_beginning_and_end(text: str, tokens: int) -> None:
    short = PromptText.shorten(text, tokens)
    if Message.estimate_tokens(text) <= tokens:
        assert short == text
        return
    assert Message.estimate_tokens(short) <= max(tokens, NOTE)
    head, _, rest = short.partition("[… ")
    note, _, tail = rest.partition(" characters are left out here …]")
    gone, total = (int(number.replace(",", "")) for number in note.split(" of "))
    assert total == len(text)
    assert len(head) + gone + len(tail) == total
    assert text.startswith(head)
    assert text.endswith(tail)


def test_no_character_is_cut_in_the_middle() -> None:
    assert "\ufffd" not in PromptText.shorten("走" * 1_000, 50)
    PromptText.shorten("\ud800" * 1_000, 50).encode("utf-8", "surrogatepass")


@given(ROUNDS, st.none() | st.integers(0, 3_000), st.none() | st.integers(60, 500))
def test_what_fits_stays_and_the_oldest_shrinks_first(
    rounds: list[Round], tokens: int | None, each: int | None
) -> None:
    gone, fitted = Round.fit(rounds, tokens=tokens, each=each)
    assert gone + len(fitted) == len(rounds)
    assert fitted, "the newest round is gone"
    most = tuple(
        tuple(text if each is None else PromptText.shorten(text, each) for text in one.observations)
        for one in rounds[gone:]
    )
    texts = [
        (text, text != before)
        for one, was in zip(fitted, most, strict=True)
        for text, before in zip(one.observations, was, strict=True)
    ]
    last = max((place for place, (_, shrunk) in enumerate(texts) if shrunk), default=0)
    assert all(Message.estimate_tokens(text) <= SMALLEST for text, _ in texts[:last]), (
        "a newer one shrank before an older one"
    )
    total = sum(one.fixed + sum(map(Message.estimate_tokens, one.observations)) for one in fitted)
    whole = sum(one.fixed for one in rounds) + sum(
        Message.estimate_tokens(text if each is None else PromptText.shorten(text, each))
        for one in rounds
        for text in one.observations
    )
    if tokens is None or whole <= tokens:
        assert (gone, total) == (0, whole)
    elif len(fitted) > 1:
        assert total <= tokens, "more is kept than there is room for"


def test_a_result_is_written_as_words_or_as_json() -> None:
    assert PromptText.plain("two\nlines") == "two\nlines"
    assert PromptText.plain({"a": [1, None, "é"]}) == '{"a": [1, null, "é"]}'


@given(TEXTS | st.lists(TEXTS, max_size=3), st.integers(0, 500))
def test_a_value_among_many_has_its_share_on_one_line(value: Any, among: int) -> None:
    written = PromptText.data(value, among=among)
    assert len(written.splitlines()) <= 1
    assert Message.estimate_tokens(written) <= max(SMALLEST, min(1_000, 8_000 // max(among, 1)))
    if Message.estimate_tokens(PromptText.line(value)) <= SMALLEST:
        assert written == PromptText.line(value)
