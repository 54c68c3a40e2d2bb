"""Types of pydantic are read strictly, written so that they can be read again, and told of in core's words."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, TypeVar

import annotated_types
import pydantic
import pytest
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field

from portico.errors import SchemaUnsupported
from portico.plugins import Mismatch, compile_type
from portico_basics.type_codecs.codecs import AttrsTypeCodec, PydanticTypeCodec

CODEC = PydanticTypeCodec()
T = TypeVar("T")


def compiled(hint: Any) -> Any:
    return compile_type(hint, [CODEC])


def faults(hint: Any, value: Any) -> list[str]:
    with pytest.raises(Mismatch) as caught:
        compiled(hint).structure(value)
    return [str(fault) for fault in caught.value.faults]


class Cat(BaseModel):
    """A cat, as it were."""

    kind: Literal["cat"] = "cat"
    lives: Annotated[int, "nine at most"] = Field(9, alias="nineLives", le=9)


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    bark: str
    pups: list[Dog] = []


class Fish(BaseModel):
    scales: int


class Zoo(BaseModel):
    tagged: list[Annotated[Cat | Dog, Field(discriminator="kind")]] = []
    untagged: Cat | Dog | Fish | int | list[int] | None = None
    by_name: dict[str, Cat] = {}
    by_number: dict[int, str] = {}
    pair: tuple[int, str] | None = None
    price: Decimal = Decimal(1)
    opened: dt.date = dt.date(2026, 2, 1)


def test_strict_means_json_s_own_types_and_texts_for_the_others() -> None:
    made = compiled(Zoo).structure({"opened": "2026-02-03", "price": "1E+5", "by_number": {"7": "x"}})
    assert (made.opened, made.price, made.by_number) == (dt.date(2026, 2, 3), Decimal("1E+5"), {7: "x"})
    assert faults(Zoo, {"opened": 5, "pair": ["1", "x"], "by_number": {"x": "y"}}) == [
        "$.by_number.x: expected a valid integer, unable to parse string as an integer, got 'x'",
        "$.pair[0]: expected a valid integer, got '1'",
        "$.opened: expected a valid date, got 5",
    ]


def test_the_path_of_a_fault_is_that_into_the_json() -> None:
    assert faults(
        Zoo,
        {
            "tagged": [{"kind": "cat", "nineLives": "x"}, {}, {"kind": "dog", "pups": [{"bark": 5}]}],
            "by_name": {"cat": {"nineLives": 10}, "kind": 5},
            "pair": [1],
        },
    ) == [
        "$.tagged[0].nineLives: expected a valid integer, got 'x'",
        "$.tagged[1]: expected a valid value, got Unable to extract tag using discriminator 'kind'",
        "$.tagged[2].bark: expected a value, got nothing",
        "$.tagged[2].pups[0].bark: expected a valid string, got 5",
        "$.by_name.cat.nineLives: expected less than or equal to 9, got 10",
        "$.by_name.kind: expected an object, got 5",
        "$.pair[1]: expected a value, got nothing",
    ]


def test_of_a_union_the_faults_have_places_in_the_value() -> None:
    assert "$.untagged.bark: expected a valid string, got 1" in faults(Zoo, {"untagged": {"kind": "dog", "bark": 1}})
    assert "$.untagged.scales: expected a valid integer, got 'many'" in faults(Zoo, {"untagged": {"scales": "many"}})
    assert "$.untagged[1]: expected a valid integer, got 'x'" in faults(Zoo, {"untagged": [1, "x"]})
    assert {fault.partition(":")[0] for fault in faults(Zoo, {"untagged": "x"})} == {"$.untagged"}


def test_an_unknown_key_is_a_fault_unless_the_configuration_lets_it_in() -> None:
    class Default(BaseModel):
        a: int = 1

    class Ignoring(BaseModel, extra="ignore"):
        a: int = 1

    class Keeping(BaseModel, extra="allow"):
        a: int = 1

    assert faults(Default, {"b": 2}) == ["$.b: expected a known key, got an unknown key"]
    assert compiled(Default).schema["additionalProperties"] is False
    assert compiled(Ignoring).structure({"b": 2}) == Ignoring()
    assert "additionalProperties" not in compiled(Ignoring).schema
    kept = compiled(Keeping).structure({"b": [2]})
    assert kept == Keeping(b=[2])
    assert compiled(Keeping).unstructure(kept) == {"a": 1, "b": [2]}


def test_a_field_that_is_read_by_one_name_and_written_by_another_goes_by_its_own() -> None:
    class Named(BaseModel):
        a: int = Field(validation_alias=AliasChoices("x", "y"), serialization_alias="z")
        b: int = Field(1, validation_alias=AliasPath("deep", 0))
        c: int = Field(2, alias="see")

    assert list(compiled(Named).schema["properties"]) == ["a", "b", "c"]
    value = Named(x=1, deep=[5], see=3)
    assert compiled(Named).unstructure(value) == {"a": 1, "b": 5, "c": 3}
    assert compiled(Named).structure({"a": 1, "b": 5, "c": 3}) == value

    class Same(BaseModel):
        model_config = ConfigDict(validate_by_name=True)
        c: int = Field(2, alias="see")

    assert compiled(Same).unstructure(Same(see=1)) == {"see": 1}
    assert faults(Same, {"c": 1}) == ["$.c: expected a known key, got an unknown key"]


def test_computed_fields_are_neither_asked_for_nor_written() -> None:
    class Area(BaseModel):
        side: int

        @pydantic.computed_field  # type: ignore[prop-decorator]
        @property
        def area(self) -> int:
            return self.side**2

    assert list(compiled(Area).schema["properties"]) == ["side"]
    assert compiled(Area).unstructure(Area(side=2)) == {"side": 2}
    assert compiled(Area).structure({"side": 2}).area == 4


def test_what_a_model_itself_refuses_is_a_fault_at_its_place() -> None:
    class Span(BaseModel):
        first: int
        last: int

        @pydantic.field_validator("first")
        @classmethod
        def positive(cls, value: int) -> int:
            if value == 13:
                raise TypeError("no thirteen")
            if value < 0:
                raise AssertionError("less than\n  nothing")
            return value

        @pydantic.model_validator(mode="after")
        def ordered(self) -> Span:
            if self.first > self.last:
                raise ValueError("the first is behind the last")
            return self

    assert faults(list[Span], [{"first": -1, "last": 1}, {"first": 2, "last": 1}]) == [
        "$[0].first: expected a valid value, got Assertion failed, less than nothing",
        "$[1]: expected a valid value, got Value error, the first is behind the last",
    ]
    assert faults(Span, {"first": 13, "last": 14}) == ["$: expected a valid Span, got TypeError: no thirteen"]


@pytest.mark.parametrize(
    ("hint", "value", "expected"),
    [
        (Annotated[int, annotated_types.Interval(gt=1, lt=3)], 3, "less than 3, got 3"),
        (Annotated[str, Field(min_length=1)], "", "a string with at least 1 character, got ''"),
        (Annotated[str, pydantic.StringConstraints(pattern="^a")], "b", "a string matching pattern '^a', got 'b'"),
        (pydantic.PastDate, "2999-01-01", "a date in the past, got '2999-01-01'"),
        (pydantic.HttpUrl, "x", "a valid URL, relative URL without a base, got 'x'"),
        (pydantic.Json[int], "x", "a valid value, got Invalid JSON"),
        (Literal["a", "b"] | Annotated[int, Field(ge=1)], "c", "one of 'a', 'b' or"),
    ],
    ids=str,
)
def test_a_constraint_is_a_fault_in_pydantic_s_words(hint: Any, value: Any, expected: str) -> None:
    assert faults(hint, value)[0].startswith(f"$: expected {expected}")


def test_the_schema_is_short_and_in_the_words_that_core_uses() -> None:
    schema = compiled(Cat).schema
    assert schema == {
        "type": "object",
        "description": "A cat, as it were.",
        "properties": {
            "kind": {"type": "string", "enum": ["cat"], "default": "cat"},
            "nineLives": {"type": "integer", "maximum": 9, "default": 9, "description": "nine at most"},
        },
        "required": ["kind"],
        "additionalProperties": False,
    }
    for word in ("oneOf", "discriminator", "const", "title"):
        assert word not in str(compiled(Zoo).schema), f"the schema has {word}"


def test_a_text_that_speaks_of_nan_is_a_text() -> None:
    assert compiled(Dog).structure({"bark": "NaN and -Infinity"}).bark == "NaN and -Infinity"


class Excluding(BaseModel):
    seen: int = 1
    hidden: int = Field(1, exclude=True)


class Arbitrary(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    room: AttrsTypeCodec


class ArbitraryUnion(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    room: AttrsTypeCodec | int


class Unfinished(BaseModel):
    next: NotYet  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("hint", "told"),
    [
        (BaseModel, "name a model"),
        (Excluding, "Excluding does not write its field 'hidden'"),
        (pydantic.SecretStr, "holds a secret, which is masked"),
        (pydantic.Secret[int], "holds a secret, which is masked"),
        (pydantic.create_model("Login", key=(pydantic.SecretBytes, ...)), "Login holds a secret"),
        (pydantic.ImportString, "imports what a text names"),
        (pydantic.create_model("Loader", what=(pydantic.ImportString[Any], ...)), "Loader imports what a text names"),
        (Arbitrary, "Arbitrary has no JSON form: Cannot generate"),
        (ArbitraryUnion, "A member of a union has no JSON Schema"),
        (Unfinished, "Unfinished has no JSON form"),
        (Annotated[AttrsTypeCodec, Field(min_length=1)], "AttrsTypeCodec has no JSON form"),
    ],
    ids=lambda value: getattr(value, "__name__", None) or str(value)[:40],
)
def test_what_would_not_come_back_is_refused_when_it_is_compiled(hint: Any, told: str) -> None:
    with pytest.raises(SchemaUnsupported, match=told):
        compiled(hint)


def test_a_value_of_another_type_is_not_written() -> None:
    with pytest.raises(ValueError, match="Expected `Dog`"):
        compiled(Dog).unstructure({"bark": "w"})


class Node(BaseModel, Generic[T]):
    value: T
    next: Node[T] | None = None


def test_a_draft_has_what_has_come_and_none_or_the_default_for_the_rest() -> None:
    draft = compiled(Dog).draft
    made = draft({"pups": [{"bark": "w"}, {"pups": []}, 5]})
    assert (made.bark, made.kind) == (None, "dog")
    assert [pup.bark for pup in made.pups] == ["w", None]
    assert compiled(Node[int]).draft({"next": {}}).value is None
    with pytest.raises(Mismatch):
        draft([])


def test_pydantic_is_not_imported_for_types_of_others() -> None:
    code = """
import sys
import attrs
from typing import Annotated
from portico.plugins import compile_type
from portico_basics.type_codecs.codecs import AttrsTypeCodec, MsgspecTypeCodec, PydanticTypeCodec
codecs = [AttrsTypeCodec(), MsgspecTypeCodec(), PydanticTypeCodec()]
Room = attrs.make_class("Room", {"number": attrs.field(type=int)})
compile_type(dict[str, Annotated[Room, "a room"]], codecs)
print({"pydantic", "msgspec", "cattrs", "annotated_types"} & set(sys.modules))
import annotated_types
print(compile_type(Annotated[int, annotated_types.Ge(1)], codecs).schema)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["set()", "{'minimum': 1, 'type': 'integer'}"]


def test_an_older_pydantic_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pydantic, "VERSION", "2.9.2")
    with pytest.raises(SchemaUnsupported, match=r"Cat needs pydantic 2\.12 or newer, not 2\.9\.2"):
        compiled(Cat)


def test_a_validator_that_fails_in_any_way_refuses_the_value() -> None:
    class Town(BaseModel):
        name: str

        @pydantic.field_validator("name")
        @classmethod
        def _known(cls, name: str) -> str:
            return {"oslo": "Oslo"}[name]

    assert faults(Town, {"name": "rome"}) == ["$: expected a valid Town, got KeyError: 'rome'"]


def test_bytes_that_are_no_text_are_refused() -> None:
    class Picture(BaseModel):
        data: bytes

    with pytest.raises(ValueError, match="This Picture cannot be written"):
        compiled(Picture).unstructure(Picture(data=b"\xff"))

    class Encoded(BaseModel):
        model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
        data: bytes

    made = compiled(Encoded)
    assert made.structure(made.unstructure(Encoded(data=b"\xff"))) == Encoded(data=b"\xff")


def test_what_is_not_of_its_type_is_no_error_of_pydantic() -> None:
    for wrong in ("a cat", Dog.model_construct(bark=5)):
        with pytest.raises(ValueError, match="This Dog cannot be written") as caught:
            compiled(Dog).unstructure(wrong)
        assert "\n" not in str(caught.value)


def test_values_that_json_cannot_hold_are_refused() -> None:
    value: Any = {"bark": "w"}
    for _ in range(100_000):
        value = {"bark": "w", "pups": [value]}
    for wrong in ({"bark": float("nan")}, {"bark": "a\ud800"}, {"bark": 10**5_000}, value):
        assert len(faults(Dog, wrong)) == 1
