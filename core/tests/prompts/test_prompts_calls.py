"""A compiled template tells the calls of functions that are written in it."""

from __future__ import annotations

from hypothesis import given, strategies as st

from portico._prompts.calling import FunctionCall
from portico._prompts.semantic_kernel import SemanticKernelTemplates

LANGUAGE = SemanticKernelTemplates()


def calls(source: str) -> tuple[FunctionCall, ...]:
    return LANGUAGE.compile(source).calls


def test_names_of_plugins_are_those_of_kernels() -> None:
    [call] = calls("{{Tone.shout 'x' loud=$how}}")
    assert call == FunctionCall("Tone-shout", 1, ("loud",), 1, 3)


def test_a_function_without_a_plugin_is_a_call_too() -> None:
    assert calls("{{now}}") == (FunctionCall("now", 0, (), 1, 3),)


def test_variables_values_and_what_is_no_block_are_no_calls() -> None:
    assert calls("{{$name}} {{'now'}} {{}} {now} {{ }}") == ()


def test_a_call_has_the_place_of_its_name() -> None:
    source = "Dear {{$name}},\n\n東 {{ \n Tone.shout }}"
    [call] = calls(source)
    assert (call.line, call.column) == (4, 2)
    assert source.split("\n")[call.line - 1][call.column - 1 :].startswith("Tone.shout")


@given(st.lists(st.sampled_from(["a\n", "東 ", "{{$x}}", "{{ f }}", "{{\n p.g 'a' b=$c }}", "{{'q'}}", "\n"])))
def test_every_call_is_told_once_in_order_and_where_it_stands(parts: list[str]) -> None:
    source = "".join(parts)
    written = [part for part in parts if "f" in part or "p.g" in part]
    told = calls(source)
    assert [call.function for call in told] == ["f" if "f" in part else "p-g" for part in written]
    for call in told:
        at = source.split("\n")[call.line - 1][call.column - 1 :]
        assert at.startswith(call.function.replace("-", ".")), f"{call} is said to stand at {at!r}"


@given(st.text(alphabet="a\n東\r", max_size=30), st.integers(0, 30))
def test_a_place_counts_lines_and_columns_from_one(source: str, at: int) -> None:
    at = min(at, len(source))
    call = FunctionCall.at(source, at, "f", positional=0)
    before = source[:at].split("\n")
    assert (call.line, call.column) == (len(before), len(before[-1]) + 1)
