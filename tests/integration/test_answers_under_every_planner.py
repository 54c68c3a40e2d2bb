"""A question to one document source, answered by each planner: in words, with a checked list of citations.

The model is scripted: at the port, and over HTTP by a server of OpenAI's form, which the command line asks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.replayed_model import ReplayedModel, Saying

import portico_host
from portico import ChatCapabilities, ChatRequest, Message, Run, ToolCall
from portico.plans import Answer, Event, RunEvent
from portico.ports import ChatService, TextSearch
from portico_cli.main import main
from portico_testkit.fakes.chat_service import Line, ScriptedChat

QUESTION = "How high is the tower of Norrland?"
WORDS = "It is built of granite [{granite}], and 31 metres high [{metres}]."
ANSWER = WORDS.format(granite=1, metres=2)
PAGES = {
    "keepers.md": "# Keepers\n\nTwo keepers live on the island of Norrland in summer.\n",
    "stone.md": "# Stone\n\nThe walls on the island of Norrland are built of granite.\n",
    "tower.md": "# Tower\n\nThe tower of Norrland is 31 metres high.\n",
}
CAN = ChatCapabilities(tools=True, response_schema=True, strict=True)
_NUMBER = re.compile(r'number\\*"?[=:] ?\\*"?(\d+)|\[(\d+)\]')

PLANNERS = pytest.mark.parametrize(
    "planner", ["retrieval", "structured", "sequential", "handlebars", "stepwise", "function_calling"]
)
WHOLE_PLANS = pytest.mark.parametrize("planner", ["structured", "sequential", "handlebars"])
SEARCHES = pytest.mark.parametrize("search", ["GetTextSearchResults", "Search", "GetSearchResults"])


def searching(planner: str, search: str = "GetTextSearchResults", *, answering: bool = False) -> list[Saying]:
    """Return what a model says to search. A whole plan gives what was found as it is, or ends by ``answering``."""
    given = {"query": QUESTION, "count": 3}
    match planner:
        case "retrieval":
            return []
        case "structured":
            steps = [(f"docs-{search}", {name: {"value": value} for name, value in given.items()})]
            if answering:
                found = {"from": "s1", "path": "$"}
                steps += [("answers-FromSources", {"question": {"value": QUESTION}, "sources": found})]
            moves: list[object] = [{"function": name, "reason": "So.", "arguments": given} for name, given in steps]
            moves += [{"function": "finish", "result": {"from": f"s{len(steps)}", "path": "$"}}]
            return [json.dumps({"next": each}) for each in moves]
        case "sequential":
            keep = 'setContextVariable="FOUND"' if answering else 'appendToResult="RESULT__FOUND"'
            last = (
                f'<function.answers.FromSources question="{QUESTION}" sources="$FOUND" appendToResult="RESULT__A"/>'
                if answering
                else ""
            )
            return [f'<plan><function.docs.{search} query="{QUESTION}" count="3" {keep}/>{last}</plan>']
        case "handlebars":
            call = f'(docs-{search} query="{QUESTION}" count=3)'
            if answering:
                call = f'(answers-FromSources question="{QUESTION}" sources={call})'
            return [f"```handlebars\n{{{{json {call}}}}}\n```"]
        case "stepwise":
            return [json.dumps({"thought": "So.", "action": {"function": f"docs-{search}", "arguments": given}})]
        case _:
            return [ToolCall("c1", f"docs-{search}", json.dumps(given))]


def read(shown: str, words: str = WORDS) -> str | None:
    """Return the answer with the numbers that two passages have in what the model is shown; None without them."""
    if "granite" not in shown or "31 metres" not in shown:
        return None
    numbers = {}
    for name in ("granite", "metres"):
        found = _NUMBER.findall(shown[: shown.index(name)])
        numbers[name] = "".join(found[-1])
    return words.format(**numbers)


def final(planner: str, words: str | None) -> str | None:
    """Return the answer in the form in which a planner takes it."""
    if words is None or planner != "stepwise":
        return words
    return json.dumps({"thought": "It is there.", "action": {"final": words}})


def reader(planner: str, words: str = WORDS) -> Line:
    """Return the line of a script that answers from what the request shows."""

    def answer(request: ChatRequest) -> str:
        shown = "\n".join(repr(message.content) for message in Message.render_sources(request.messages))
        said = final(planner, read(shown, words))
        assert said is not None, f"the model was not shown the passages: {shown}"
        return said

    return answer


@pytest.fixture
def application(tmp_path: Path) -> Callable[..., Path]:
    """Return what writes the configuration; the pages are beside it."""
    (tmp_path / "pages").mkdir()
    for name, text in PAGES.items():
        (tmp_path / "pages" / name).write_text(text)

    def write(planner: str, more: str = "") -> Path:
        file = tmp_path / "portico.toml"
        source = 'use = "documents"\npath = "pages"\nindex = "index"'
        file.write_text(f'{more}\n[planner]\nuse = "{planner}"\n[search.docs]\n{source}\n')
        return file

    return write


async def ask(config: Path, *script: Line, emit: Callable[[RunEvent], None] | None = None) -> Run:
    chat = ScriptedChat(*script, capabilities=CAN)
    async with portico_host.open(config, services={ChatService: chat}) as kernel:
        index = kernel.service(TextSearch, "docs").index
        assert index is not None
        await index.update()
        run = await kernel.run_goal(QUESTION, emit=emit)
    assert len(chat.requests) == len(script), "the model was not asked for everything"
    return run


def require_answer(run: Run) -> None:
    answer = run.outcome
    assert isinstance(answer, Answer)
    assert answer.text == ANSWER
    assert [citation.number for citation in answer.citations] == [1, 2]
    assert all(word in citation.quote for word, citation in zip(("granite", "metres"), answer.citations, strict=True))
    assert answer.warnings == ()
    assert {passage.value.split()[-1] for passage in run.passages} == {"granite.", "high.", "summer."}


@PLANNERS
@SEARCHES
async def test_what_was_found_is_answered_in_words_with_the_citations_in_their_order(
    application: Callable[..., Path], planner: str, search: str
) -> None:
    events: list[RunEvent] = []
    run = await ask(application(planner), *searching(planner, search), reader(planner), emit=events.append)
    require_answer(run)
    assert sum(isinstance(event, Event.ChatUsed) for event in events) == len(searching(planner, search)) + 1
    shown = "".join(event.text for event in events if isinstance(event, Event.TextDelta))
    assert re.sub(r"\d", "", shown).strip() == re.sub(r"\d", "", ANSWER), "it is shown as it comes"
    proposed = [event.plan.steps for event in events if isinstance(event, Event.Proposed)]
    assert [step.id for steps in proposed for step in steps] == [step.id for step in run.plan.steps]
    if search != "Search":
        assert isinstance(run.outcome, Answer)
        assert all((citation.link or "").startswith("file:") for citation in run.outcome.citations)


@WHOLE_PLANS
@pytest.mark.parametrize("search", ["GetTextSearchResults", "Search"])
async def test_a_plan_may_end_with_the_answer_itself(
    application: Callable[..., Path], planner: str, search: str
) -> None:
    run = await ask(application(planner), *searching(planner, search, answering=True), reader(planner))
    require_answer(run)
    assert [record.step.function for record in run.steps].count("answers-FromSources") == 1


async def test_what_a_template_says_around_the_passages_stays(application: Callable[..., Path]) -> None:
    (template,) = searching("handlebars")
    run = await ask(application("handlebars"), str(template).replace("{{json", "# Tower\n{{json"), reader("handlebars"))
    assert run.outcome.text.strip() == f"# Tower\n{ANSWER}"


async def test_a_template_whose_search_found_nothing_says_so(application: Callable[..., Path]) -> None:
    events: list[RunEvent] = []
    run = await ask(application("handlebars"), '```handlebars\n{{docs-Search query="zebra"}}\n```', emit=events.append)
    assert run.outcome.text == "Nothing was found."
    assert Event.TextDelta(run.outcome.text) in events


async def test_a_source_may_have_the_name_of_the_functions_that_answer(application: Callable[..., Path]) -> None:
    source = '[search.answers]\nuse = "documents"\npath = "pages"\nindex = "other"'
    require_answer(await ask(application("structured", source), *searching("structured"), reader("structured")))


@PLANNERS
async def test_an_answer_that_cites_nothing_is_said_to_cite_nothing(
    application: Callable[..., Path], planner: str
) -> None:
    run = await ask(application(planner), *searching(planner), reader(planner, "It is high."))
    assert isinstance(run.outcome, Answer)
    assert run.outcome.text.strip() == "It is high."
    assert run.outcome.citations == ()
    assert run.outcome.warnings == ("The answer cites none of the 3 passages that were read.",)


@PLANNERS
async def test_a_number_that_no_passage_has_is_said(application: Callable[..., Path], planner: str) -> None:
    run = await ask(
        application(planner), *searching(planner), reader(planner, "It is high [{metres}], and white [17].")
    )
    assert isinstance(run.outcome, Answer)
    assert ["31 metres" in citation.quote for citation in run.outcome.citations] == [True]
    assert run.outcome.warnings == ("The answer cites [17], which no passage backs.",)


@PLANNERS
def test_the_command_line_lists_the_citations(
    application: Callable[..., Path],
    model: ReplayedModel,
    planner: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model.sayings = searching(planner)
    model.apart = lambda shown: final(planner, read(shown))
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["ask", QUESTION, "--config", str(application(planner, model.configuration))]) == 0
    said, warned = capsys.readouterr()
    assert warned == ""
    answer, first, second, *_, footer = filter(None, map(str.strip, said.splitlines()))
    assert answer == ANSWER
    assert (first[:3], second[:3]) == ("[1]", "[2]")
    assert "stone.md" in first
    assert "tower.md" in second
    assert "from 3 passages in 3 documents" in footer
