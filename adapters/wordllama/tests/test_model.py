"""The vectors are those of the model, whatever the texts."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from portico.errors import ServiceUnavailable
from portico_wordllama import _model
from portico_wordllama.config import WordllamaSettings
from portico_wordllama.embeddings import WordllamaEmbeddings


@pytest.fixture(scope="module")
def model() -> _model.Model:
    return _model.load(256)


@given(texts=st.lists(st.text(st.characters(), max_size=200), max_size=8), data=st.data())
@settings(deadline=None)
def test_a_row_depends_on_its_text_alone(model: _model.Model, texts: list[str], data: st.DataObject) -> None:
    rows = model.rows(texts)
    assert rows.dtype == np.float32
    assert rows.flags.c_contiguous
    lengths = np.linalg.norm(rows, axis=1)
    for text, row, length in zip(texts, rows, lengths, strict=True):
        assert length == pytest.approx(1 if text.strip() else 0, abs=1e-5), f"{text!r} has a row of length {length}"
        assert np.array_equal(row, model.rows([text])[0]), f"the row of {text!r} depends on its neighbours"
    order = data.draw(st.permutations(range(len(texts))))
    assert np.array_equal(model.rows([texts[number] for number in order]), rows[order])


def test_the_vectors_are_those_of_the_library_for_text_on_one_line(model: _model.Model) -> None:
    code = """
import sys, wordllama, numpy
from pathlib import Path
loaded = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
sys.stdout.buffer.write(loaded.embed(sys.argv[1:], norm=True).astype(numpy.float32).tobytes())
"""
    texts = ["How do I write a search connector?", "Vectors cross ports as float32.", "Straße, 中文 and 🙂"]
    # A process of its own: the library sets the root logger when it is imported.
    written = subprocess.run([sys.executable, "-c", code, *texts], capture_output=True, check=True).stdout
    theirs = np.frombuffer(written, dtype=np.float32).reshape(len(texts), 256)
    assert np.allclose(model.rows(texts), theirs, atol=1e-6)


def test_how_a_paragraph_is_wrapped_does_not_move_its_vector(model: _model.Model) -> None:
    rows = model.rows(["A port is\n  a protocol.\n", "A port is a protocol."])
    assert np.array_equal(rows[0], rows[1])


def test_a_shorter_vector_is_the_beginning_of_a_longer_one(model: _model.Model) -> None:
    text = ["A port is a protocol."]
    beginning = model.rows(text)[:, :64]
    assert np.allclose(_model.load(64).rows(text), beginning / np.linalg.norm(beginning), atol=1e-6)


def test_a_long_text_in_a_batch_costs_memory_for_its_own_length_only(model: _model.Model) -> None:
    texts = ["short"] * 500 + ["many words " * 100_000] + ["short"] * 500
    tracemalloc.start()
    try:
        model.rows(texts)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40_000_000, f"{peak:,} bytes"


@pytest.mark.parametrize("joint", [" ", "\n", ""])
def test_a_long_text_is_the_mean_of_all_of_it(model: _model.Model, joint: str) -> None:
    half = "red green blue".replace(" ", joint)
    long = joint.join([half] * 3_000)
    short = joint.join([half] * 20)
    cosine = float((model.rows([long]) @ model.rows([short]).T)[0, 0])
    assert cosine > 0.99, f"the vector of a text moves with its length: cosine {cosine:.3f}"


async def test_one_string_is_refused_since_it_would_be_embedded_by_letter() -> None:
    with pytest.raises(TypeError, match="sequence of texts"):
        await WordllamaEmbeddings().embed("one string")
    with pytest.raises(TypeError, match="text 1 is int"):
        await WordllamaEmbeddings().embed(["one", 2])  # type: ignore[list-item]


async def test_a_missing_or_damaged_model_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Spec:
        submodule_search_locations = (str(tmp_path),)

    monkeypatch.setattr(_model, "find_spec", lambda name: Spec)
    with pytest.raises(ServiceUnavailable, match="force-reinstall wordllama"):
        await WordllamaEmbeddings().embed(["text"])
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "l2_supercat_256.safetensors").write_bytes(b"\0" * 100)
    with pytest.raises(ServiceUnavailable, match="force-reinstall wordllama"):
        await WordllamaEmbeddings().embed(["text"])
    monkeypatch.setattr(_model, "find_spec", lambda name: None)
    with pytest.raises(ServiceUnavailable, match="pip install wordllama"):
        await WordllamaEmbeddings().embed(["text"])
    monkeypatch.undo()
    assert find_spec("wordllama")


def test_settings_refuse_what_the_model_cannot_do() -> None:
    with pytest.raises(ValueError, match="dimensions"):
        WordllamaSettings(dimensions=100)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="batch_size"):
        WordllamaSettings(batch_size=0)
    assert WordllamaEmbeddings(WordllamaSettings(dimensions=128)).model == "wordllama/l2_supercat-128"


def test_the_first_call_touches_neither_the_network_nor_the_root_logger() -> None:
    code = """
import asyncio, logging, socket, sys
def refused(*args, **kwargs):
    raise AssertionError("a socket was opened")
import portico_wordllama._plugin, portico_wordllama.config
from portico_wordllama.embeddings import WordllamaEmbeddings
heavy = {"numpy", "tokenizers", "safetensors", "wordllama", "requests"}
generator = WordllamaEmbeddings()
assert not heavy & set(sys.modules), heavy & set(sys.modules)
async def main():
    socket.socket.connect = socket.create_connection = socket.getaddrinfo = refused
    return await generator.embed(["text"])
assert asyncio.run(main()).rows == 1
assert not {"wordllama", "requests"} & set(sys.modules)
assert not logging.getLogger().handlers and logging.getLogger().level == logging.WARNING
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
