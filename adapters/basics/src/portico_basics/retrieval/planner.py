"""The retrieval strategy: search every source at once, fuse, answer with citations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from portico import Citations, FunctionSpec, Passages
from portico.errors import ConfigurationError, PlanError, PluginError
from portico.plans import Answer, Emit, Event, Infeasible, Plan, Step, StepRecord, Task, Value
from portico.plugins import Services
from portico.ports import ChatService, Planner, TextSearch
from portico.search import FusedSearch, SearchCapabilities
from portico_basics.config import RetrievalSettings
from portico_basics.retrieval.answering import answer_from

_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")
# A filter that the application fixed may become a part of the query.
_SHARE = 0.75
_SHALLOW, _DEEP = 10, 50
"""Passages of a source for a model, and for quotes."""


def query_for(goal: str, capabilities: SearchCapabilities) -> str:
    """Return the goal, or the part that a source takes: its first question, or else its first words.

    >>> query_for("I have a door. It is red. How do I oil it?", SearchCapabilities(query_words=15))
    'I have a door. It is red. How do I oil it?'
    >>> query_for("I have a door. It is red. How do I oil it?", SearchCapabilities(query_words=11))
    'How do I oil it?'
    """
    most_words, most_characters = capabilities.query_words, capabilities.query_characters
    words = goal.split()
    if len(words) <= (most_words or len(words)) and len(goal) <= (most_characters or len(goal)):
        return goal
    questions = [sentence.strip() for sentence in _SENTENCE.split(goal) if sentence.strip().endswith(("?", "？"))]
    words = (questions[0] if questions else goal).split()
    if most_words is not None:
        words = words[: max(1, int(most_words * _SHARE))]
    most = len(goal) if most_characters is None else max(1, int(most_characters * _SHARE))
    while len(words) > 1 and len(" ".join(words)) > most:
        words.pop()
    return " ".join(words)[:most]


class RetrievalPlanner(Planner):
    """Answer a goal from the configured sources.

    The first proposal is a plan with one search for each source, which run at the same time. The second is the answer.
    Warnings name the sources that failed; when all fail, ``PlanError`` is raised. A source that takes only short
    queries is asked a part of a long goal, and a warning names that part. When nothing is found, no chat service is
    asked. Without a source the goal is infeasible. Where something is attached to the goal, it is asked in both cases.
    """

    name = "retrieval"

    def __init__(self, settings: RetrievalSettings, services: Services) -> None:
        self._settings = settings
        self._services = services

    async def propose(self, task: Task, *, emit: Emit) -> Plan | Answer | Infeasible:
        """Return the searches, then the answer from their results."""
        if _searches_run(task):
            return await self._answer(task, emit)
        searches = [spec for spec in task.functions if spec.is_search and _needs_only_a_query(spec)]
        if not searches and _has_attached(task):
            reply = await answer_from(self._services.get(ChatService, self._settings.chat), task.goal, (), emit)
            return Answer(reply.text).citing(replace(Passages().check(reply), unbacked=()))
        if not searches:
            return Infeasible("There is no source to search.", missing=("a text search",))
        return self._searches(task, searches)

    def _searches(self, task: Task, searches: Sequence[FunctionSpec]) -> Plan:
        steps = []
        for id, spec in zip(task.fresh_ids(), searches, strict=False):
            arguments = {spec.search_parameter("query"): Value(query_for(task.goal, self._capabilities(spec.name)))}
            if (count := spec.search_parameter("count")) in spec.parameters["properties"]:
                arguments[count] = Value(self._settings.per_source or self._depth(spec.name))
            steps.append(Step(id, spec.name, arguments))
        return Plan(task.goal, tuple(steps))

    def _depth(self, function: str) -> int:
        return _DEEP if self._quotes() and self._capabilities(function).local else _SHALLOW

    def _quotes(self) -> bool:
        """Tell whether the answer is made of quotes; such a chat service reads much at little cost."""
        try:
            return not self._services.get(ChatService, self._settings.chat).capabilities.language_model
        except (PluginError, ConfigurationError):  # It is reported when it is asked.
            return False

    async def _answer(self, task: Task, emit: Emit) -> Answer:
        # Steps are in the order in which they ended. The answer must not depend on which source was quicker.
        order = {spec.name: place for place, spec in enumerate(task.functions)}
        records = sorted(_searches_run(task), key=lambda record: order.get(_function(record), len(order)))
        warnings = [
            f"The source {self._source(record)!r} failed: {record.error}"
            for record in records
            if record.error is not None
        ]
        if len(warnings) == len(records):
            raise PlanError(" ".join(["Every search failed."] * (len(records) > 1) + warnings))
        found = [record for record in records if record.error is None]
        specs = {spec.name: spec for spec in task.functions}
        asked = [(record, _query(record, specs.get(_function(record)))) for record in found]
        warnings += [self._describe_shortening(*each) for each in asked if each[1] not in (None, task.goal)]
        passages = FusedSearch.fuse(
            [record.result for record in found],
            link=lambda passage: passage.get("link"),
            text=lambda passage: str(passage["value"]),
        )
        if not passages and not _has_attached(task):
            # A model could only invent.
            nothing = f"Nothing was found in {' and '.join(repr(self._source(record)) for record in found)}."
            emit(Event.TextDelta(nothing))
            return Answer(nothing, warnings=tuple(warnings))
        most = None if self._quotes() else self._settings.passages
        sources = Citations.number(passage for passage, _ in passages[:most])
        chat = self._services.get(ChatService, self._settings.chat)
        reply = await answer_from(chat, task.goal, sources, emit, attached=_has_attached(task))
        check, answer = Passages(sources=sources).check(reply), Answer(reply.text, (), None, tuple(warnings), sources)
        # A service that only quotes found nothing to quote where it cites nothing.
        return answer.citing(check) if check.cited or chat.capabilities.language_model else answer

    def _describe_shortening(self, record: StepRecord, query: object) -> str:
        bounds = self._capabilities(_function(record)).query_bounds()
        return f"The source {self._source(record)!r} takes {bounds}; the query was: {query}"

    def _capabilities(self, function: str) -> SearchCapabilities:
        """Return the capabilities of a configured source, the default for one that the application made."""
        name = self._find_name(function)
        if name not in self._services.names(TextSearch):
            return SearchCapabilities()
        return self._services.get(TextSearch, name).capabilities

    def _source(self, record: StepRecord) -> str:
        return self._find_name(_function(record))

    def _find_name(self, function: str) -> str:
        """Return the configured name of a source; in the name of a function a hyphen is an underscore."""
        plugin = function.partition("-")[0]
        names = self._services.names(TextSearch)
        return next((name for name in names if name.replace("-", "_") == plugin), plugin)


def _has_attached(task: Task) -> bool:
    return bool((task.context or {}).get("attached"))


def _searches_run(task: Task) -> list[StepRecord]:
    """Return the steps that searched, also those of another planner; a loop counts as the calls for its items."""
    searches = {spec.name for spec in task.functions if spec.is_search}
    called = [record for record in task.steps if record.step.each is None and not record.skipped]
    return [record for record in called if _function(record) in searches]


def _needs_only_a_query(spec: FunctionSpec) -> bool:
    # A search may have a filter that a model must set, which a goal does not have.
    return set(spec.parameters.get("required", ())) <= {spec.search_parameter("query")}


def _query(record: StepRecord, spec: FunctionSpec | None) -> object:
    query = record.step.arguments.get(spec.search_parameter("query") if spec else "query")
    return query.value if isinstance(query, Value) else None


def _function(record: StepRecord) -> str:
    function = record.step.function
    return function if isinstance(function, str) else record.step.id
