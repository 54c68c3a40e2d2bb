"""The rubric of the answers, on a small text; the questions themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.eval import answers
from tests.eval.answers import Question, judge, judge_hit, judge_text

from portico import Citation

TEXTS = Path("/texts")
LAMP = Question("lamp", "default", "How bright is the lamp?", ["lamps.md"], [["40 candela"]], "lamp", [["lamp"]])
NONE = Question("none", "unanswerable", "How old is the keeper?")


def cited(*quotes: str, file: str = "lamps.md") -> tuple[str, list[Citation]]:
    citations = [
        Citation(number, f"{file} › Lamps", f"file:///texts/{file}#L1", quote) for number, quote in enumerate(quotes, 1)
    ]
    return "\n\n".join(f"“{each.quote}” [{each.number}]" for each in citations), citations


@pytest.mark.parametrize(
    ("quotes", "verdict"),
    [
        (["The lamp has 40 candela."], "good"),
        (["The lamp burns.", "The lamp has 40 candela."], "middling"),
        (["It has 40 candela."], "middling"),
        (["The lamp burns."], "middling"),
        (["The tower is white."], "bad"),
        (["The lamp has 40 candela.", "One.", "Two.", "Three."], "middling"),
        ([], "bad"),
    ],
)
def test_an_answer_is_judged_by_its_first_quote(quotes: list[str], verdict: str) -> None:
    assert judge(LAMP, *cited(*quotes), TEXTS).verdict == verdict


def test_the_source_is_right_when_the_first_citation_leads_to_a_file_that_answers() -> None:
    assert judge(LAMP, *cited("The lamp has 40 candela."), TEXTS).right_source
    assert not judge(LAMP, *cited("The lamp has 40 candela.", file="towers.md"), TEXTS).right_source


def test_a_question_without_an_answer_is_to_be_refused() -> None:
    assert judge(NONE, "Nothing relevant was found.", (), TEXTS).verdict == "good"
    assert judge(NONE, *cited("The keeper is kind."), TEXTS).verdict == "bad"
    assert judge_text(NONE, "The sources do not answer this.", (), TEXTS).verdict == "good"
    assert judge_text(NONE, "The keeper is 40.", (), TEXTS).verdict == "bad"
    assert judge_hit(NONE, "The keeper is kind.", "lamps.md", "file:///texts/lamps.md#L1", TEXTS).verdict == "bad"


def test_there_are_sixty_questions_a_third_without_an_answer() -> None:
    lines = (answers.SET / "questions.jsonl").read_text("utf-8").splitlines()
    questions = [Question(**json.loads(line)) for line in lines]
    assert len(questions) == len({each.id for each in questions}) == 60
    assert sum(not each.files for each in questions) == 20
    assert sum(any(file.endswith(".pdf") for file in each.files) for each in questions) >= 12
    assert all(each.good and each.subject for each in questions if each.files)


def test_the_judgement_has_every_question() -> None:
    judged = (answers.SET / "judgement.md").read_text("utf-8")
    lines = (answers.SET / "questions.jsonl").read_text("utf-8").splitlines()
    assert [each for line in lines if f"## {(each := json.loads(line)['id'])}: " not in judged] == []


def test_the_texts_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    from tests.eval.__main__ import main

    assert main(["answers"]) == 1
    assert "--collect" in capsys.readouterr().err
