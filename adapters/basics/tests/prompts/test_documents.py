"""Settings files from anybody: data, or an error with a reason, and nothing else."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, strategies as st

from portico_basics.prompts._documents import read_document
from portico_basics.prompts._files import PromptSettings, read_settings
from portico_basics.prompts._wrong import Wrong
from portico_basics.prompts._yaml import read_yaml

WORDS = [
    "name", "description", "language", "template", "template_format", "inputs", "input_variables", "input", "returns",
    "output_variable", "execution_settings", "completion", "default", "required", "is_required", "json_schema",
    "schema", "type", "temperature", "stop", "functions", "tool_choice", "parameters", "extras", "trusted", "string",
]  # fmt: skip
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=10),
    st.sampled_from(WORDS),
)
keys = st.sampled_from(WORDS) | st.text("ab", max_size=2)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4))
PARTS = [*WORDS, ": ", "- ", "\n", "\n  ", "{", "}", "[", "]", "&a ", "*a", "!!str ", "!x ", "|", '"', "'", "#", "<<"]
sources = st.lists(st.sampled_from(PARTS), max_size=20).map("".join) | st.text(max_size=30)


@pytest.mark.fuzz
@given(values)
def test_any_json_is_settings_or_wrong(value: object) -> None:
    try:
        assert isinstance(read_settings(value), PromptSettings)
    except Wrong as error:
        assert 5 < len(str(error)) < 400


@pytest.mark.fuzz
@given(st.dictionaries(keys, values, max_size=5))
def test_any_table_is_settings_or_wrong(value: object) -> None:
    try:
        assert isinstance(read_settings(value), PromptSettings)
    except Wrong as error:
        assert 5 < len(str(error)) < 400


@pytest.mark.fuzz
@given(sources, st.sampled_from(["yaml", "toml", "json"]))
def test_any_text_is_a_document_or_wrong(source: str, kind: str) -> None:
    try:
        json.dumps(read_document(source, kind), allow_nan=False)
    except Wrong as error:
        assert 5 < len(str(error)) < 400


@pytest.mark.fuzz
@given(values)
def test_what_is_written_as_yaml_is_read_as_it_was(value: object) -> None:
    assert read_yaml(json.dumps(value, ensure_ascii=False)) == value


def test_only_plain_data_has_surprises_left_out() -> None:
    source = "{a: no, b: 2026-03-01, c: 0x10, d: 1_000, e: 12:30, f: 1e3, g: .5, h: ~, i: True, j: 'true', k: 007}"
    assert read_yaml(source) == {
        "a": "no", "b": "2026-03-01", "c": "0x10", "d": "1_000", "e": "12:30", "f": 1000.0, "g": 0.5, "h": None,
        "i": True, "j": "true", "k": 7,
    }  # fmt: skip


@pytest.mark.parametrize(
    "source",
    ["[" * 200_000, "a: " * 100_000, "- " * 100_000, "{a: " * 100_000, "&a " * 100_000, "? " * 100_000, "'" * 299_999],
    ids=lambda source: source[:4],
)
def test_a_large_file_made_to_be_slow_ends_soon(source: str) -> None:
    started = time.perf_counter()
    for kind in ("yaml", "toml", "json"):
        with pytest.raises(Wrong):
            read_document(source, kind)
    assert time.perf_counter() - started < 20
