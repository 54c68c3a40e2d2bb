"""What is read of a GGUF file's head, and what is refused."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from portico_llamacpp._child import Head, NotGguf, read_head
from portico_llamacpp._starting import find_weights


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(name: str, kind: int, value: bytes) -> bytes:
    return text(name) + struct.pack("<I", kind) + value


def array(kind: int, values: list[bytes]) -> bytes:
    return struct.pack("<IQ", kind, len(values)) + b"".join(values)


TOKENS = ["<|im_end|>", "hello", "<b>", "<end_of_turn>", "  ", "</s>", "x", "é"]
KINDS = [3, 1, 4, 4, 4, 3, 3, 1]
ENTRIES = [
    entry("general.architecture", 8, text("llama")),
    entry("general.quantized", 7, b"\x01"),
    entry("llama.context_length", 4, struct.pack("<I", 4096)),
    entry("tokenizer.ggml.tokens", 9, array(8, [text(token) for token in TOKENS])),
    entry("tokenizer.ggml.scores", 9, array(6, [struct.pack("<f", 0.5)] * len(TOKENS))),
    entry("tokenizer.ggml.token_type", 9, array(5, [struct.pack("<i", kind) for kind in KINDS])),
    entry("nested", 9, array(9, [array(0, [b"\x01", b"\x02"]), array(8, [text("a")])])),
]
FILE = b"GGUF" + struct.pack("<IQQ", 3, 0, len(ENTRIES)) + b"".join(ENTRIES)


def test_the_control_tokens_and_the_context_are_found(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(FILE + b"tensors")
    # A user-defined token is text, save the marks of turns; one of a single letter cannot be taken apart.
    assert read_head(path) == Head(4096, ("<|im_end|>", "<end_of_turn>", "</s>"))


def test_a_file_without_a_vocabulary_has_no_control_tokens(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + ENTRIES[0])
    assert read_head(path) == Head(None, ())


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_head_is_refused_or_read_and_never_anything_else(tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(FILE)
    for place in data.draw(st.lists(st.integers(4, len(FILE) - 1), max_size=4)):
        content[place] = data.draw(st.integers(0, 255))
    path = tmp_path / "model.gguf"
    path.write_bytes(content[: data.draw(st.integers(0, len(FILE)))])
    try:
        assert isinstance(read_head(path), Head)
    except NotGguf as error:
        assert str(error)


@pytest.mark.parametrize("content", [b"", b"GG", b"GGUF", b"import sys", b"\0" * 100])
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(NotGguf):
        read_head(path)


def test_the_packaged_weights_are_read() -> None:
    head = read_head(find_weights(None))
    assert head.context_size == 8192
    assert {"<|im_start|>", "<|im_end|>", "<|endoftext|>"} <= set(head.control)
