"""Whether what an answer quotes stands in a source."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from portico._chat.citations import Citations, find_quotations
from portico._chat.messages import Source

PASSAGE = (
    "It’s a port: a protocol – small, and asynchronous.\nAdapters  stand behind it. 端口是协议，很小，也是异步的。"
)
SOURCES = (
    Source(1, "Plans are data that anybody can read."),
    Source(2, PASSAGE, name="How ports and adapters meet"),
    Source(3, "Then `portico index docs[0]` only reads what is new."),
    Source(4, '- **Milvus**: see [the *large* page](big.md "Big"), [or not][1], for 1.5 billion at -5 degrees.'),
    Source(5, "Call :func:`~json.dumps`, or see `the small list <https://example.org>`_ of them."),
)


@pytest.mark.parametrize(
    "answer",
    [
        "“It's a port: a protocol - small, and asynchronous” [2].",
        '"small, and asynchronous. Adapters stand behind it."',
        "„plans are data that anybody can read!“",
        "«Plans are … anybody can read»",
        "“Plans are data that anybody [who wants to] can read”",
        "“[…] data that anybody can read [1].”",
        "> Plans are data\n> that anybody can read. [1]\n",
        "「端口是协议，很小」",
        "See “How ports and adapters meet”.",
        "The so-called “port” and “a big thing”.",
        "`“in code nobody is quoted at all”` and\n```\n“nor is anybody in a fence”\n```",
        "“Then `portico index docs[0]` only reads what is new.” [3]",
        "“Milvus: see the large page, or not, for 1.5 billion at -5 degrees”",
        "> **Milvus**: see [the *large* page](big.md), [or not](a.md), for 1.5 billion",
        "“Milvus. See the large page or not, for 1.5 billion”",
        "“Call `json.dumps`, or see the small list of them.”",
        "> Then `portico index docs[0]` only\n> reads what is new.\n",
        "“Then portico index docs[0] only reads”, and “`anybody` can read”",
        "An open “quote that has no end and goes on and on",
        'The tower is 5" high and the lamp\n\nis 3" wide and so on.',
    ],
)
def test_what_stands_in_a_source_is_found(answer: str) -> None:
    assert Citations.unfound_quotations(answer, SOURCES) == ()


@pytest.mark.parametrize(
    ("answer", "unfound"),
    [
        ("“Plans are data that nobody can read” [1].", ("Plans are data that nobody can read",)),
        ('"Anybody can read … plans are data"', ("Anybody can read … plans are data",)),
        ("“Plans are data … small, and asynchronous”", ("Plans are data … small, and asynchronous",)),
        ("> Ports are classes, and big.\n\nSo it is.", ("Ports are classes, and big.",)),
        ("“Then `portico run` only reads what is new”", ("Then `portico run` only reads what is new",)),
        ("“or not, for 15 billion at”", ("or not, for 15 billion at",)),
        ("“1.5 billion at 5 degrees”", ("1.5 billion at 5 degrees",)),
        ("“see the large big.md page, or not”", ("see the large big.md page, or not",)),
        ("「端口是类，而且很大」", ("端口是类，而且很大",)),
    ],
)
def test_what_no_source_says_is_told(answer: str, unfound: tuple[str, ...]) -> None:
    assert Citations.unfound_quotations(answer, SOURCES) == unfound


words = st.lists(st.text(alphabet="abcäß", min_size=1, max_size=6), min_size=6, max_size=20)


@given(words, st.data())
def test_any_part_of_a_passage_can_be_quoted(passage: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(passage) - 5))
    end = data.draw(st.integers(start + 4, len(passage)))
    quoted = " ".join(passage[start:end])
    opening, closing = data.draw(st.sampled_from(["“”", '""', "„“", "«»"]))
    source = Source(1, "\n".join(passage).upper())
    assert Citations.unfound_quotations(f"It says {opening}{quoted}{closing} [1].", [source]) == ()
    assert Citations.unfound_quotations(f"It says {opening}{quoted} zebra{closing} [1].", [source]) == (
        f"{quoted} zebra",
    )


@pytest.mark.fuzz
@given(st.text(max_size=80) | st.text(alphabet='“”„"«»> \n[…].a', max_size=80))
def test_any_text_can_be_searched(text: str) -> None:
    for quotation in find_quotations(text):
        assert "\n" not in quotation
    assert isinstance(Citations.unfound_quotations(text, SOURCES), tuple)


def test_long_texts_full_of_quotation_marks_take_no_time_to_speak_of() -> None:
    for text in (
        "“" * 100_000,
        '"a b c d' * 20_000,
        "“a" * 50_000,
        ">" * 100_000,
        "> a\n" * 30_000,
        "“[a](b" * 30_000,
        "„a“" * 30_000,
        "[a" * 50_000,
        "`<a" * 50_000,
        ":a" * 50_000,
    ):
        Citations.unfound_quotations(text, SOURCES)
        Citations.unfound_quotations("“four words are enough”", [Source(1, text)])
