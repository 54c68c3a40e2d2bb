"""Whether answers answer: 60 questions of texts of others, a third without an answer there, by a written rubric.

The texts are fetched once (`answers --collect FOLDER`) and named afterwards (`answers --texts FOLDER`). The planner
`retrieval` answers each question from one index of all texts, as `portico ask` does.

`answers_set/questions.jsonl` has the rubric. A question lists the files that answer it, and groups of patterns. An
answer is "good" when its first quote, or its first `within` quotes, has one of the patterns of each group (`good`), the
quote or the name of its passage says what it is about (`subject`), it begins a sentence, and there are at most three
quotes, each with a citation. It is "middling" when another quote does that, or when the first meets `middling`.
Otherwise it is "bad". A question without an answer is "good" when nothing is quoted. The source is "right" when the
first citation leads to a file that answers the question, or when nothing is cited where there is no answer.

"search" is the first hit alone, judged by the same patterns; it refuses nothing. "model" is the small model of this
machine on the same passages: its whole text is judged, it refuses by saying so, and its source is right when the first
passage that it cites is.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.eval.answers_set.collect import collect

import portico_host
from portico import Citation, Kernel
from portico.ports import TextSearch
from portico.search import TextSearchOptions

__all__ = ["add_arguments", "describe", "run"]

SET = Path(__file__).parent / "answers_set"
MOST_QUOTES = 3
REFUSAL = re.compile(
    r"\b(?:not?|cannot|n[’']t)\b[^.]{0,60}\b(?:sources?|passages?|answer|mention|informed|information|found|relevant)\b"
    r"|\bno (?:information|mention|answer)\b",
    re.IGNORECASE,
)
_ANAPHOR = re.compile(r"(?:It|They|These|Those|Such|Otherwise|However)\b|This (?!License|document|manual|chapter)")
_QUOTED = re.compile(r"\[\d+\]")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--texts", type=Path, help="the folder of the texts", metavar="FOLDER")
    parser.add_argument("--collect", type=Path, help="fetch the texts into a folder and end", metavar="FOLDER")
    parser.add_argument(
        "--questions", type=Path, default=SET / "questions.jsonl", help="other questions", metavar="FILE"
    )
    parser.add_argument("--index", type=Path, help="where the index is kept, to be used again", metavar="FOLDER")
    parser.add_argument("--model", action="store_true", help="ask the small model of this machine, too")
    parser.add_argument("--write", type=Path, help="write each answer and its judgement", metavar="FILE")


@dataclass(frozen=True)
class Question:
    """A question with its rubric; one without ``files`` has no answer."""

    id: str
    kind: str
    question: str
    files: Sequence[str] = ()
    good: Sequence[Sequence[str]] = ()
    subject: str = ""
    middling: Sequence[Sequence[str]] = ()
    within: int = 1
    why: str = ""


@dataclass
class Judgement:
    """What one question got: the answer as shown, its citations, and what the rubric says."""

    question: Question
    answer: str
    citations: Sequence[Citation] = ()
    verdict: str = "bad"
    right_source: bool = False
    file: str = ""


@dataclass
class Column:
    """The judgements of one way to answer."""

    judgements: list[Judgement] = field(default_factory=list)

    def figures(self) -> dict[str, int]:
        """Return how many answers were good, middling and bad, how many refusals were wrong, and the right sources."""
        verdicts = Counter(each.verdict for each in self.judgements)
        unanswerable = [each for each in self.judgements if not each.question.files]
        return {
            "questions": len(self.judgements),
            "good": verdicts["good"],
            "middling": verdicts["middling"],
            "bad": verdicts["bad"],
            "unanswerable": len(unanswerable),
            "unanswerable answered": sum(each.verdict != "good" for each in unanswerable),
            "right source first": sum(each.right_source for each in self.judgements),
        }


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Fetch the texts, or measure on them."""
    if arguments.collect is not None:
        return {"files": collect(arguments.collect.resolve())}
    if arguments.texts is None or not arguments.texts.is_dir():
        raise ValueError("name the folder of the texts with --texts; --collect FOLDER fetches them")
    questions = [Question(**json.loads(line)) for line in arguments.questions.read_text("utf-8").splitlines()]
    with tempfile.TemporaryDirectory(prefix="portico-eval-") as place:
        index = arguments.index or Path(place)
        columns = asyncio.run(measure(questions, arguments.texts.resolve(), index, model=arguments.model))
    if arguments.write is not None:
        arguments.write.write_text("\n".join(lines_of(columns["quotes"].judgements)), "utf-8")
    return {name: column.figures() for name, column in columns.items()}


def describe(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the figures as a table for people."""
    rows = {name: figures for name, figures in result.items() if isinstance(figures, Mapping)}
    for name in next(iter(rows.values()), {}):
        yield f"{name:24}" + "".join(f"{row[name]:>8}" for row in rows.values())
    yield " " * 24 + "".join(f"{name:>8}" for name in rows)


async def measure(questions: Sequence[Question], texts: Path, index: Path, *, model: bool) -> dict[str, Column]:
    """Ask every question each way and return the judgements."""
    columns = {"quotes": Column(), "search": Column()}
    async with opened(texts, index, "extractive") as kernel:
        for number, question in enumerate(questions, 1):
            note(f"\r{number} of {len(questions)}", end="")
            answer, citations = await answer_to(kernel, question)
            columns["quotes"].judgements.append(judge(question, answer, citations, texts))
            columns["search"].judgements.append(judge_hit(question, *await first_hit(kernel, question), texts))
    if model:
        columns["model"] = Column()
        async with opened(texts, index, "llamacpp") as kernel:
            for number, question in enumerate(questions, 1):
                note(f"\rmodel: {number} of {len(questions)}", end="")
                answer, citations = await answer_to(kernel, question)
                columns["model"].judgements.append(judge_text(question, answer, citations, texts))
    note("")
    return columns


def opened(texts: Path, index: Path, chat: str) -> Any:
    """Open a kernel that answers from the texts with one chat service."""
    source = {"use": "documents", "path": str(texts), "index": str(index)}
    # A small model may go round in circles until its last token.
    of_model = {"llamacpp": {"max_tokens": 400, "seed": 1, "timeout": 1800}} if chat == "llamacpp" else {}
    settings = {"chat": {"use": chat, **of_model}, "search": {"texts": source}, "planner": {"use": "retrieval"}}
    return portico_host.open(overrides=settings)


async def answer_to(kernel: Kernel, question: Question) -> tuple[str, Sequence[Citation]]:
    outcome = (await kernel.run_goal(question.question)).outcome
    return getattr(outcome, "text", str(outcome)), getattr(outcome, "citations", ())


async def first_hit(kernel: Kernel, question: Question) -> tuple[str, str, str]:
    """Return the text, the name and the link of the first hit."""
    search = kernel.service(TextSearch, "texts")
    hits = await (await search.get_text_search_results(question.question, TextSearchOptions(top=1))).list()
    return (hits[0].value, hits[0].name or "", hits[0].link or "") if hits else ("", "", "")


def judge(question: Question, answer: str, citations: Sequence[Citation], texts: Path) -> Judgement:
    """Judge an answer made of quotes."""
    judged = Judgement(question, answer, citations, file=file_of(citations[0].link, texts) if citations else "")
    if not question.files:
        judged.verdict, judged.right_source = ("bad", False) if citations else ("good", True)
        return judged
    judged.right_source = judged.file in question.files
    quotes = quotes_of(answer)
    numbers = list(dict.fromkeys(each.number for each in citations))
    in_order = numbers == sorted(numbers)
    cited = in_order and len(quotes) == len(citations) <= MOST_QUOTES
    good = [holds(quote, question.good) for quote in quotes]
    clear = [
        is_clear(quote) and bool(re.search(question.subject, f"{quote}\n{name_of(citation)}", re.IGNORECASE))
        for quote, citation in zip(quotes, citations, strict=False)
    ]
    if cited and any(fits and plain for fits, plain in zip(good[: question.within], clear, strict=False)):
        judged.verdict = "good"
    elif any(good) or (quotes and question.middling and holds(quotes[0], question.middling)):
        judged.verdict = "middling"
    return judged


def judge_hit(question: Question, text: str, name: str, link: str, texts: Path) -> Judgement:
    """Judge a hit of the search by the same patterns."""
    judged = Judgement(question, text, file=file_of(link, texts))
    if question.files:
        judged.right_source = judged.file in question.files
        judged.verdict = "good" if holds(f"{name}\n{text}", question.good) else "bad"
    return judged


def judge_text(question: Question, answer: str, citations: Sequence[Citation], texts: Path) -> Judgement:
    """Judge a text that a model wrote."""
    judged = Judgement(question, answer, citations, file=file_of(citations[0].link, texts) if citations else "")
    if not question.files:
        judged.verdict = "good" if REFUSAL.search(answer) else "bad"
        judged.right_source = judged.verdict == "good"
    else:
        judged.verdict = "good" if holds(answer, question.good) else "bad"
        judged.right_source = judged.file in question.files
    return judged


def quotes_of(answer: str) -> list[str]:
    """Return the quotes of an answer, which end with their marks."""
    return [quote.strip() for quote in re.split(r"\[\d+\]\s*(?:\n\n|$)", answer) if quote.strip()]


def holds(text: str, groups: Sequence[Sequence[str]]) -> bool:
    """Tell whether a text has one pattern of each group, whatever its white space and its marks."""
    plain = " ".join(re.sub(r"[`*│|]+", "", text.replace("\ufffe", "").replace("’", "'")).split())
    return all(any(re.search(pattern, plain, re.IGNORECASE) for pattern in group) for group in groups)


def is_clear(quote: str) -> bool:
    """Tell whether a quote begins where a sentence, a row, an entry or code begins, and not with a pronoun."""
    begin = quote.lstrip("“\"'`*|-•([ \n")
    return not _ANAPHOR.match(begin) and not re.match(r"(?:and|or|but|of|which|that|to|is|are|the)\s", begin)


def name_of(citation: Citation) -> str:
    return citation.name or ""


def file_of(link: str | None, texts: Path) -> str:
    """Return the path of a link's file in the folder of the texts."""
    path = Path(unquote(urlsplit(link or "").path))
    return path.relative_to(texts).as_posix() if path.is_relative_to(texts) else str(path)


def lines_of(judgements: Sequence[Judgement]) -> Iterator[str]:
    """Yield the judgements as Markdown: the figures, then each question, its verdict, the answer as it is shown."""
    yield "# What was answered\n"
    yield from (f"- {name}: {count}" for name, count in Column(list(judgements)).figures().items())
    yield ""
    for each in judgements:
        source = "right" if each.right_source else "wrong"
        yield f"## {each.question.id}: {each.question.question}\n"
        yield f"**{each.verdict}**, source {source} ({each.question.kind})\n"
        yield "\n".join(f"> {line}".rstrip() for line in each.answer.splitlines())
        yield "\n".join(["", *(f"- [{cited.number}] {cited.name}" for cited in each.citations), ""])


def note(message: str, end: str = "\n") -> None:
    print(message, end=end, file=sys.stderr, flush=True)
