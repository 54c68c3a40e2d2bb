"""Which form of sentence answers which question, and what a quote is shown with."""

from __future__ import annotations

import asyncio

import pytest

from portico import ChatReply, ChatRequest, Message, Source
from portico_basics.extractive._text import as_read, split
from portico_basics.extractive._words import likely_language
from portico_basics.extractive.chat import ExtractiveChat


def answer(question: str, *texts: str, name: str = "lamps.md") -> ChatReply:
    sources = [Source(number, text, name) for number, text in enumerate(texts, 1)]
    return asyncio.run(ExtractiveChat().complete(ChatRequest([Message.of("user", question, *sources)])))


OTHERS = (
    "The keeper writes the log every evening.\n\nStairs lead to the gallery.",
    "Ships pass the island in the north. The harbour is small.",
    "In winter the ferry leaves twice a day. Tickets are sold on board.",
    "The garden has herbs and roses. It is watered at noon.",
)


@pytest.mark.parametrize(
    ("question", "text", "shown"),
    [
        (
            "What is a lantern?",
            "Lanterns are cleaned on Mondays. A lantern is the glass room around the lamp. Use no soap on a lantern.",
            "“A lantern is the glass room around the lamp.” [1]",
        ),
        (
            "What is a lantern?",
            "gallery\n    The walk around the tower.\n\nlantern\n    The glass room around the lamp.\n",
            "“lantern: The glass room around the lamp.” [1]",
        ),
        (
            "What does the option --bright do?",
            "--dim\nBurn with half of the power.\n\n--bright\nBurn with all the power there is in the batteries.\n",
            "“--bright: Burn with all the power there is in the batteries.” [1]",
        ),
        (
            "What is the default of LAMP_POWER?",
            ".. data:: LAMP_POWER\n\n    How bright it is.\n\n    Default: ``40``\n\n.. data:: HUE\n\n    Its hue.",
            "“LAMP_POWER: How bright it is. Default: `40`” [1]",
        ),
        (
            "How many watts does the lamp take?",
            "The lamp takes its watts from the batteries. The lamp takes 40 watts.",
            "“The lamp takes 40 watts.” [1]",
        ),
        (
            "What does lighting the lamp need?",
            "Lighting the lamp needs an\nIRON KEY of the keeper, which hangs in the kitchen.",
            "“Lighting the lamp needs an IRON KEY of the keeper, which hangs in the kitchen.” [1]",
        ),
        (
            "How is the lamp lit?",
            "See the chapter on how the lamp is lit. The lamp is lit by pressing the green button.",
            "“The lamp is lit by pressing the green button.” [1]",
        ),
        (
            "What happens when the lamp is not lit?",
            "When the lamp is lit, ships see it. When the lamp is not lit, the horn sounds.",
            "“When the lamp is not lit, the horn sounds.” [1]",
        ),
        (
            "What does an exclamation mark in the log mean?",
            "The log has signs for the weather. A leading “!” in the log announces a storm.",
            "“A leading “!” in the log announces a storm.” [1]",
        ),
        (
            "When was the lamp renewed?",
            "The lamp came from Hull. It was renewed in 1931.",
            "“The lamp came from Hull. It was renewed in 1931.” [1]",
        ),
        ("What repeats lists?", "for\n    Repeats lists.\n\nif\n    Tests.", "“for: Repeats lists.” [1]"),
        ("How do I opt in?", "Opting in\n    Opt in by mail.\n\nCosts\n    None.", "“Opting in: Opt in by mail.” [1]"),
        ("Who paints it?", "6.5\n    The keeper paints it in May.\n", "“The keeper paints it in May.” [1]"),
        (
            "Which colour means fog?",
            "Colours of the flags.\n\n| Colour | Meaning |\n| --- | --- |\n| red | storm |\n| grey | fog |\n",
            "| Colour | Meaning |\n| grey | fog |\n[1]",
        ),
        (
            "How do I dim the lamp?",
            "Call :meth:`~lamp.Lamp.dim`, or :meth:`_lamp.dim`, to dim it, as `the manual <https://a.example>`_ says.",
            "“Call `lamp.Lamp.dim`, or `_lamp.dim`, to dim it, as the manual says.” [1]",
        ),
    ],
)
def test_the_first_quote_is_the_answer_with_what_it_needs(question: str, text: str, shown: str) -> None:
    assert answer(question, text, *OTHERS).text.startswith(shown)


def test_a_sentence_at_the_beginning_of_a_section_is_shown_with_its_heading() -> None:
    reply = answer("When is the storm flag raised?", "It is raised by the keeper.", name="flags.md › The storm flag")
    assert reply.text == "The storm flag: “It is raised by the keeper.” [1]"


@pytest.mark.parametrize(
    "question",
    ["How do I light the lamp with Zigbee?", "What is the salary of a keeper in Norway?", "How do I bake bread?"],
)
def test_a_question_whose_subject_is_in_no_source_is_refused(question: str) -> None:
    reply = answer(question, "The lamp is lit by the keeper with a button.", *OTHERS)
    assert (reply.citations, reply.text) == ((), "Nothing relevant was found in the 5 passages searched.")


@pytest.mark.parametrize(
    ("question", "answers", "others"),
    [
        ("How Long are logs kept?", "Logs are kept for 30 days.", "The keeper is old."),
        ("Where Do I Find The Lamps?", "You find the lamps on a shelf.", "The sea is deep."),
        ("What is the WHO?", "The WHO is an agency.", "A keeper who is ill rests."),
        ("Who leads IT?", "Ann leads IT.", "A path leads to it."),
        ("How do I write a loop in C++?", "Write a loop in C++ with for.", "Write a loop in C with for."),
        ("How do I write a loop in C#?", "Write a loop in C# with for.", "Write a loop in F# with for."),
        ("How do I start .NET?", "Start .NET with a command.", "Start the net with a winch."),
        ("How do I start MySQL?", "Start MySQL with a command.", "Start the SQL log with a pen."),
        ("How do I start MySQL?", "Start mysql with a command.", "Start sql with a command."),
        ("How do I start GitHub?", "Start github with a command.", "Start git with a command."),
        ("What does IsEmpty return?", "The method is_empty returns true.", "An empty box returns by ship."),
        ("How do I connect to Oracle?", "Connect to Oracle with a key.", "Connect to PostgreSQL with a key."),
        ("When may a lamp die?", "A lamp may die in winter.", "Lamps are heavy."),
        ("A red fox is here. Is the red fox fed by Zoe?", "The red fox is fed by Zoe.", "The red fox is fed by Ann."),
        ("How do I start .net?", "Start .Net with a command.", "Start the net with a winch."),
        ("What is in the Introduction?", "The Introduction# is on lamps.", "The index is on lamps."),
        ("How long does the oil burn?", "The oil burns 5, 10, 20, 30 or 40 hours.", "The sea is deep."),
    ],
)
def test_a_name_is_told_from_a_word_and_from_other_names(question: str, answers: str, others: str) -> None:
    assert [answer(question, text, *OTHERS).citations != () for text in (answers, others)] == [True, False]


def test_another_language_is_named() -> None:
    reply = answer("Comment est-ce que je peux allumer la lampe ?", "The lamp is lit with a button.", *OTHERS)
    assert not reply.citations
    assert "French" in reply.text
    assert "English" in reply.text
    assert likely_language("ランプの明るさは？") == "Japanese"


@pytest.mark.parametrize("text", ["Press ``x_y``.", "Set `a_b` to 2*3*4.", "a [1] b", "`` ` ``", "**", "snake_case_"])
def test_text_without_marks_of_a_link_or_role_keeps_its_words(text: str) -> None:
    assert [part for part in as_read(text) if part.isalnum()] == [part for part in text if part.isalnum()]


def test_a_unit_knows_the_term_that_it_explains() -> None:
    text = "AUTO_CD (-J)\nIf a command is the name of a directory, go to that directory.\n\nThis is for the prompt.\n"
    assert [text[slice(*unit.term)] for unit in split(text) if unit.term] == ["AUTO_CD (-J)", "AUTO_CD (-J)"]
    assert [unit.first for unit in split(text)] == [True, False]
