"""What a selection says, what it embeds, and how its failures read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from portico import ChatAgent, ChatCapabilities, Function, FunctionPlugin, FunctionSpec, Kernel, ToolChoice, function
from portico.errors import FunctionNotFound, ResponseInvalid, StoreBusy, StoreError
from portico.search import Vectors
from portico_basics.contextual.choosing import ContextualSelector, SelectionOptions
from portico_faiss.config import FaissSettings
from portico_faiss.store import FaissVectorStore
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.embedding_generator import HashingEmbeddings
from portico_testkit.fakes.vector_store import DictVectorStore

TOPICS = ("rain in a city", "a letter to somebody", "songs of a singer", "trains to a town", "bread from a bakery")
MANUALS = [FunctionSpec(f"Find-Topic{number}", f"Find {topic}.", {}, {}) for number, topic in enumerate(TOPICS)]
ASKED = ["Will there be rain?"]
VECTORS = "functions/vectors/hashing-256"


class Recording(HashingEmbeddings):
    def __init__(self, dimensions: int = 256) -> None:
        super().__init__(dimensions)
        self.asked: list[tuple[str, int]] = []

    async def embed(self, texts: Sequence[str], *, purpose: Any = "document") -> Vectors:
        self.asked.append((purpose, len(texts)))
        return await super().embed(texts, purpose=purpose)


@pytest.fixture
def embeddings() -> Recording:
    return Recording()


@pytest.fixture(params=["dict", "memory", "folder"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "dict":
        return DictVectorStore()
    return FaissVectorStore(FaissSettings(path=tmp_path / "vectors" if request.param == "folder" else None))


def selector(store: Any, embeddings: Any, **options: Any) -> ContextualSelector:
    return ContextualSelector(store, embeddings, options=SelectionOptions(**{"limit": 2, **options}))


async def test_only_what_changed_is_embedded_and_all_at_once(store: Any, embeddings: Recording) -> None:
    chosen = selector(store, embeddings)
    assert (await chosen.select(MANUALS, ASKED)).embedded == 5
    assert (await chosen.select(MANUALS, ASKED)).embedded == 0
    other = FunctionSpec("Find-Topic1", "Find a parcel.", {}, {})
    new = FunctionSpec("Find-Topic9", "Find a door.", {}, {})
    after = [MANUALS[0], other, MANUALS[2], MANUALS[4], new]
    embeddings.asked.clear()
    assert (await chosen.select(after, ASKED)).embedded == 2
    assert sorted(embeddings.asked) == [("document", 2), ("query", 1)]


async def test_a_restart_embeds_nothing_again(store: Any, embeddings: Recording) -> None:
    await selector(store, embeddings).select(MANUALS, ASKED)
    assert (await selector(store, embeddings).select(MANUALS, ASKED)).embedded == 0


async def test_another_model_or_another_text_embeds_anew(store: Any, embeddings: Recording) -> None:
    first = selector(store, embeddings)
    await first.select(MANUALS, ASKED)
    second = selector(store, Recording(64))
    assert (await second.select(MANUALS, ASKED)).embedded == 5
    third = selector(store, Recording(64), function_text=lambda spec: spec.name)
    assert (await third.select(MANUALS, ASKED)).embedded == 5


async def test_of_functions_of_equal_text_names_decide(store: Any, embeddings: Recording) -> None:
    chosen = selector(store, embeddings, function_text=lambda spec: "rain", ranking="vector")
    selection = await chosen.select(MANUALS, ["rain"])
    assert selection.names == ("Find-Topic0", "Find-Topic1")


async def test_first_selections_at_once_synchronise_once(store: Any, embeddings: Recording) -> None:
    chosen = selector(store, embeddings)
    found = await asyncio.gather(*(chosen.select(MANUALS, ASKED) for _ in range(5)))
    assert len({each.names for each in found}) == 1
    assert [count for purpose, count in embeddings.asked if purpose == "document"] == [5]


async def test_parts_of_a_catalogue_in_turn_embed_nothing_again(store: Any, embeddings: Recording) -> None:
    chosen = selector(store, embeddings)
    for part in (MANUALS, MANUALS[1:], MANUALS[:4], MANUALS, MANUALS[1:]):
        selection = await chosen.select(part, ASKED)
        assert set(selection.names) <= {spec.name for spec in part}
    assert [count for purpose, count in embeddings.asked if purpose == "document"] == [5]


async def test_all_requests_are_embedded_in_one_call(store: Any, embeddings: Recording) -> None:
    chosen = selector(store, embeddings)
    selection = await chosen.select(
        MANUALS, ["Tell me whether rain comes to the city. After that find trains to the town by the sea."]
    )
    assert len(selection.requests) > 1
    assert ("query", len(selection.requests)) in embeddings.asked


async def test_what_is_left_out_comes_with_its_reason(store: Any, embeddings: Recording) -> None:
    selection = await selector(store, embeddings, limit=1, always=("Find.Topic4",)).select(
        MANUALS, ["rain in a city, bread, songs"]
    )
    assert [(each.name, each.reason) for each in selection.offered] == [
        ("Find-Topic4", "always"),
        ("Find-Topic0", "chosen"),
    ]
    assert selection.left_out
    assert {each.reason for each in selection.left_out} == {"beyond the limit"}
    assert selection.considered == 5
    scores = [each.score for each in (*selection.offered[1:], *selection.left_out)]
    assert scores == sorted(scores, reverse=True)
    assert "Find-Topic4" not in {each.name for each in selection.left_out}


async def test_a_minimum_score_leaves_out_also_where_there_is_room(store: Any, embeddings: Recording) -> None:
    asked = ["rain in a city, bread, songs"]
    plain = await selector(store, embeddings, limit=4).select(MANUALS, asked)
    best = plain.offered[0].score
    strict = await selector(store, embeddings, limit=4, minimum_score=best).select(MANUALS, asked)
    assert strict.names == plain.names[:1]
    assert {each.reason for each in strict.left_out} == {"below the minimum score"}


async def test_a_name_in_always_that_none_of_them_has_is_passed_over(store: Any, embeddings: Recording) -> None:
    chooser = selector(store, embeddings, limit=1, always=("Find-Topic4", "Clock-Now"))
    part = [spec for spec in MANUALS if spec.name != "Find-Topic4"]
    selection = await chooser.select(part, ASKED)
    assert selection.names == (await selector(store, embeddings, limit=1).select(part, ASKED)).names
    assert selection.absent == ("Find-Topic4", "Clock-Now")
    assert (await chooser.select(MANUALS, ASKED)).absent == ("Clock-Now",)
    assert (await chooser.select(MANUALS[:1], ASKED)).absent == ("Find-Topic4", "Clock-Now")
    assert (await chooser.select(MANUALS, [" "])).absent == ("Clock-Now",)


async def test_a_name_in_always_that_several_functions_have_is_refused(store: Any, embeddings: Recording) -> None:
    twins = [FunctionSpec(f"{plugin}-Look", "Look.", {}, {}) for plugin in ("Web", "Mail")]
    with pytest.raises(FunctionNotFound, match="Web-Look, Mail-Look"):
        await selector(store, embeddings, always=("Look",)).select(twins, ASKED)


async def test_a_kernel_names_the_nearest_where_it_has_no_function_that_is_always_offered() -> None:
    chooser = ContextualSelector(options=SelectionOptions(limit=1, always=("bread_of_baker",), ranking="lexical"))
    kernel = Kernel(function_selector=chooser)

    def rain_in_a_city() -> None:
        """Tell whether it rains."""

    def bread_of_a_baker() -> None:
        """Find bread."""

    kernel.add_function(rain_in_a_city)
    kernel.add_function(bread_of_a_baker)
    chat = ScriptedChat("Noted.", repeat=True, capabilities=ChatCapabilities(tools=True))
    with pytest.raises(FunctionNotFound, match="bread_of_a_baker"):
        await ChatAgent("guide", kernel=kernel, chat=chat).invoke("Will there be rain?")
    assert not chat.requests


async def test_a_plugin_that_is_always_offered_may_be_excluded_from_a_turn() -> None:
    chooser = ContextualSelector(options=SelectionOptions(limit=1, always=("Desk",), ranking="lexical"))
    hours = tuple(Function.of(function(name=f"now_{place}")(lambda: ""), plugin="Clock") for place in "abc")
    desk = Function.of(function(name="open")(lambda: ""), plugin="Desk")
    kernel = Kernel(
        plugins=[FunctionPlugin("Desk", (desk,)), FunctionPlugin("Clock", hours)], function_selector=chooser
    )
    chat = ScriptedChat("Noon.", "Noon.", capabilities=ChatCapabilities(tools=True))
    offered = []
    for choice in (ToolChoice(), ToolChoice(exclude=("Desk",))):
        await kernel.complete("What is now in b?", tool_choice=choice, chat=chat)
        offered.append([tool.name for tool in chat.requests[-1].tools])
    assert offered == [["Desk-open", "Clock-now_b"], ["Clock-now_b"]]


async def test_with_words_alone_no_store_is_needed() -> None:
    chosen = ContextualSelector(options=SelectionOptions(limit=1, ranking="lexical"))
    assert (await chosen.select(MANUALS, ASKED)).names == ("Find-Topic0",)
    with pytest.raises(ValueError, match="lexical"):
        ContextualSelector(options=SelectionOptions())


async def test_a_context_that_is_one_string_is_refused(store: Any, embeddings: Recording) -> None:
    with pytest.raises(TypeError, match="sequence of texts"):
        await selector(store, embeddings).select(MANUALS, "Will there be rain?")


async def test_two_functions_of_one_name_are_refused(store: Any, embeddings: Recording) -> None:
    with pytest.raises(ValueError, match="Find-Topic0"):
        await selector(store, embeddings).select([*MANUALS, FunctionSpec("Find-Topic0", "Else.", {}, {})], ASKED)


async def test_the_same_functions_are_not_read_again(store: Any, embeddings: Recording) -> None:
    read: list[str] = []

    def text(spec: FunctionSpec) -> str:
        read.append(spec.name)
        return spec.description

    chosen = selector(store, embeddings, function_text=text)
    for _ in range(3):
        await chosen.select(list(MANUALS), ASKED)
    assert read == [spec.name for spec in MANUALS]


@pytest.mark.parametrize("call", ["upsert", "search", "ids"])
@pytest.mark.parametrize("error", [StoreError("disk full"), StoreBusy("in use")])
async def test_a_store_that_fails_is_named_and_nothing_is_spoilt(
    call: str, error: StoreError, embeddings: Recording
) -> None:
    broken = DictVectorStore()
    chosen = selector(broken, embeddings)
    right = getattr(broken, call)

    def fail(*_: Any, **__: Any) -> Any:
        raise error

    setattr(broken, call, fail)
    new = [*MANUALS, FunctionSpec("Find-New", "Find a new one.", {}, {})]
    with pytest.raises(type(error), match=r"'functions' .* 'dict' failed: (disk full|in use)") as raised:
        await chosen.select(new, ASKED)
    assert raised.value.__cause__ is error
    setattr(broken, call, right)
    assert (await chosen.select(new, ASKED)).names[:1] == ("Find-Topic0",)


async def test_a_model_whose_vectors_changed_their_length_is_told_of(store: Any, embeddings: Recording) -> None:
    await selector(store, embeddings).select(MANUALS[:4], ASKED)
    other = Recording(64)
    other.model = embeddings.model
    with pytest.raises(StoreError, match="give it another name"):
        await selector(store, other).select(MANUALS, ASKED)


async def test_too_few_vectors_are_the_generator_s_fault(store: Any) -> None:
    class Short(Recording):
        async def embed(self, texts: Sequence[str], *, purpose: Any = "document") -> Vectors:
            return await super().embed(list(texts)[:-1], purpose=purpose)

    with pytest.raises(ResponseInvalid, match="'hashing' gave"):
        await selector(store, Short()).select(MANUALS, ASKED)


async def test_a_long_context_is_looked_for_by_its_end(store: Any, embeddings: Recording) -> None:
    text = "Tell me of bread from the bakery round the corner. " * 2_000 + "Will rain fall on the city?"
    selection = await selector(store, embeddings).select(MANUALS, [text])
    assert len(selection.requests) <= 16
    assert "Find-Topic0" in selection.names
    assert sum(map(len, selection.requests)) < 20_000


async def test_a_store_with_far_more_records_of_others_is_cleared(embeddings: Recording) -> None:
    store = DictVectorStore()
    many = [FunctionSpec(f"Old-Do{number}", f"Do it {number} times.", {}, {}) for number in range(1_100)]
    await selector(store, embeddings).select(many, ASKED)
    assert (await selector(store, embeddings).select(MANUALS, ASKED)).embedded == len(MANUALS)
    assert await store.count(VECTORS) == len(MANUALS)


async def test_a_store_that_was_emptied_is_filled_again(store: Any, embeddings: Recording) -> None:
    chosen = selector(store, embeddings)
    await chosen.select(MANUALS, ASKED)
    await store.drop(VECTORS)
    selection = await chosen.select(MANUALS, ASKED)
    assert selection.names[:1] == ("Find-Topic0",)
    assert selection.embedded == len(MANUALS)
