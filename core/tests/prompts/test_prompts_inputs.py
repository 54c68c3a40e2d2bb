"""Inputs of prompt functions: their order, words and defaults, and JSON Schemas that core does not know."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest

from portico import Kernel, PromptInput, prompt_function
from portico._schema.validate import PlainSchemaValidator
from portico._types.compiled import Compiled, Mismatch
from portico._types.compiling import compile_type
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
    assert made.spec.parameters["properties"]["a"] == {"type": "string", "description": "What to read."}


async def test_what_a_validator_says_is_told_with_the_name_of_the_input() -> None:
    class Strict:
        name = "strict"

        def compile(self, schema):
            return lambda value: ["$[0].b: it is too short", "$: it is wrong"] if value == "bad" else []

    kernel = Kernel()
    inputs = {"a": {"type": "string", "minLength": 3}}
    kernel.add_function(prompt_function("ask", "Hi", inputs=inputs, validator=Strict()))
    with pytest.raises(ArgumentsInvalid) as raised:
        await kernel.invoke_json("ask", {"a": "bad"})
    assert raised.value.faults == ("a[0].b: it is too short", "a: it is wrong")


def test_a_schema_that_core_does_not_know_says_who_does() -> None:
    with pytest.raises(SchemaUnsupported) as plain:
        PlainSchemaValidator().compile({"type": "string", "minLength": 3})
    with pytest.raises(SchemaUnsupported) as raised:
        prompt_function("ask", "Hi", inputs={"a": {"type": "string", "minLength": 3}})
    advice = " A kernel that has it gives it as validator=kernel.schema_validator."
    assert str(raised.value) == f"{plain.value}{advice}"
    with pytest.raises(SchemaUnsupported) as raised:
        PromptInput.compile({"type": "string", "minLength": 3}, validator=PlainSchemaValidator())
    assert str(raised.value) == str(plain.value), "who gave a validator is not told to give one"

    class Lenient:
        name = "lenient"

        def compile(self, schema):
            json.dumps(schema)
            return lambda value: []

    made = prompt_function("ask", "Hi", inputs={"a": {"type": "string", "minLength": 3}}, validator=Lenient())
    assert made.structure_arguments({"a": ""}) == {"a": ""}
    returned = prompt_function("ask", "Hi", returns={"type": "string", "minLength": 3}, validator=Lenient())
    assert returned.spec.returns == {"type": "string", "minLength": 3}


@pytest.mark.parametrize(("kind", "hint"), [("string", str), ("integer", int), ("number", float), ("boolean", bool)])
@pytest.mark.parametrize(
    "said", [{}, {"title": "T", "description": "D", "default": None, "examples": [1]}], ids=["bare", "with words"]
)
def test_a_schema_that_says_a_type_alone_is_that_type(kind: str, hint: type, said: dict[str, Any]) -> None:
    made, plain = PromptInput.compile({"type": kind, **said}), compile_type(hint)
    assert made.schema == {"type": kind, **{key: said[key] for key in said if key != "default"}}
    for value in ("x", 3.0, 5, True, None, []):
        assert outcome(made, value) == outcome(plain, value)


def outcome(compiled: Compiled, value: object) -> str:
    try:
        return repr(compiled.structure(value))
    except Mismatch as error:
        return str(error)


def test_a_schema_may_say_several_types() -> None:
    made = PromptInput.compile({"type": ["integer", "null"]})
    assert [made.structure(value) for value in (3, None)] == [3, None]
    with pytest.raises(Mismatch):
        made.structure("x")


def test_a_type_that_a_codec_knows_may_be_an_input() -> None:
    class Celsius:
        pass

    class Codec:
        name = "celsius"

        def compile(self, hint: object, inner: object) -> Compiled | None:
            return Compiled({"type": "number"}, lambda value: Celsius(), lambda value: 0.0) if hint is Celsius else None

    assert isinstance(PromptInput.compile(Celsius, [Codec()]).structure(20.0), Celsius)
