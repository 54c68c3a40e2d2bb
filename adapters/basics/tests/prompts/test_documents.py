"""Settings files from anybody: data, or an error with a reason, and nothing else."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, strategies as st

from portico_basics.prompts._files import PromptFile, PromptInvalid, read_document, read_settings

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
def test_any_json_is_settings_or_refused(value: object) -> None:
    try:
        assert isinstance(read_settings(value), PromptFile)
    except PromptInvalid as error:
        assert 5 < len(str(error)) < 800


@pytest.mark.fuzz
@given(st.dictionaries(keys, values, max_size=5))
def test_any_table_is_settings_or_refused(value: object) -> None:
    try:
        assert isinstance(read_settings(value), PromptFile)
    except PromptInvalid as error:
        assert 5 < len(str(error)) < 800


@pytest.mark.fuzz
@given(sources, st.sampled_from(["yaml", "toml", "json"]))
def test_any_text_is_a_document_or_refused(source: str, kind: str) -> None:
    try:
        json.dumps(read_document(source, kind), allow_nan=False)
    except PromptInvalid as error:
        assert 5 < len(str(error)) < 800


@pytest.mark.parametrize(
    "source",
    ["[" * 200_000, "a: " * 100_000, "- " * 100_000, "{a: " * 100_000, "&a " * 100_000, "? " * 100_000, "'" * 299_999],
    ids=lambda source: source[:4],
)
def test_a_large_file_made_to_be_slow_ends_soon(source: str) -> None:
    started = time.perf_counter()
    for kind in ("yaml", "toml", "json"):
        with pytest.raises(PromptInvalid):
            read_document(source, kind)
    assert time.perf_counter() - started < 20
