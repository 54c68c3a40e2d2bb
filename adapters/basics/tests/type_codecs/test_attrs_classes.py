"""Classes of attrs keep to what they say: aliases, defaults, converters, validators."""

from __future__ import annotations

import datetime as dt
from typing import Any, Generic, Literal, TypeVar

import attr
import attrs
import pytest
from attrs import converters, field, validators
from hypothesis import given, strategies as st

from portico.errors import SchemaUnsupported
from portico.plugins import Mismatch, compile_type
from portico_basics.type_codecs.codecs import AttrsTypeCodec

CODEC = AttrsTypeCodec()
T = TypeVar("T")


def compiled(hint: Any) -> Any:
    return compile_type(hint, [CODEC])


def faults(hint: Any, value: Any) -> list[str]:
    with pytest.raises(Mismatch) as caught:
        compiled(hint).structure(value)
    return [str(fault) for fault in caught.value.faults]


@attrs.define
class Order:
    """What somebody wants.

    Attributes:
        item: its number in the catalogue
    """

    item: int = field(validator=[validators.instance_of(int), validators.gt(0)])
    size: str = field(default="m", validator=validators.in_(["s", "m"]))
    note: str = field(default="ok", validator=[validators.matches_re("[a-z]+"), validators.max_len(5)])
    parts: list[int] = field(factory=list, validator=validators.deep_iterable(validators.le(9)))
    until: dt.date | None = None
    _by: str = field(default="me", alias="author")
    label: str = attrs.Factory(lambda self: f"{self.item}-{self.size}", takes_self=True)

    @size.validator
    def _check(self, attribute: Any, value: str) -> None:
        if self.item == 7 and value == "s":
            raise ValueError("there is no small seven")


def test_the_schema_says_what_the_class_and_its_docstring_do() -> None:
    schema = compiled(Order).schema
    assert schema["description"] == "What somebody wants."
    assert schema["required"] == ["item"]
    assert schema["properties"]["item"] == {
        "type": "integer", "exclusiveMinimum": 0, "description": "its number in the catalogue"
    }  # fmt: skip
    assert schema["properties"]["note"] == {"type": "string", "maxLength": 5, "default": "ok"}
    assert schema["properties"]["until"]["default"] is None
    assert schema["properties"]["parts"]["default"] == []
    assert "default" not in schema["properties"]["label"], "a factory of one's own may read a clock"
    assert set(schema["properties"]) == {"item", "size", "note", "parts", "until", "author", "label"}


def test_every_validator_that_refuses_is_told_at_its_field() -> None:
    told = faults(Order, {"item": 1, "size": "xl", "note": "5", "parts": [10]})
    assert told == [
        "$.size: expected a valid size, got 'size' must be in ['s', 'm'] (got 'xl')",
        "$.note: expected a valid note, got 'note' must match regex '[a-z]+' ('5' doesn't)",
        "$.parts: expected a valid parts, got 'parts' must be <= 9: 10",
    ]
    assert faults(Order, {"item": 7, "size": "s"}) == ["$: expected a valid Order, got there is no small seven"]


def test_an_object_is_made_by_its_own_init() -> None:
    made = compiled(Order).structure({"item": 3, "author": "you"})
    assert made == Order(3, author="you")
    assert made.label == "3-m"


repeated = attrs.Converter(lambda word, self: word * int(self.size), takes_self=True)


def test_a_converter_gets_what_was_read_and_the_schema_is_that_of_the_field() -> None:
    @attrs.define
    class Converted:
        size: float = field(converter=abs, validator=validators.ge(0))
        name: str | None = field(default=None, converter=converters.default_if_none("nobody"))
        word: str = field(
            default="a", converter=attrs.Converter(lambda word, self: word * int(self.size), takes_self=True)
        )

    assert compiled(Converted).schema["properties"]["size"] == {"type": "number"}, "the limit is on what comes out"
    assert compiled(Converted).structure({"size": -2.0}) == Converted(2.0, None, "a")
    assert compiled(Converted).structure({"size": 2.0}).word == "aa"


def test_old_classes_without_annotations_take_what_their_attributes_say() -> None:
    @attr.s
    class Old:
        anything = attr.ib()
        number = attr.ib(type=int, default=3)

    assert compiled(Old).structure({"anything": [1]}) == Old([1], 3)
    assert faults(Old, {"anything": 1, "number": "x"}) == ["$.number: expected an integer, got 'x'"]


@attrs.define
class Box(Generic[T]):
    inside: T
    more: list[T] = field(factory=list)


@attrs.define
class Crate(Box[list[T]], Generic[T]):
    label: T | None = None


def test_a_base_with_arguments_is_refused() -> None:
    with pytest.raises(SchemaUnsupported, match="Crate derives from"):
        compiled(Crate[str])


def test_a_generic_class_may_be_in_a_union_and_contain_itself() -> None:
    made = compiled(Chain[int] | None)
    value = Chain(1, Chain(2))
    assert made.structure(made.unstructure(value)) == value
    assert made.unstructure(None) is None
    assert faults(Chain[int], {"value": 1, "next": {"value": "x"}}) == ["$.next.value: expected an integer, got 'x'"]


def test_a_generic_class_without_arguments_holds_anything() -> None:
    assert compiled(Box).structure({"inside": {"a": [1]}}) == Box({"a": [1]})


@attrs.define
class Chain(Generic[T]):
    value: T
    next: Chain[T] | None = None


@attrs.define
class Cat:
    kind: Literal["cat"] = "cat"
    lives: int = 9


@attrs.define
class Dog:
    kind: Literal["dog"] = "dog"
    bark: str = ""


@given(st.one_of(st.builds(Cat, lives=st.integers()), st.builds(Dog, bark=st.text())))
def test_a_union_is_told_apart_by_a_literal_though_it_has_a_default(value: Cat | Dog) -> None:
    made = compiled(list[Cat | Dog])
    assert made.structure(made.unstructure([value])) == [value]


def test_a_draft_is_made_without_validators_and_with_none_for_what_is_missing() -> None:
    draft = compiled(Order).draft
    assert draft({"note": "5"}) == draft({"note": "5", "item": "x"})
    assert draft({"note": "5"}).item is None
    assert draft({"item": 3, "parts": [1, "x"], "label": "a"}) == Order(3, parts=[1], label="a")
    with pytest.raises(Mismatch):
        draft([])


def test_classes_of_one_name_that_contain_themselves_are_told_apart() -> None:
    def node(kind: type) -> Any:
        @attrs.define
        class Node:
            value: kind  # type: ignore[valid-type]
            next: Node | None = None

        Node.__annotations__["value"] = kind
        return Node

    one, two = node(int), node(str)
    made = compiled(tuple[one, two])
    assert len(made.schema["$defs"]) == 2
    value = (one(1, one(2)), two("a", two("b")))
    assert made.structure(made.unstructure(value)) == value
    assert faults(tuple[one, two], [{"value": 1, "next": {"value": "x"}}, {"value": "a", "next": {"value": 1}}]) == [
        "$[0].next.value: expected an integer, got 'x'",
        "$[1].next.value: expected a string, got 1",
    ]


def test_annotations_that_cannot_be_resolved_are_refused_with_the_name() -> None:
    @attrs.define
    class Lost:
        a: Nowhere  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(SchemaUnsupported, match=r"The annotations of .*Lost cannot be resolved: name 'Nowhere'"):
        compiled(Lost)


def test_a_field_that_json_cannot_hold_is_refused_when_it_is_compiled() -> None:
    @attrs.define
    class Binary:
        data: bytes

    with pytest.raises(SchemaUnsupported, match="bytes has no JSON form"):
        compiled(Binary)


def test_a_validator_or_converter_that_fails_in_any_way_refuses_the_value() -> None:
    towns = {1: "Oslo"}

    @attrs.define
    class Town:
        number: int = field(validator=lambda instance, attribute, value: towns[value] and None)
        share: int = field(default=2, converter=lambda value: 10 // value)

    assert faults(Town, {"number": 2}) == ["$.number: expected a valid number, got KeyError: 2"]
    assert faults(Town, {"number": 1, "share": 0}) == [
        "$: expected a valid Town, got ZeroDivisionError: integer division or modulo by zero"
    ]
