"""Strict forms against the helper of OpenAI's own client, on the types that it holds as they are."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Literal, Optional

import pytest
from hypothesis import given, strategies as st
from openai.lib._pydantic import to_strict_json_schema
from pydantic import BaseModel, Field, create_model

from portico.plugins import StrictForm


class Colour(Enum):
    RED = "red"
    GREEN = "green"


class Step(BaseModel):
    explanation: str
    output: str


class MathReasoning(BaseModel):
    steps: list[Step]
    final_answer: str


class CalendarEvent(BaseModel):
    name: str
    date: str
    participants: list[str]


class Node(BaseModel):
    name: str
    children: list[Node]
    parent: Node | None


class Bounded(BaseModel):
    """A model with a description, and properties with some."""

    share: Annotated[float, Field(ge=0, lt=1, description="From 0 to 1.")]
    code: Annotated[str, Field(pattern="^[A-Z]{3}$")]
    names: Annotated[list[str], Field(min_length=1, max_length=3)]
    even: Annotated[int, Field(multiple_of=2)]


class Root(BaseModel):
    node: Node
    step: Optional[Step]  # noqa: UP045 - both ways of writing it


def plain(schema: Any) -> Any:
    """Drop what is told to people only, and the order in which properties are listed as required."""
    if isinstance(schema, list):
        return [plain(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    words = {word: part for word, part in schema.items() if word not in ("title", "description")}
    if "required" in words:
        words["required"] = sorted(words["required"])
    return {
        word: {name: plain(member) for name, member in part.items()}
        if word in ("properties", "$defs")
        else part
        if word == "required"
        else plain(part)
        for word, part in words.items()
    }


@pytest.mark.parametrize("model", [MathReasoning, CalendarEvent, Node, Bounded, Root], ids=lambda model: model.__name__)
def test_a_model_comes_out_as_the_client_makes_it(model: type[BaseModel]) -> None:
    form = StrictForm.of(model.model_json_schema())
    assert plain(form.schema) == plain(to_strict_json_schema(model))
    assert form.identity
    assert form.loosened == ()


def kinds() -> st.SearchStrategy[Any]:
    leaves = st.sampled_from([str, int, float, bool, None, Colour, Step, Node, Literal["a", "b"], Literal["c"]])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            inner.map(lambda kind: list[kind]),
            inner.filter(lambda kind: kind is not None).map(lambda kind: kind | None),
            st.sampled_from([int | str, float | list[str], Step | CalendarEvent]),
        ),
        max_leaves=3,
    )


@given(st.dictionaries(st.sampled_from(["a", "b", "c", "max temp"]), kinds(), min_size=1))
def test_any_model_of_required_fields_comes_out_as_the_client_makes_it(fields: dict[str, Any]) -> None:
    model = create_model("Drawn", **{name.replace(" ", "_"): (kind, ...) for name, kind in fields.items()})
    form = StrictForm.of(model.model_json_schema())
    assert plain(form.schema) == plain(to_strict_json_schema(model))
    assert form.identity
