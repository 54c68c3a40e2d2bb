"""What is quoted is in the sources, and nothing else is said."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings, strategies as st

from portico import ChatReply, ChatRequest, Message, Source
from portico.errors import ConfigurationError, PluginNotInstalled, ServiceUnavailable
from portico_basics.config import ExtractiveSettings
from portico_basics.extractive._text import as_read
from portico_basics.extractive.chat import ExtractiveChat
from portico_testkit.fakes.embedding_generator import HashingEmbeddings

FRAGMENTS = st.sampled_from(
    [
        "Write three methods. ",
        "The cache, e.g. on disk, is cleared nightly.\n",
        "# Cache\n\n",
        "Cache\n=====\n",
        "- clear the cache\n",
        "1. methods\n   on two lines\n",
        "```\ncache.clear()\n```\n",
        "```python\ndef cache(): ...",
        "    cache = 1\n    more()\n",
        "| cache | 1 |\n| --- | --- |\n",
        "\n\n",
        "\r\n",
        "Do it so:\n\n",
        "“cache” [3] `a. b` ",
        "キャッシュを消去します。",
        "~~~~\n",
        "\u2028\x0c\x00 ",
    ]
)
TEXTS = st.one_of(st.lists(FRAGMENTS, max_size=12).map("".join), st.text(max_size=300))
SOURCES = st.lists(
    st.builds(
        Source,
        st.integers(0, 9),
        TEXTS,
        st.none() | st.text(max_size=10),
        st.sampled_from([None, "", "file:///a/b.md#L12", "file:///a/b.md#L3-L9", "https://example.org/#L5"]),
    ),
    max_size=5,
)
QUESTIONS = st.one_of(
    st.sampled_from(["How do I clear the cache?", "methods", "キャッシュ", "What?", "cache three methods written"]),
    st.text(max_size=60),
)


def answer(question: str, *sources: Source, **given: object) -> ChatReply:
    chat = ExtractiveChat(ExtractiveSettings(**given))  # type: ignore[arg-type]
    return asyncio.run(chat.complete(ChatRequest([Message.of("user", question, *sources)])))


@given(question=QUESTIONS, sources=SOURCES, quotes=st.integers(1, 5), characters=st.integers(1, 400))
@settings(deadline=None, max_examples=150)
def test_a_reply_is_made_of_quotes_and_nothing_else(
    question: str, sources: list[Source], quotes: int, characters: int
) -> None:
    reply = answer(question, *sources, maximum_quotes=quotes, maximum_characters=characters, minimum_relevance=0.2)
    again = answer(question, *sources, maximum_quotes=quotes, maximum_characters=characters, minimum_relevance=0.2)
    assert reply == again
    if not reply.citations:
        assert re.fullmatch(
            r"Nothing relevant was found in the \d+ passages? searched\.|There (is|are) no .*|The question seems .*",
            reply.text,
        )
        return
    assert len(reply.citations) <= quotes
    assert len(reply.citations) == 1 or sum(len(citation.quote) for citation in reply.citations) <= characters
    rest = reply.text
    for citation in reply.citations:
        assert any(
            citation.quote in source.text and (citation.number, citation.name) == (source.number, source.name)
            for source in sources
        ), f"{citation} is in no source"
        assert citation.quote.strip(), "an empty quote"
        shown, mark, rest = rest.partition(f"[{citation.number}]")
        while letters(citation.quote) not in letters(shown) and mark:  # the quote has such a mark itself
            before, mark, rest = rest.partition(f"[{citation.number}]")
            shown += f"[{citation.number}]{before}"
        assert mark, f"the reply does not give the quote {citation.quote!r} with its mark"
    assert not rest


def letters(text: str) -> str:
    """Return the letters and digits of a text as it is read, which its lines do not change."""
    return "".join(filter(str.isalnum, as_read(text)))


def test_the_link_moves_on_to_the_line_of_the_quote() -> None:
    text = "# Cache\n\nIt holds pages.\nThe cache is cleared\nat midnight."
    for link, expected in [
        ("file:///a%20b.md#L10", "file:///a%20b.md#L13"),
        ("file:///a.md#L10-L14", "file:///a.md#L13"),
        ("file:///a.md", "file:///a.md"),
        ("https://example.org/#L10", "https://example.org/#L10"),
        (None, None),
    ]:
        (citation,) = answer("When is the cache cleared?", Source(4, text, "a.md", link)).citations
        assert (citation.number, citation.link, citation.quote) == (4, expected, "The cache is cleared\nat midnight.")


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("How is a report written?", "Write the report on Monday."),
        ("Who wrote the report?", "The report was written by Ann."),
        ("How do I configure caching?", "The cache is configured in the settings."),
        ("installation", "Install it with one line."),
        ("How many indices per folder?", "There is one index for each folder."),
        ("get text results", "Call get_text_search_results for records."),
        ("SearchConnector", "Every search connector is a class."),
        ("connection failures", "If the connector fails, the error names it."),
    ],
)
def test_a_word_is_found_in_its_other_forms(question: str, sentence: str) -> None:
    other = "Nothing here bears on that. The garden is green in May."
    reply = answer(question, Source(1, other), Source(2, f"Some more. {sentence} And so on."))
    assert [citation.quote for citation in reply.citations] == [sentence]


def test_nothing_to_go_by_is_said_in_so_many_words() -> None:
    source = Source(1, "Bread rises in a warm kitchen.")
    assert answer("", source).text == "There is no question to answer."
    assert answer("Bread?").text == "There are no sources to answer from."
    assert answer("How far is the moon?", source).text == "Nothing relevant was found in the 1 passage searched."
    assert answer("What is it?", source, source).text == "Nothing relevant was found in the 2 passages searched."


def test_code_is_quoted_as_code_and_with_the_sentence_that_announces_it() -> None:
    fenced = "Clear the cache so:\n\n```\ncache.clear()\n```\n\nUnrelated words follow."
    assert answer("How do I clear the cache?", Source(1, fenced)).text == (
        "Clear the cache so:\n\n```\ncache.clear()\n```\n[1]"
    )
    bare = "def clear_cache(store):\n    store.clear()\n    return None\n"
    assert answer("How do I clear the cache?", Source(2, bare)).text == f"```\n{bare.strip()}\n```\n[2]"


def test_one_thing_said_twice_is_quoted_once() -> None:
    said = "The cache is cleared every night at two."
    reply = answer("When is the cache cleared?", Source(1, said), Source(2, said), Source(3, f"Note. {said}"))
    assert [citation.number for citation in reply.citations] == [1]


def test_a_list_comes_with_the_sentence_that_announces_it() -> None:
    text = "A connector needs three things:\n\n- a class\n- two mappers\n- settings\n\nThe rest is derived."
    (citation,) = answer("What does a connector need?", Source(1, text)).citations
    assert citation.quote == "A connector needs three things:\n\n- a class\n- two mappers\n- settings"


def test_the_best_source_is_first() -> None:
    weak = Source(1, "The cache exists.")
    strong = Source(2, "First the cache is filled by day.\n\nOther text.\n\nThen the full cache is cleared at night.")
    reply = answer("When is the full cache cleared or filled?", weak, strong)
    assert reply.citations[0].number == 2


def test_the_last_question_counts_and_sources_of_every_message_are_read() -> None:
    request = ChatRequest(
        [
            Message.of("system", Source(1, "The ferry leaves at eleven.")),
            Message.of("user", "When is the cache cleared?", Source(2, "The cache is cleared at two.")),
            Message.of("assistant", "At two."),
            Message.of("user", "When does the ferry leave?"),
        ]
    )
    assert asyncio.run(ExtractiveChat().complete(request)).text == "“The ferry leaves at eleven.” [1]"


class Services:
    def __init__(self, outcome: object) -> None:
        self.outcome = outcome

    def get(self, port, name=None):
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    def names(self, port):
        return ()


class Failing(HashingEmbeddings):
    async def embed(self, texts, *, purpose="document"):
        raise ServiceUnavailable("no connection")


@pytest.mark.parametrize("outcome", [PluginNotInstalled("none"), ConfigurationError("none"), Failing()])
async def test_without_embeddings_it_goes_by_words(outcome: object) -> None:
    request = ChatRequest([Message.of("user", "When is the cache cleared?", Source(1, "The cache is cleared at two."))])
    reply = await ExtractiveChat(None, Services(outcome)).complete(request)
    assert reply == await ExtractiveChat().complete(request)


async def test_embeddings_can_be_turned_off_and_are_asked_for_a_bounded_number_of_sentences() -> None:
    generator = HashingEmbeddings()
    source = Source(1, " ".join(f"Sentence {number} is on the cache." for number in range(400)))
    request = ChatRequest([Message.of("user", "What is said on the cache?", source)])
    await ExtractiveChat(ExtractiveSettings(embeddings=False), Services(generator)).complete(request)
    assert generator.embedded == 0
    await ExtractiveChat(None, Services(generator)).complete(request)
    assert generator.embedded == 121


@pytest.mark.parametrize("unit", ["word ", "a. ", "- x\n", "`", "A: b\n\n", "```\n", "| a |\n", "x", "(", "\n", "Mr. "])
def test_a_great_deal_of_anything_is_read_within_the_bounds(unit: str) -> None:
    sources = [Source(number, unit * (60_000 // len(unit))) for number in range(40)]
    reply = answer("What is the word on x, a or b?", *sources)
    assert len(reply.text) < 5_000


def test_a_long_question_is_read_within_the_bounds() -> None:
    for question in ("which " * 20_000, "A" * 50_000):
        assert not answer(question, Source(1, "The lamp is lit.")).citations


def test_only_so_much_is_read() -> None:
    late = "word " * 10_000 + "The cache is cleared at two."
    assert not answer("When is the cache cleared?", Source(1, late)).citations
    early = [Source(number, "word " * 10_000) for number in range(26)]
    assert not answer("When is the cache cleared?", *early, Source(30, "The cache is cleared at two.")).citations
    assert answer("When is the cache cleared?", *early[:20], Source(30, "The cache is cleared at two.")).citations


def test_listing_what_it_registers_imports_no_vendor() -> None:
    code = "import sys, portico_basics._plugin as p; p.portico_chat_services(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"snowballstemmer", "numpy", "attr"} & set(loaded)
