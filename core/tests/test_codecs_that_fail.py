"""A codec is asked about types of everybody's: what it raises is told as its own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import pytest

from portico._types.compiled import Compiled
from portico._types.compiling import compile_type
from portico.errors import SchemaUnsupported

if TYPE_CHECKING:
    from somewhere import Missing  # type: ignore[import-not-found]


class Remembering:
    """Takes nothing, and needs a hash of everything."""

    name = "remembering"

    def __init__(self) -> None:
        self.asked: set[object] = set()

    def compile(self, hint: Any, inner: Any) -> Compiled | None:
        self.asked.add(hint)
        return None


class Box:
    """A class of the codec below."""


class Boxing:
    """Holds in its one type whatever it is given."""

    name = "boxing"

    def __init__(self, inside: object) -> None:
        self.inside = inside

    def compile(self, hint: object, inner: Any) -> Compiled | None:
        return Compiled({}, str, str) if hint is Box and inner(self.inside) else None


@dataclass
class Unresolved:
    part: Missing


def test_what_a_codec_raises_names_the_codec_and_the_type() -> None:
    told = (
        "The type codec 'remembering' failed when it was asked for typing.Annotated[int, ['x']]: TypeError: unhashable"
    )
    with pytest.raises(SchemaUnsupported, match=re.escape(told)) as raised:
        compile_type(Annotated[int, ["x"]], [Remembering()])
    assert isinstance(raised.value.__cause__, TypeError)


def test_a_codec_without_a_name_is_told_by_its_class() -> None:
    class Nameless(Remembering):
        name = ""

    with pytest.raises(SchemaUnsupported, match=r"The type codec '\S+Nameless' failed"):
        compile_type(Annotated[int, ["x"]], [Nameless()])


def test_a_hint_of_any_length_is_told_in_a_line() -> None:
    with pytest.raises(SchemaUnsupported) as raised:
        compile_type(Annotated[int, ["x" * 10_000]], [Remembering()])
    assert len(str(raised.value)) < 500


def test_what_a_codec_refuses_is_raised_as_it_says_it() -> None:
    with pytest.raises(SchemaUnsupported, match=r"^The type object"):
        compile_type(Box, [Boxing(type("object", (), {}))])


def test_of_two_codecs_the_inner_one_is_told() -> None:
    codecs: list[Any] = [Boxing(Annotated[int, ["x"]]), Remembering()]
    with pytest.raises(SchemaUnsupported, match="The type codec 'remembering' failed"):
        compile_type(Box, codecs)
