"""Whatever happens to functions, providers, models and the store, a selection is that of a fresh build."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Literal, TypeVar
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from portico import FunctionSpec, Selection
from portico.search import Vectors
from portico_basics.contextual import ContextualSelector, SelectionOptions, choosing
from portico_testkit.fakes.vector_store import DictVectorStore

T = TypeVar("T")

WORDS = ("mail", "rain", "song", "door", "bread", "train", "moon", "paper")
NAMES = tuple(f"Do-{word}" for word in WORDS)


class Weather:
    """What the machine decides for a run: when others come in between."""

    def __init__(self) -> None:
        self.random = random.Random(0)

    async def pause(self) -> None:
        for _ in range(self.random.randrange(4)):
            await asyncio.sleep(0)


class Crowded:
    """A store in whose calls others come in between, before and after each."""

    def __init__(self, store: DictVectorStore, weather: Weather) -> None:
        self.store, self.weather = store, weather
        self.name, self.persistent, self.filter_support = store.name, store.persistent, store.filter_support

    async def _between(self, call: Callable[[], Awaitable[T]]) -> T:
        await self.weather.pause()
        result = await call()
        await self.weather.pause()
        return result

    async def upsert(self, *given: Any) -> None:
        await self._between(lambda: self.store.upsert(*given))

    async def delete(self, *given: Any) -> int:
        return await self._between(lambda: self.store.delete(*given))

    async def get(self, *given: Any) -> Any:
        return await self._between(lambda: self.store.get(*given))

    async def search(self, *given: Any, **options: Any) -> Any:
        return await self._between(lambda: self.store.search(*given, **options))

    async def count(self, namespace: str) -> int:
        return await self._between(lambda: self.store.count(namespace))

    async def ids(self, namespace: str) -> AsyncIterator[str]:
        await self.weather.pause()
        async for id in self.store.ids(namespace):
            yield id
        await self.weather.pause()

    async def drop(self, namespace: str) -> None:
        await self._between(lambda: self.store.drop(namespace))


class Counting:
    """Embeds a text as the counts of its words; another number of dimensions is another model."""

    name = "counting"

    def __init__(self, dimensions: int, weather: Weather | None = None) -> None:
        self.dimensions, self.weather = dimensions, weather
        self.model = f"counting-{dimensions}"
        self.calls: list[tuple[str, tuple[str, ...]]] = []

    async def embed(self, texts: Sequence[str], *, purpose: Literal["document", "query"] = "document") -> Vectors:
        self.calls.append((purpose, tuple(texts)))
        if self.weather is not None:
            await self.weather.pause()
        rows = []
        for text in texts:
            row = [0.0] * self.dimensions
            for word in re.findall(r"\w+", text.casefold()):
                row[crc32(word.encode()) % self.dimensions] += 1
            length = sum(number * number for number in row) ** 0.5 or 1.0
            rows.append([number / length for number in row])
        return Vectors.from_rows(rows, dimensions=self.dimensions)


def spec(name: str, description: str) -> FunctionSpec:
    return FunctionSpec(name, description, {"type": "object", "properties": {}}, {})


def described(each: FunctionSpec) -> str:
    return each.description


def named(each: FunctionSpec) -> str:
    return f"{each.name.replace('-', ' ')}: {each.description}"


TEXTS = {"described": described, "named": named}


def made(store: Any, embeddings: Any, text: str) -> ContextualSelector:
    return ContextualSelector(store, embeddings, options=SelectionOptions(limit=2, function_text=TEXTS[text]))


def shown(selection: Selection) -> list[tuple[str, float, float, float]]:
    """Return what is offered without names: which of several functions with equal scores is looked at, is open."""
    return [
        (each.reason, round(each.score, 4), round(each.lexical, 4), round(each.vector, 4)) for each in selection.offered
    ]


class Provider:
    """One of those that share the store."""

    def __init__(self, store: Any, weather: Weather, dimensions: int, text: str) -> None:
        self.store, self.weather, self.dimensions, self.text = store, weather, dimensions, text
        self.functions: dict[str, FunctionSpec] = {}
        self.restart()

    def restart(self) -> None:
        self.selector = made(self.store, Counting(self.dimensions, self.weather), self.text)

    async def select(self, context: Sequence[str]) -> None:
        functions = tuple(self.functions.values())
        found = await self.selector.select(functions, context)
        fresh = await made(DictVectorStore(), Counting(self.dimensions), self.text).select(functions, context)
        assert shown(found) == shown(fresh), "the selection is not that of a fresh build"
        assert set(found.names) <= {each.name for each in functions}, "a function that vanished is offered"


descriptions = st.lists(st.sampled_from(WORDS), min_size=0, max_size=4).map(" ".join)
contexts = st.lists(descriptions, min_size=1, max_size=2)
which = st.integers(0, 2)


class ProvidersOnOneStore(RuleBasedStateMachine):
    """Three providers, any of which may change, restart, be cut short, or ask at the same time as others."""

    @initialize(
        models=st.tuples(*(st.sampled_from((5, 5, 7)) for _ in range(3))),
        texts=st.tuples(*(st.sampled_from(sorted(TEXTS)) for _ in range(3))),
        given=st.dictionaries(st.sampled_from(NAMES), descriptions, min_size=5),
    )
    def begin(self, models: Any, texts: Any, given: dict[str, str]) -> None:
        self.runner = asyncio.Runner()
        self.weather = Weather()
        self.plain = DictVectorStore()
        store = Crowded(self.plain, self.weather)
        self.providers = [Provider(store, self.weather, *each) for each in zip(models, texts, strict=True)]
        for provider in self.providers:
            provider.functions = {name: spec(name, text) for name, text in given.items()}

    def begin_rule(self, seed: int) -> None:
        self.weather.random.seed(seed)

    @rule(which=which, name=st.sampled_from(NAMES), description=descriptions)
    def add_or_change(self, which: int, name: str, description: str) -> None:
        self.providers[which].functions[name] = spec(name, description)

    @rule(which=which, name=st.sampled_from(NAMES))
    def remove(self, which: int, name: str) -> None:
        self.providers[which].functions.pop(name, None)

    @rule(which=which, seed=st.integers(0, 1_000))
    def restart(self, which: int, seed: int) -> None:
        self.begin_rule(seed)
        self.providers[which].restart()

    @rule(which=which, text=st.sampled_from(sorted(TEXTS)), dimensions=st.sampled_from((5, 7)))
    def change_the_text_and_the_model(self, which: int, text: str, dimensions: int) -> None:
        self.providers[which].text, self.providers[which].dimensions = text, dimensions
        self.providers[which].restart()

    @rule(asking=st.lists(st.tuples(which, contexts), min_size=1, max_size=5), seed=st.integers(0, 1_000))
    def select_at_once(self, asking: list[tuple[int, list[str]]], seed: int) -> None:
        self.begin_rule(seed)

        async def together() -> None:
            await asyncio.gather(*(self.providers[which].select(context) for which, context in asking))

        self.runner.run(together())

    @rule(one=which, other=which, name=st.sampled_from(NAMES), context=contexts, seed=st.integers(0, 1_000))
    def change_while_selecting(self, one: int, other: int, name: str, context: list[str], seed: int) -> None:
        self.begin_rule(seed)

        async def together() -> None:
            selecting = [asyncio.create_task(self.providers[which].select(context)) for which in (one, other)]
            await self.weather.pause()
            self.providers[one].functions.pop(name, None)
            await asyncio.gather(*selecting, self.providers[one].select(context))

        self.runner.run(together())

    @rule(which=which, context=contexts, passes=st.integers(0, 60), seed=st.integers(0, 1_000))
    def cancel(self, which: int, context: list[str], passes: int, seed: int) -> None:
        self.begin_rule(seed)

        async def cut_short() -> None:
            selecting = asyncio.create_task(self.providers[which].select(context))
            for _ in range(passes):
                await asyncio.sleep(0)
            selecting.cancel()
            await asyncio.wait([selecting])

        self.runner.run(cut_short())

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            self.runner.close()


@pytest.fixture(autouse=True)
def few_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at few functions, so that one that is missing in the store is missed in the selection."""
    monkeypatch.setattr(choosing, "_LOOKED_AT", 2)


class TestProvidersOnOneStore(ProvidersOnOneStore.TestCase):
    settings = settings(max_examples=60, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck))
