"""The TypeCodec kit passes a correct codec and catches broken ones; the codecs of portico-basics pass it too."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from portico.plugins import Compiled, Mismatch
from portico_testkit.kit_failures import Fault, KnownFaults
from portico_testkit.type_codec import CodecCase, TypeCodecKit


class FractionCodec:
    """The codec of the documentation: its types have no fields."""

    name = "fractions"

    def compile(self, hint: Any, inner: Callable[[object], Compiled]) -> Compiled | None:
        if hint is not Fraction:
            return None
        text = inner(str)
        return Compiled({"type": "string"}, lambda value: self.read(text.structure(value)), self.write)

    def read(self, text: str) -> Fraction:
        try:
            return Fraction(text)
        except (ValueError, ZeroDivisionError):
            Mismatch.refuse("a fraction such as 3/4", text)

    def write(self, value: Fraction) -> str:
        return str(value)


class TestFractionCodec(TypeCodecKit):
    cases = (CodecCase(Fraction, [Fraction(3, 4), Fraction(-2)], [(5, ["$"]), ("1/0", ["$"])]),)

    @pytest.fixture
    def type_codec(self) -> FractionCodec:
        return FractionCodec()


FAULTS = KnownFaults(TestFractionCodec, lambda kind: {"type_codec": kind})


@FAULTS.caught_by("it_compiles_what_is_of_its_kind", r"returned NoneType")
class LeavesItsOwnKindToCore(FractionCodec):
    def compile(self, hint: Any, inner: Callable[[object], Compiled]) -> Compiled | None:
        return None


@FAULTS.caught_by("json_that_does_not_fit_is_refused_with_its_places", "took '1/0'")
class TakesAnything(FractionCodec):
    def read(self, text: str) -> Fraction:
        return Fraction(0) if text == "1/0" else super().read(text)


@FAULTS.caught_by("a_value_comes_back_from_json_as_it_was", "came back as")
class Rounds(FractionCodec):
    def write(self, value: Fraction) -> str:
        return str(round(value))


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_the_kit_finds_what_is_broken(fault: Fault, given: Any) -> None:
    await FAULTS.check(fault, given)
