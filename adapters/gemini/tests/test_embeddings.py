"""Texts go out in Gemini's form, each with what it is for, and vectors arrive whole, of length 1."""

from __future__ import annotations

import numpy as np
import pytest

from portico import Usage
from portico.errors import AuthenticationFailed, ContextOverflow, ResponseInvalid


async def test_a_text_is_sent_with_its_task_and_its_length(loopback, embedder, make_embeddings):
    embeddings = make_embeddings(dimensions=3)
    vectors = await embeddings.embed(["one", "", "two"])
    await embeddings.embed(["two"], purpose="query")
    first, second = embedder.asked
    same = {"model": "models/m-1", "outputDimensionality": 3}
    assert first["requests"] == [
        {**same, "taskType": "RETRIEVAL_DOCUMENT", "content": {"parts": [{"text": text}]}} for text in ("one", "two")
    ]
    assert second["requests"][0]["taskType"] == "RETRIEVAL_QUERY"
    assert [visit.path for visit in loopback.visits] == ["/v1beta/models/m-1:batchEmbedContents"] * 2
    rows = np.frombuffer(vectors.buffer, dtype=np.float32).reshape(3, 3)
    expected = [np.array(embedder.vector(text)) / np.linalg.norm(embedder.vector(text)) for text in ("one", "two")]
    assert np.allclose(rows, [expected[0], np.zeros(3), expected[1]], atol=1e-6)
    assert embeddings.usage == Usage(input_tokens=3)


async def test_a_model_that_takes_no_task_gets_a_prefix(embedder, make_embeddings):
    plain = {"document_task": "", "query_task": ""}
    embeddings = make_embeddings(**plain, query_prefix="task: search result | query: ")
    await embeddings.embed(["x"])
    await embeddings.embed(["x"], purpose="query")
    assert [asked["requests"][0]["content"]["parts"][0]["text"] for asked in embedder.asked] == [
        "x",
        "task: search result | query: x",
    ]
    assert "taskType" not in str(embedder.asked)
    names = {make_embeddings(**more).model for more in ({}, plain, {"query_task": "QUESTION_ANSWERING"})}
    assert len({embeddings.model, *names}) == 4, "each makes other vectors"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "0 vectors for 2 texts"),
        ({"embeddings": [{"values": [1.0]}]}, "1 vectors for 2 texts"),
        ({"embeddings": [{"values": [1.0]}, {"values": [1.0, 2.0]}]}, "vectors of different lengths"),
        ({"embeddings": [{}, {}]}, "or empty ones"),
        ({"embeddings": [{"values": ["1"]}, {"values": [1.0]}]}, "`$.embeddings[0].values[0]`"),
        (b"[1]", "not in Gemini's format"),
    ],
)
async def test_an_answer_that_is_something_else_is_told_apart(body, said, loopback, make_embeddings):
    loopback.will(loopback.whole(body))
    with pytest.raises(ResponseInvalid) as caught:
        await make_embeddings().embed(["one", "two"])
    assert said in str(caught.value)
    assert str(caught.value).startswith("Embeddings 'gemini' (m-1 at 127.0.0.1:")


async def test_errors_are_those_of_chat(loopback, make_embeddings):
    key = {"error": {"code": 400, "message": "No.", "details": [{"reason": "API_KEY_INVALID"}]}}
    long = {"error": {"code": 400, "message": "The input token count (9) exceeds the maximum number of tokens (8)."}}
    for body, kind in ((key, AuthenticationFailed), (long, ContextOverflow)):
        loopback.will(loopback.whole(body, status="400 No"))
        with pytest.raises(kind):
            await make_embeddings().embed(["x"])
