"""The three codecs do what every TypeCodec must."""

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, TypeVar
from uuid import UUID

import attrs
import msgspec
import pydantic
import pydantic.dataclasses
import pytest
from attrs import validators
from pydantic.alias_generators import to_camel

from portico_basics.type_codecs.codecs import AttrsTypeCodec, MsgspecTypeCodec, PydanticTypeCodec
from portico_testkit.type_codec import Chain, CodecCase, TypeCodecKit

T = TypeVar("T")


class Colour(enum.Enum):
    RED = "red"
    GREEN = 2


@attrs.frozen
class AttrsNode:
    name: str
    next: AttrsNode | None = None
    others: tuple[AttrsNode, ...] = ()


@attrs.define
class AttrsUser:
    """Somebody."""

    name: str = attrs.field(validator=validators.min_len(1))
    _age: int = attrs.field(validator=[validators.instance_of(int), validators.ge(0), validators.lt(150)])
    tags: list[str] = attrs.field(factory=list, kw_only=True)
    born: dt.date | None = None
    colour: Colour = Colour.RED
    width: Annotated[float, "in metres"] = attrs.field(default=1.0, validator=validators.le(9))
    digest: int = attrs.field(init=False, default=7)


@attrs.define(slots=False, kw_only=True)
class AttrsShape(Generic[T]):
    sides: list[T]
    label: str = attrs.field(default="none", converter=str.strip)


@attrs.define
class AttrsEven:
    number: int
    half: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        if self.number % 2:
            raise ValueError("odd")
        self.half = self.number // 2


class TestAttrsTypeCodec(TypeCodecKit):
    cases = (
        CodecCase(
            AttrsUser,
            [AttrsUser("Ada", 36, tags=["x"]), AttrsUser("Bo", 0, dt.date(2026, 2, 1), Colour.GREEN, 2.5)],
            [
                ({"name": "", "age": -1, "width": 10, "tags": "x"}, ["$.name", "$.age", "$.width", "$.tags"]),
                ({"nam": "Ada", "age": "x"}, ["$.nam", "$.name", "$.age"]),
                ({"name": "Ada", "age": True, "born": "soon"}, ["$.age", "$.born"]),
                ({"name": "Ada", "age": 1, "digest": 5}, ["$.digest"]),
                ([], ["$"]),
            ],
        ),
        CodecCase(
            AttrsShape[dt.date],
            [AttrsShape(sides=[dt.date(2026, 2, 1)]), AttrsShape(sides=[], label="a b")],
            [({"sides": ["x", 5]}, ["$.sides[0]", "$.sides[1]"])],
        ),
        CodecCase(AttrsEven, [AttrsEven(2)], [({"number": 3}, ["$"]), ({"number": 2, "half": 1}, ["$.half"])]),
    )
    chain = Chain(AttrsNode, AttrsNode("end"), lambda inner: AttrsNode("a", inner))

    @pytest.fixture
    def type_codec(self) -> AttrsTypeCodec:
        return AttrsTypeCodec()

    @staticmethod
    def holding(hint: Any) -> tuple[Any, Callable[[Any], Any]]:
        made = attrs.make_class("Holder", {"inside": attrs.field(type=hint)})
        return made, made


class MsgspecNode(msgspec.Struct, frozen=True, rename="camel"):
    the_name: str
    the_next: MsgspecNode | None = None


class MsgspecUser(msgspec.Struct, rename="camel", tag="user", omit_defaults=True):
    full_name: Annotated[str, msgspec.Meta(min_length=1, pattern="^[A-Z]")]
    age_in_years: Annotated[int, msgspec.Meta(ge=0, lt=150, description="at the last birthday")]
    tags: list[str] = []
    born: dt.date | None = None
    nick: str | msgspec.UnsetType = msgspec.UNSET
    picture: bytes = b""
    lives: dt.timedelta = dt.timedelta(1)


class MsgspecPair(msgspec.Struct, Generic[T], array_like=True, tag=True):
    left: T
    right: T
    note: str = "none"


class MsgspecEven(msgspec.Struct, forbid_unknown_fields=True):
    number: int

    def __post_init__(self) -> None:
        if self.number % 2:
            raise ValueError("odd")


class TestMsgspecTypeCodec(TypeCodecKit):
    all_faults = False
    cases = (
        CodecCase(
            MsgspecUser,
            [
                MsgspecUser("Ada", 36, ["x"], None, "A", b"\xff\x00", dt.timedelta(seconds=5)),
                MsgspecUser("Bo", 0),
                MsgspecUser("Bo", 0, [], dt.date(2026, 2, 1)),
            ],
            [
                ({"type": "user", "fullName": "", "ageInYears": 150}, ["$.fullName", "$.ageInYears"]),
                ({"type": "admin", "fullName": "ada", "ageInYears": 1.5}, ["$.type"]),
                ({"type": "user", "fullName": "Ada", "age_in_years": 1}, ["$"]),
                (
                    {"type": "user", "fullName": "A", "ageInYears": 1, "picture": "%", "lives": 5},
                    ["$.picture", "$.lives"],
                ),
                ("x", ["$"]),
            ],
        ),
        CodecCase(
            MsgspecPair[dt.date],
            [MsgspecPair(dt.date(2026, 2, 1), dt.date(2026, 2, 2)), MsgspecPair(dt.date.min, dt.date.max, "n")],
            [
                (["MsgspecPair", "x", 5], ["$[1]", "$[2]"]),
                (["Pair", "2026-02-01", "2026-02-01"], ["$[0]"]),
                ([1], ["$"]),
            ],
        ),
        CodecCase(MsgspecEven, [MsgspecEven(2)], [({"number": 3}, ["$"]), ({"numbr": 3}, ["$"])]),
        CodecCase(
            Annotated[list[int], msgspec.Meta(min_length=1, max_length=2)],
            [[1], [1, 2]],
            [([], ["$"]), ([1, 2, 3], ["$"]), (["x", "y"], ["$[0]", "$[1]"])],
        ),
    )
    chain = Chain(MsgspecNode, MsgspecNode("end"), lambda inner: MsgspecNode("a", inner))

    @pytest.fixture
    def type_codec(self) -> MsgspecTypeCodec:
        return MsgspecTypeCodec()

    @staticmethod
    def holding(hint: Any) -> tuple[Any, Callable[[Any], Any]]:
        made = msgspec.defstruct("Holder", [("inside", hint)])
        return made, made


class PydanticNode(pydantic.BaseModel):
    name: str
    next: PydanticNode | None = None


class Cat(pydantic.BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = pydantic.Field(9, alias="nineLives", ge=0)


class Dog(pydantic.BaseModel):
    kind: Literal["dog"] = "dog"
    bark: str


class PydanticUser(pydantic.BaseModel):
    """Somebody."""

    model_config = pydantic.ConfigDict(alias_generator=to_camel)

    full_name: Annotated[str, "first and last", pydantic.Field(min_length=1)]
    age: int = pydantic.Field(ge=0, lt=150, description="in years")
    tags: list[str] = pydantic.Field(default_factory=list)
    born: dt.date | None = None
    pet: Annotated[Cat | Dog, pydantic.Field(discriminator="kind")] | None = None
    either: int | str = 0
    price: Decimal = Decimal("1.10")
    colour: Colour = Colour.RED
    seen: set[int] = pydantic.Field(default_factory=set)
    by_number: dict[int, dt.time] = pydantic.Field(default_factory=dict)

    @pydantic.field_validator("age")
    @classmethod
    def no_thirteen(cls, value: int) -> int:
        if value == 13:
            raise ValueError("thirteen")
        return value

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def shout(self) -> str:
        return self.full_name.upper()


class Renamed(pydantic.BaseModel):
    given: int = pydantic.Field(validation_alias="in", serialization_alias="out")


class Open(pydantic.BaseModel, extra="allow"):
    a: int = 1


class Box(pydantic.BaseModel, Generic[T]):
    inside: T


class Dates(pydantic.RootModel[list[dt.date]]):
    pass


@pydantic.dataclasses.dataclass(frozen=True)
class PydanticPoint:
    x: pydantic.PositiveInt
    y: int = 0


class TestPydanticTypeCodec(TypeCodecKit):
    takes_foreign = False
    cases = (
        CodecCase(
            PydanticUser,
            [
                PydanticUser(fullName="Ada", age=36, tags=["x"], pet=Dog(bark="w")),
                PydanticUser(fullName="Bo", age=0, born=dt.date(2026, 2, 1), pet=Cat(nineLives=3), either="5"),
                PydanticUser(fullName="C", age=1, price=Decimal("1E+5"), seen={1, 2}, byNumber={5: dt.time(8)}),
            ],
            [
                ({"fullName": "", "age": "5", "tags": [1, "a"]}, ["$.fullName", "$.age", "$.tags[0]"]),
                ({"fullName": "A", "age": 13, "born": 5}, ["$.age", "$.born"]),
                ({"full_name": "A", "age": 150}, ["$.fullName", "$.age", "$.full_name"]),
                (
                    {"fullName": "A", "age": 1, "pet": {"kind": "cat", "nineLives": -1, "x": 0}},
                    ["$.pet.nineLives", "$.pet.x"],
                ),
                ({"fullName": "A", "age": 1, "pet": {"kind": "cow"}}, ["$.pet"]),
                ({"fullName": "A", "age": 1, "either": [], "colour": "blue"}, ["$.either", "$.colour"]),
                ({"fullName": "A", "age": 1, "shout": "A"}, ["$.shout"]),
                (5, ["$"]),
            ],
        ),
        CodecCase(Renamed, [Renamed(**{"in": 3})], [({"in": 3}, ["$.in", "$.given"])]),
        CodecCase(Open, [Open(), Open(a=2, b=[1])], [({"a": "x"}, ["$.a"])]),
        CodecCase(Box[dt.date], [Box[dt.date](inside=dt.date.min)], [({"inside": 5}, ["$.inside"])]),
        CodecCase(Dates, [Dates([]), Dates([dt.date.min])], [(["x", 5], ["$[0]", "$[1]"])]),
        CodecCase(PydanticPoint, [PydanticPoint(1), PydanticPoint(2, 3)], [({"x": 0, "z": 1}, ["$.x", "$.z"])]),
        CodecCase(Annotated[int, pydantic.Field(ge=1, le=5)], [1, 5], [(0, ["$"]), ("1", ["$"])]),
        CodecCase(
            Annotated[Cat | Dog, pydantic.Field(discriminator="kind")],
            [Cat(), Dog(bark="w")],
            [({"kind": "dog", "bark": 1, "lives": 2}, ["$.bark", "$.lives"])],
        ),
        CodecCase(pydantic.UUID4, [UUID("6f2c1bd0-3c1b-4e7e-9c39-000000000001")], [("x", ["$"])]),
        CodecCase(pydantic.HttpUrl, [pydantic.HttpUrl("https://example.org/a")], [("x", ["$"]), (5, ["$"])]),
    )
    chain = Chain(PydanticNode, PydanticNode(name="end"), lambda inner: PydanticNode(name="a", next=inner))

    @pytest.fixture
    def type_codec(self) -> PydanticTypeCodec:
        return PydanticTypeCodec()

    @staticmethod
    def holding(hint: Any) -> tuple[Any, Callable[[Any], Any]]:
        config = pydantic.ConfigDict(arbitrary_types_allowed=True)
        made = pydantic.create_model("Holder", __config__=config, inside=(hint, ...))
        return made, lambda value: made(inside=value)
