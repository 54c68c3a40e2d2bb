"""The passages of a run: which of its results they stand in, by which numbers an answer cites them, what is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico._chat.citations import Citations, cited_numbers
from portico._chat.messages import Citation, Source
from portico._chat.passages import Passages
from portico._functions.functions import function
from portico._kernel import Kernel
from portico._plans.plan import From, ListOf, Plan, Step, TextOf, Value, evaluate
from portico._plans.task import Answer, Budget, Infeasible
from portico._runs.journal import RunState
from portico._runs.outcome import Paused
from portico._search.functions import search_plugin
from portico._search.results import SearchConnector, SearchResults, TextSearchOptions, TextSearchResult
from portico.errors import PorticoError, ServiceUnavailable
from portico_testkit.fakes.planner import ScriptedPlanner
from portico_testkit.fakes.run_store import MemoryRunStore

TOWER = {"value": "The tower is 31 metres high.", "name": "tower.md", "link": "file:///tower.md#L1"}
STONE = {"value": "The walls are of granite.", "name": "stone.md", "link": "file:///stone.md#L1"}
RECORD = {"text": TOWER["value"], "title": "Tower", "url": TOWER["link"], "score": 0.5}
SOURCES = [Source(number, f"Passage {number}.", link=f"https://{number}.example/") for number in range(1, 8)]


class Pages(SearchConnector[TextSearchResult]):
    name = "pages"
    found = (TextSearchResult(**STONE), TextSearchResult(**TOWER))

    async def fetch(self, query: str, options: TextSearchOptions) -> SearchResults[TextSearchResult]:
        return SearchResults([] if query == "nothing" else self.found)

    def to_text(self, record: TextSearchResult) -> str:
        return record.value

    def to_result(self, record: TextSearchResult) -> TextSearchResult:
        return record


marks = st.lists(st.lists(st.integers(1, 7), min_size=1, max_size=3), max_size=5)


@given(marks, st.sampled_from(["[{}]", "【{}】", "(Source {})", "[^{}]"]))
def test_numbers_in_the_order_of_the_answer_cite_the_same_passages(cited: list[list[int]], form: str) -> None:
    text = " ".join(f"So it is {form.format(', '.join(map(str, each)))}." for each in cited)
    check = Citations.check(text, SOURCES)
    renumbered, citations = check.renumber(text)
    assert [citation.number for citation in citations] == list(range(1, len(citations) + 1))
    assert [citation.quote for citation in citations] == [citation.quote for citation in check.cited]
    assert cited_numbers(renumbered) == tuple(range(1, len(citations) + 1))


@pytest.mark.parametrize(
    ("text", "renumbered"),
    [
        ("All [5-7].", "All [1, 2, 3]."),
        ("One [3†page 7], `x[3]`, [0, 1] and [see [2]](https://a.example/[2]).", None),
        ("One 【3†page 7】, `x[3]`, and [0, 1].", "One 【1†page 7】, `x[3]`, and [0, 1]."),
        ("One [3], made up [99].", "One [3], made up [99]."),
        ("“Passage 3.” [3], and Passage [2].", "“Passage 3.” [1], and Passage [2]."),
        ("One [^3].\n\n[^3]: Passage 3.", "One [^1].\n\n[^1]: Passage 3."),
        ("One [1].", "One [1]."),
        (
            "[2], [1](https://1.example/), [3](https://b.example/).",
            "[1], [2](https://1.example/), [3](https://b.example/).",
        ),
    ],
)
def test_only_marks_are_renumbered(text: str, renumbered: str | None) -> None:
    assert Citations.check(text, SOURCES).renumber(text)[0] == (text if renumbered is None else renumbered)


def test_a_mark_that_a_quotation_brings_from_its_source_stays() -> None:
    check = Citations((Citation(2, None, None, "Doors, see [1], are\nopen."), Citation(1, None, None, "Locks.")))
    text = check.renumber("“Doors, see [1], are open.” [2]\n\n“Locks.” [1]")[0]
    assert text == "“Doors, see [1], are open.” [1]\n\n“Locks.” [2]"


@pytest.mark.parametrize(
    ("result", "found", "values"),
    [
        ([TOWER, STONE], False, [TOWER["value"], STONE["value"]]),
        ({"results": [TOWER], "more": {"best": STONE}}, False, [TOWER["value"], STONE["value"]]),
        ({"value": "5", "unit": "km"}, False, []),
        ([{"name": "colour", "value": "red"}], False, []),
        (["a", "b"], False, []),
        (["a", "b", " "], True, ["a", "b"]),
        ([RECORD], True, [TOWER["value"]]),
        ([RECORD], False, []),
        (json.dumps([TOWER]) + "\n" + json.dumps([STONE]), True, [TOWER["value"], STONE["value"]]),
        ("Only words, [1] and {x}.", True, ["Only words, [1] and {x}."]),
        ([TOWER, TOWER["value"], TOWER], True, [TOWER["value"]]),
        (None, True, []),
    ],
)
def test_passages_are_found_in_results(result: Any, found: bool, values: list[str]) -> None:
    assert [source.text for source in Passages().take(result, found=found)] == values


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from([TOWER, STONE]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_any_result_can_be_read_and_shown_again_with_the_same_numbers(value: Any) -> None:
    passages = Passages()
    taken = passages.take(value, found=False)
    assert passages.take(value, found=False) == taken
    again = Passages(sources=passages.sources)
    assert again.show(value) == passages.show(value)
    written = json.dumps(value)
    if isinstance(value, list | dict) and passages.around(value):
        assert passages.around(f"Found: {written}!") == ("Found: ", "!"), "what stands around is not lost"


def test_a_value_that_is_nested_without_end_is_no_passage() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    passages = Passages()
    assert passages.take(deep) == ()
    assert passages.around(deep) is None
    passages.show(deep)


@function(tags=["answer"])
async def words(question: str, sources: list[TextSearchResult | str] | str) -> str:
    """Answer."""
    taken = Passages.of_run().take(sources)
    return f"{question} " + " ".join(f"[{source.number}]" for source in reversed(taken)) if taken else "Nothing."


def kernel_with(*functions: Any, store: MemoryRunStore | None = None) -> Kernel:
    kernel = Kernel(run_store=store)
    kernel.add_plugin(search_plugin(Pages(), "pages"))
    for each in functions:
        kernel.add_function(each)
    return kernel


def search(id: str = "s1", query: str = "q", kind: str = "GetTextSearchResults") -> Step:
    return Step(id, f"pages-{kind}", {"query": Value(query)})


async def test_a_plan_that_gives_what_was_found_ends_with_the_function_that_answers() -> None:
    for result, ending in (
        (From("s1"), From("s3")),
        (TextOf(("Found: ", From("s1"), "!")), TextOf(("Found: ", From("s3"), "!"))),
        (ListOf((From("s1"), From("s2"))), From("s3")),
    ):
        plan = Plan("So?", (search(), search("s2", "nothing")), result)
        run = await kernel_with(words).run_goal("So?", planner=ScriptedPlanner(plan))
        assert isinstance(run.outcome, Answer)
        assert run.outcome.text == run.outcome.value == evaluate(ending, {"s3": "So? [1] [2]"})
        assert [citation.quote for citation in run.outcome.citations] == [TOWER["value"], STONE["value"]]
        assert [step.id for step in run.plan.steps] == ["s1", "s2", "s3"]
        assert run.plan.result == ending, "what is replayed ends in words too"
        assert len(run.passages) == 2


async def test_a_search_that_found_nothing_is_answered_too() -> None:
    plan = Plan("So?", (search(query="nothing"),), From("s1"))
    run = await kernel_with(words).run_goal("So?", planner=ScriptedPlanner(plan))
    assert run.outcome.text == "Nothing."


@function(tags=["answer"])
async def other(asked: str, notes: str) -> str:
    """Answer something else."""
    return "Never."


@function(tags=["answer"])
async def another(question: str, sources: str, tone: str) -> str:
    """Answer where a tone is given."""
    return "Never."


@pytest.mark.parametrize(
    ("answering", "options"),
    [(words, {"exclude": ["words"]}), (words, {"budget": Budget(steps=1)}), (other, {}), (another, {})],
)
async def test_without_that_function_or_a_step_left_the_results_are_given_as_they_are(
    answering: Any, options: Any
) -> None:
    planner = ScriptedPlanner(Plan("So?", (search(),), From("s1")))
    run = await kernel_with(answering).run_goal("So?", planner=planner, **options)
    assert isinstance(run.outcome, Answer)
    assert run.outcome.value == [STONE, TOWER]


async def test_a_plan_that_runs_by_itself_gives_its_result_as_it_is() -> None:
    run = await kernel_with(words).run_plan(Plan("So?", (search(),), From("s1")))
    assert isinstance(run.outcome, Answer)
    assert run.outcome.value == [STONE, TOWER]


async def test_a_passage_that_a_plan_gives_whole_is_cited() -> None:
    plan = Plan("So?", (search(),), TextOf(("It says: ", From("s1", (1, "value")))))
    run = await kernel_with().run_goal("So?", planner=ScriptedPlanner(plan))
    assert isinstance(run.outcome, Answer)
    assert run.outcome.text == f"It says: {TOWER['value']}"
    assert [(each.number, each.link) for each in run.outcome.citations] == [(1, TOWER["link"])]
    assert run.outcome.warnings == ()


async def test_the_numbers_of_a_resumed_run_are_those_of_before() -> None:
    store = MemoryRunStore()
    kernel = kernel_with(words, store=store)
    down = True

    @function
    async def check(text: str) -> str:
        """Check it."""
        if down:
            raise ServiceUnavailable("down")
        return text

    kernel.add_function(check)
    answered = Step("s3", "words", {"question": Value("So?"), "sources": From("s2")})
    steps = (search("s1", kind="Search"), search("s2"), answered, Step("s4", "check", {"text": From("s3")}))
    with pytest.raises(PorticoError):
        await kernel.run_plan(Plan("So?", steps, From("s4")))
    down = False
    (name,) = await store.runs()
    run = await kernel.resume(name, retry=("s4",))
    assert isinstance(run.outcome, Answer)
    assert [citation.quote for citation in run.outcome.citations] == [TOWER["value"], STONE["value"]]


@pytest.mark.parametrize("outcome", [Answer("Yes."), Infeasible("No ferry", ("a timetable",)), Paused("Ask", "s1")])
def test_every_outcome_has_words_for_people(outcome: Any) -> None:
    assert outcome.text.strip()
    assert getattr(outcome, "reason", "") in outcome.text


@function
async def away() -> str:
    """Fail as a service that is away does."""
    raise ServiceUnavailable("away")


@function
async def wrong() -> str:
    """Fail as a mistake does."""
    raise ValueError("no such town")


@pytest.mark.parametrize(
    ("steps", "resumable"),
    [((Step("s1", "away"),), True), ((Step("s1", "wrong"),), False), ((search(), Step("s2", "wrong")), True)],
)
async def test_a_failed_run_is_worth_resuming_after_a_result_or_where_time_mends(
    steps: tuple[Step, ...], resumable: bool
) -> None:
    store = MemoryRunStore()
    with pytest.raises(PorticoError):
        await kernel_with(away, wrong, store=store).run_plan(Plan("So?", steps))
    (name,) = await store.runs()
    assert RunState.of(await store.read(name)).resumable is resumable
