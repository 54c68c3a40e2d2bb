"""Inputs of prompt functions: their order, words and defaults, and JSON Schemas that core does not know."""

from __future__ import annotations

import json
from typing import Annotated

import pytest

from portico import Kernel, PromptInput, prompt_function
from portico.errors import ArgumentsInvalid, SchemaUnsupported


def test_inputs_that_must_be_given_come_first_and_have_the_words_of_their_type() -> None:
    inputs = {
        "words": PromptInput(int, default=5),
        "tone": Annotated[str, "how"],
        "tags": {"type": "array", "items": {"type": "string"}, "description": "which"},
    }
    made = prompt_function("ask", "{{$a}} {{$words}} {{$tone}} {{$tags}}", inputs=inputs)
    assert [(each.name, each.description, each.required, each.default) for each in made.parameters] == [
        ("tone", "how", True, None),
        ("tags", "which", True, None),
        ("a", "", True, None),
        ("words", "", False, 5),
    ]
    assert repr(PromptInput()) == "PromptInput(type=<class 'str'>, description='', default=required)"


def test_an_input_may_be_said_in_words() -> None:
    made = prompt_function("ask", "{{$a}}", inputs={"a": "What to read."})
    assert made.manual.parameters["properties"]["a"] == {"type": "string", "description": "What to read."}


async def test_what_a_validator_says_is_told_with_the_name_of_the_input() -> None:
    class Strict:
        name = "strict"

        def compile(self, schema):
            return lambda value: ["$[0].b: it is too short", "$: it is wrong", "it is odd"] if value == "bad" else []

    kernel = Kernel()
    inputs = {"a": {"type": "string", "minLength": 3}}
    kernel.add_function(prompt_function("ask", "Hi", inputs=inputs, validator=Strict()))
    with pytest.raises(ArgumentsInvalid) as raised:
        await kernel.invoke_json("ask", {"a": "bad"})
    assert raised.value.faults == ("a[0].b: it is too short", "a: it is wrong", "a: it is odd")


def test_a_schema_that_core_does_not_know_says_who_does() -> None:
    with pytest.raises(SchemaUnsupported, match=r"validator=kernel\.schema_validator"):
        prompt_function("ask", "Hi", inputs={"a": {"type": "string", "minLength": 3}})

    class Lenient:
        name = "lenient"

        def compile(self, schema):
            json.dumps(schema)
            return lambda value: []

    made = prompt_function("ask", "Hi", inputs={"a": {"type": "string", "minLength": 3}}, validator=Lenient())
    assert made.structure_arguments({"a": ""}) == {"a": ""}
    returned = prompt_function("ask", "Hi", returns={"type": "string", "minLength": 3}, validator=Lenient())
    assert returned.manual.returns == {"type": "string", "minLength": 3}
