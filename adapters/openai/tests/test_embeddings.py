"""Vectors arrive whole, in order, of length 1, whatever the server's way of writing them."""

from __future__ import annotations

import asyncio
import base64
import json

import numpy as np
import pytest
from hypothesis import given, strategies as st

from portico import Usage
from portico.errors import (
    AuthenticationFailed,
    ContextOverflow,
    RateLimited,
    ResponseInvalid,
    ServiceTimeout,
    ServiceUnavailable,
)
from portico_wire.embeddings import batches_of, normalize, pieces_of


def vector(text: str) -> list[float]:
    """A direction of its own for each text, of any length."""
    return [float(len(text) + 1), float(sum(map(ord, text)) % 97 + 1), -3.0]


def written(text: str, *, as_base64: bool) -> object:
    if not as_base64:
        return vector(text)
    return base64.b64encode(np.array(vector(text), dtype="<f4").tobytes()).decode()


class Embedder:
    """Answers as a server for embeddings does."""

    def __init__(self, loopback, *, as_base64=True, shuffled=True):
        self.asked: list[dict[str, object]] = []
        self.at_once = 0
        self.most_at_once = 0
        self._loopback = loopback
        self._as_base64 = as_base64
        self._shuffled = shuffled

    async def __call__(self, visit):
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0.01)
        asked = visit.json
        self.asked.append(asked)
        data = [
            {"object": "embedding", "index": number, "embedding": written(text, as_base64=self._as_base64)}
            for number, text in enumerate(asked["input"])
        ]
        if self._shuffled:
            data.reverse()
        self.at_once -= 1
        usage = {"prompt_tokens": len(asked["input"]), "total_tokens": len(asked["input"])}
        await visit.send(self._loopback.whole({"object": "list", "data": data, "model": "m-1", "usage": usage}))


def expected(texts: list[str]) -> np.ndarray:
    rows = [np.array(vector(text)) / np.linalg.norm(vector(text)) if text.strip() else np.zeros(3) for text in texts]
    return np.array(rows, dtype=np.float32)


def rows_of(vectors) -> np.ndarray:
    return np.frombuffer(vectors.buffer, dtype=np.float32).reshape(vectors.rows, vectors.dimensions)


@pytest.mark.parametrize("as_base64", [True, False])
async def test_rows_are_those_of_the_texts_in_their_order(as_base64, loopback, make_embeddings):
    server = Embedder(loopback, as_base64=as_base64)
    loopback.will(server)
    texts = ["one", "", "two", "three", "one", " \n", "four", "two"]
    embeddings = make_embeddings()
    assert np.allclose(rows_of(await embeddings.embed(texts)), expected(texts), atol=1e-6)
    assert server.asked == [{"model": "m-1", "input": ["one", "two", "three", "four"], "encoding_format": "base64"}]
    assert embeddings.usage == Usage(input_tokens=4)


async def test_batches_are_bounded_by_number_and_by_characters_and_a_few_go_at_once(loopback, make_embeddings):
    server = Embedder(loopback)
    loopback.will(server)
    texts = [f"{'x' * (number % 7 * 10)} {number}" for number in range(100)]
    embeddings = make_embeddings(batch_size=10, batch_characters=200, concurrency=3)
    assert np.allclose(rows_of(await embeddings.embed(texts)), expected(texts), atol=1e-6)
    assert all(len(asked["input"]) <= 10 for asked in server.asked)
    assert all(sum(map(len, asked["input"])) <= 200 for asked in server.asked)
    assert server.most_at_once == 3
    assert embeddings.usage == Usage(input_tokens=100)


async def test_a_long_text_is_the_mean_of_its_pieces(loopback, make_embeddings):
    server = Embedder(loopback)
    loopback.will(server)
    text = "alpha beta gamma delta epsilon"
    row = rows_of(await make_embeddings(max_text_characters=12).embed([text, "zeta"]))[0]
    pieces = server.asked[0]["input"][:-1]
    assert "".join(pieces) == text
    assert all(len(piece) <= 12 for piece in pieces)
    mean = sum(len(piece) * expected([piece])[0] for piece in pieces)
    assert np.allclose(row, mean / np.linalg.norm(mean), atol=1e-6)


async def test_what_a_model_cannot_take_at_once_goes_out_by_halves(loopback, make_embeddings):
    server = Embedder(loopback)

    async def short_sighted(visit):
        if sum(map(len, visit.json["input"])) > 100:
            error = {"error": {"message": "input is too large to process", "code": 500}}
            await visit.send(loopback.whole(error, status="500 No"))
        else:
            await server(visit)

    loopback.will(short_sighted)
    texts = ["short", "word " * 50, "another", "", "x" * 300]
    rows = rows_of(await make_embeddings().embed(texts))
    assert np.allclose(rows[[0, 2, 3]], expected(["short", "another", ""]), atol=1e-6)
    assert np.allclose(np.linalg.norm(rows[[1, 4]], axis=1), 1)
    sent = [text for asked in server.asked for text in asked["input"]]
    assert "".join(text for text in sent if "word" in text) == texts[1]
    assert "".join(text for text in sent if "xx" in text) == texts[4]
    loopback.will(loopback.whole({"error": {"message": "input is too large to process"}}, status="500 No"))
    with pytest.raises(ContextOverflow):
        await make_embeddings().embed(texts)


async def test_prefixes_tell_what_a_text_is_for_and_name_the_space(loopback, make_embeddings):
    server = Embedder(loopback)
    loopback.will(server)
    embeddings = make_embeddings(document_prefix="passage: ", query_prefix="query: ")
    await embeddings.embed(["x", ""])
    await embeddings.embed(["x"], purpose="query")
    assert [asked["input"] for asked in server.asked] == [["passage: x"], ["query: x"]]
    assert embeddings.model == "openai/m-1 after 'passage: ' asked after 'query: '"
    assert make_embeddings().model == "openai/m-1"
    assert make_embeddings(dimensions=3).model == "openai/m-1-3"


async def test_the_length_of_a_vector_is_known_set_or_asked_for(loopback, make_embeddings):
    server = Embedder(loopback)
    loopback.will(server)
    asking = make_embeddings()
    for texts in ([], [""], [" ", ""]):
        vectors = await asking.embed(texts)
        assert (vectors.rows, vectors.dimensions) == (len(texts), 3)
        assert not any(vectors.buffer)
    assert len(server.asked) == 1
    told = make_embeddings(dimensions=256)
    assert (await told.embed([])).dimensions == 256
    assert len(server.asked) == 1


async def test_a_server_that_does_not_shorten_its_vectors_is_found_out(loopback, make_embeddings):
    server = Embedder(loopback)
    loopback.will(server)
    assert (await make_embeddings(dimensions=3).embed(["x"])).dimensions == 3
    assert server.asked[0]["dimensions"] == 3
    with pytest.raises(ResponseInvalid, match=r"vectors of 3 numbers instead of 256.*Leave `dimensions` out"):
        await make_embeddings(dimensions=256).embed(["x"])


def answer(*rows: object, **further: object) -> dict[str, object]:
    return {"data": [{"index": number, "embedding": row} for number, row in enumerate(rows)], **further}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (answer([1.0]), "1 vectors for 2 texts"),
        (answer([1.0], [1.0], [1.0]), "3 vectors"),
        ({"data": [{"index": 0, "embedding": [1.0]}] * 2}, "wrong indexes"),
        (answer([1.0], [1.0, 2.0]), "vectors of different lengths"),
        (answer([], []), "or empty ones"),
        (answer("AAAA", "AAAA"), "or empty ones"),
        (answer("not base64!", "x"), "`$.data[0].embedding`"),
        (answer([None], [1.0]), "`$.data[0].embedding"),
        (answer("AACAfw==", "AACAfw=="), "not finite"),
        (answer([1e300], [1.0]), "not finite"),
        ({}, "0 vectors"),
        (b"<html><title>Oops</title>", "not JSON: a page in HTML with the title “Oops”"),
        (b"", "empty"),
        (b"[1]", "not in OpenAI's format"),
    ],
)
async def test_an_answer_that_is_something_else_is_told_apart(body, said, loopback, make_embeddings):
    loopback.will(loopback.whole(body))
    with pytest.raises(ResponseInvalid) as caught:
        await make_embeddings().embed(["one", "two"])
    assert said in str(caught.value)
    assert str(caught.value).startswith("Embeddings 'openai' (m-1 at 127.0.0.1:")


async def test_errors_are_those_of_chat(loopback, make_embeddings):
    for status, body, kind in (
        ("401 No", {"error": {"message": "Bad key"}}, AuthenticationFailed),
        ("429 No", {"error": {"message": "Slow down"}}, RateLimited),
        ("503 No", {"error": {"message": "Loading model"}}, ServiceUnavailable),
        ("500 No", {"error": {"message": "input (999 tokens) is too large to process."}}, ContextOverflow),
        ("200 OK", {"error": {"message": "Oops", "code": 502}}, ServiceUnavailable),
    ):
        loopback.will(loopback.whole(body, status=status))
        with pytest.raises(kind):
            await make_embeddings().embed(["x"])


async def test_the_first_failure_ends_the_whole_call_and_the_other_requests(loopback, make_embeddings):
    async def one_fails(visit):
        if "3" in visit.json["input"]:
            while len(loopback.visits) < 4:
                await asyncio.sleep(0.01)
            await visit.send(loopback.whole({"error": {"message": "No."}}, status="429 No"))
        else:
            await visit.until_gone()

    loopback.will(one_fails)
    before = asyncio.all_tasks()
    with pytest.raises(RateLimited):
        await make_embeddings(batch_size=1, concurrency=4).embed([str(number) for number in range(10)])
    for visit in loopback.visits:
        if "3" not in visit.json["input"]:
            await asyncio.wait_for(visit.gone.wait(), 10)
    assert len(loopback.visits) == 4
    assert [task for task in asyncio.all_tasks() - before if "_serve" not in str(task.get_coro())] == []


async def test_a_silent_server_is_bounded(loopback, make_embeddings):
    async def silence(visit):
        await visit.until_gone()

    loopback.will(silence)
    with pytest.raises(ServiceTimeout, match=r"0\.2 s have passed \(timeout\)"):
        await make_embeddings(timeout=0.2).embed(["x"])


async def test_one_string_is_refused_since_it_would_be_embedded_by_letter(make_embeddings):
    with pytest.raises(TypeError, match="not one string"):
        await make_embeddings().embed("text")
    with pytest.raises(TypeError, match="text 1 is int"):
        await make_embeddings().embed(["a", 2])


@given(text=st.text(max_size=200), limit=st.integers(1, 30))
def test_pieces_are_the_text_less_blanks(text: str, limit: int):
    pieces = list(pieces_of(text, limit))
    assert all(0 < len(piece) <= limit and piece.strip() for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


@given(texts=st.lists(st.text(max_size=30), max_size=30), count=st.integers(1, 8), characters=st.integers(1, 60))
def test_batches_are_all_texts_in_order_within_the_bounds(texts: list[str], count: int, characters: int):
    batches = list(batches_of(texts, count, characters))
    assert [number for batch in batches for number in batch] == list(range(len(texts)))
    for batch in batches:
        assert 0 < len(batch) <= count
        assert len(batch) == 1 or sum(len(texts[number]) for number in batch) <= characters


@given(
    rows=st.lists(
        st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=3, max_size=3), min_size=1
    )
)
def test_rows_are_brought_to_length_one(rows: list[list[float]]):
    made = normalize(np.array(rows, dtype=np.float32))
    lengths = np.linalg.norm(made.astype(np.float64), axis=1)
    for row, length in zip(rows, lengths, strict=True):
        assert length == pytest.approx(1 if any(row) else 0, abs=1e-5), json.dumps(row)
