"""What a codec's test class declares, and the values that the kit makes from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from types import GenericAlias
from typing import Any, ClassVar

import jsonschema
import pytest

from portico.errors import SchemaUnsupported
from portico.plugins import Compiled, Fault, Mismatch, compile_type
from portico.ports import TypeCodec

__all__ = ["JUNK", "Chain", "CodecCase", "Coin", "CoinCodec", "TypeCodecKit", "references", "through_json"]


@dataclass(frozen=True, slots=True)
class CodecCase:
    """A type of the codec's kind, some of its values, and JSON that is none of them.

    ``refused`` has such JSON with every place where it is wrong: ``({"age": "x"}, ["$.age"])``.
    """

    hint: Any
    values: Sequence[Any]
    refused: Sequence[tuple[Any, Sequence[str]]] = ()


@dataclass(frozen=True, slots=True)
class Chain:
    """A type that contains itself: a value without another inside, and a function that puts one around a value."""

    hint: Any
    end: Any
    around: Callable[[Any], Any]


class Coin(str):
    """A class that no codec but `CoinCodec` knows."""


class CoinCodec:
    """Another codec beside the one under test; its JSON is "5 cents"."""

    name = "coin"

    def compile(self, hint: object, inner: Callable[[object], Compiled]) -> Compiled | None:
        """Compile a `Coin`."""
        if hint is not Coin:
            return None

        def structure(value: Any) -> Coin:
            return Coin(value) if value == "5 cents" else Mismatch.refuse("an amount in cents", value)

        return Compiled({"type": "string"}, structure, str)


def _nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


JUNK: Sequence[Any] = (
    None, True, 0, -1, 1.5, 2.0, "", "x", "\x00", "half a \ud800 character", [], [[]], [None], {}, {"": None},
    {"a": {}}, float("nan"), float("inf"), [float("nan")], {"a": float("inf")}, 10**400, _nested(5_000),
)  # fmt: skip
"""What Python's own JSON parser may give; a type may take some of it, and refuses the rest with a Mismatch."""


def through_json(value: Any) -> Any:
    """Return a JSON value as it is after it was sent as text."""
    return json.loads(json.dumps(value, allow_nan=False))


def references(schema: Any) -> Iterator[str]:
    """Yield every reference in a schema."""
    if isinstance(schema, Mapping):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for part in schema.values():
            yield from references(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from references(part)


class TypeCodecKit:
    """Subclass it, give a fixture named ``type_codec``, and say what the codec compiles::

        class TestAcmeCodec(TypeCodecKit):
            cases = (CodecCase(User, [User("Ada", 36)], [({"name": 5, "age": "x"}, ["$.name", "$.age"])]),)
            chain = Chain(Node, Node(None), Node)

            @pytest.fixture
            def type_codec(self) -> AcmeCodec:
                return AcmeCodec()

            @staticmethod
            def holding(hint):
                made = acme.record("Holder", inside=hint)
                return made, made

    ``holding`` returns a type of the codec's kind with one field of a given type, and a function that makes a value
    of it; None for a codec whose types have no fields. ``chain`` is a type that contains itself, None where there
    can be none. Set ``all_faults`` to False for a codec that stops at the first fault, and ``takes_foreign`` for one
    whose types cannot hold those of other codecs: it must then refuse them when it compiles.
    """

    cases: ClassVar[Sequence[CodecCase]] = ()
    chain: ClassVar[Chain | None] = None
    all_faults: ClassVar[bool] = True
    takes_foreign: ClassVar[bool] = True

    @staticmethod
    def holding(hint: Any) -> tuple[Any, Callable[[Any], Any]] | None:
        """Return a type with one field of ``hint``, and what makes a value of it."""
        return None

    def test_it_has_a_name_and_the_kit_was_told_enough(self, type_codec: TypeCodec) -> None:
        assert isinstance(type_codec.name, str), f"its name is {type_codec.name!r}"
        assert type_codec.name.strip(), "its name is empty"
        assert self.cases, "give the kit some `cases`"
        assert all(case.values for case in self.cases), "give each case some values"
        most = max((len(places) for case in self.cases for _, places in case.refused), default=0)
        assert most > 0, "give each case some JSON that does not fit"
        assert most > 1 or self.holding(int) is None, "give a case some JSON that is wrong in two places"

    def test_it_compiles_what_is_of_its_kind(self, type_codec: TypeCodec) -> None:
        for case, compiled in self._compiled_alone(type_codec):
            assert isinstance(compiled, Compiled), f"compile({case.hint!r}) returned {type(compiled).__name__}"

    def test_the_schema_is_json_and_valid(self, type_codec: TypeCodec) -> None:
        for case, compiled in self._compiled(type_codec):
            schema = compiled.schema
            assert through_json(schema) == schema, f"the schema of {case.hint!r} changes when it is sent as JSON"
            jsonschema.Draft202012Validator.check_schema(schema)
            known = {f"#/$defs/{name}" for name in schema.get("$defs", {})}
            lost = set(references(schema)) - known
            assert not lost, f"the schema of {case.hint!r} refers to {lost}, which it does not define"

    def test_a_value_comes_back_from_json_as_it_was(self, type_codec: TypeCodec) -> None:
        for case, compiled in self._compiled(type_codec):
            for value in case.values:
                _require_whole(compiled, value, repr(case.hint))

    def test_json_that_does_not_fit_is_refused_with_its_places(self, type_codec: TypeCodec) -> None:
        for case, compiled in self._compiled(type_codec):
            for given_, places in case.refused:
                faults = _faults(compiled, given_)
                assert faults, f"{case.hint!r} took {given_!r}"
                told = {Fault.place(fault.path) for fault in faults}
                wrong = told != set(places) if self.all_faults else not told <= set(places)
                assert not wrong, (
                    f"{given_!r} is wrong at {', '.join(places)}, and faults are told at {', '.join(told)}"
                )

    def test_whatever_json_comes_it_is_taken_or_refused_and_nothing_else(self, type_codec: TypeCodec) -> None:
        for case, compiled in self._compiled(type_codec):
            for junk in JUNK:
                _taken_or_refused(compiled, junk, repr(case.hint))

    def test_types_of_core_hold_it(self, type_codec: TypeCodec) -> None:
        for case in self.cases:
            wrong = next((given_ for given_, _ in case.refused), None)
            holder = make_dataclass("Holder", [("inside", case.hint)])
            shapes: Sequence[tuple[Any, Callable[[Any], Any], Callable[[Any], Any], str]] = (
                (GenericAlias(list, (case.hint,)), lambda value: [value], lambda part: [part], "$[0]"),
                (GenericAlias(dict, (str, case.hint)), lambda value: {"k": value}, lambda part: {"k": part}, "$.k"),
                (GenericAlias(tuple, (case.hint, int)), lambda value: (value, 1), lambda part: [part, 1], "$[0]"),
                (holder, holder, lambda part: {"inside": part}, "$.inside"),
            )
            for hint, around, around_json, prefix in shapes:
                compiled = compile_type(hint, [type_codec])
                for value in case.values:
                    _require_whole(compiled, around(value), f"{case.hint!r} in {hint!r}")
                if wrong is not None:
                    told = [Fault.place(fault.path) for fault in _faults(compiled, around_json(wrong)) or ()]
                    assert told, f"{hint!r} took {wrong!r} inside"
                    assert all(path.startswith(prefix) for path in told), f"places are {told}, not under {prefix}"

    def test_types_of_other_codecs_are_held_by_it_or_refused(self, type_codec: TypeCodec) -> None:
        held = self.holding(Coin)
        if held is None:
            pytest.skip("its types have no fields")
        for codecs in ([type_codec, CoinCodec()], [CoinCodec(), type_codec]):
            if self.takes_foreign:
                self._held(compile_type(held[0], codecs), held[1](Coin("5 cents")), "many", "Coin")
            else:
                with pytest.raises(SchemaUnsupported, match="Coin"):
                    compile_type(held[0], codecs)

    def test_a_type_that_contains_itself_has_an_end(self, type_codec: TypeCodec) -> None:
        if self.chain is None:
            pytest.skip("its types cannot contain themselves")
        compiled = compile_type(self.chain.hint, [type_codec])
        assert list(references(compiled.schema)), "the schema of a type that contains itself has no reference"
        jsonschema.Draft202012Validator.check_schema(compiled.schema)
        value = self.chain.end
        for _ in range(20):
            _require_whole(compiled, value, repr(self.chain.hint))
            value = self.chain.around(value)
        _require_whole(compile_type(GenericAlias(list, (self.chain.hint,)), [type_codec]), [value], "a list of them")

    def _compiled(self, type_codec: TypeCodec) -> Iterator[tuple[CodecCase, Compiled]]:
        for case in self.cases:
            yield case, compile_type(case.hint, [type_codec])

    def _compiled_alone(self, type_codec: TypeCodec) -> Iterator[tuple[CodecCase, Any]]:
        """Yield what the codec itself makes: core turns what a draft raises into a Mismatch."""
        for case in self.cases:
            yield case, type_codec.compile(case.hint, lambda hint: compile_type(hint, [type_codec]))

    def _held(self, compiled: Compiled, value: Any, wrong: Any, name: str) -> None:
        _require_whole(compiled, value, f"{name} in a type of the codec's")
        written = compiled.unstructure(value)
        step: Any = next(iter(written)) if isinstance(written, dict) else 0
        written[step] = wrong
        faults = _faults(compiled, written)
        assert faults, f"{name} inside was read from {wrong!r}"
        assert all(fault.path[:1] == (step,) for fault in faults), f"{written!r} is told to be wrong at {faults}"


def _require_whole(compiled: Compiled, value: Any, name: str) -> None:
    written = compiled.unstructure(value)
    sent = through_json(written)
    assert sent == written, f"{name}: {value!r} is written as {written!r}, which is no JSON"
    errors = [error.message for error in jsonschema.Draft202012Validator(compiled.schema).iter_errors(sent)]
    assert not errors, f"{name}: {sent!r} is not valid under the schema of its type: {errors}"
    read = compiled.structure(sent)
    assert type(read) is type(value), f"{name}: {value!r} came back as {read!r}"
    assert read == value, f"{name}: {value!r} came back as {read!r}"


def _faults(compiled: Compiled, given: Any) -> tuple[Fault, ...] | None:
    """Return the faults of JSON that is refused, None where it is taken."""
    try:
        compiled.structure(given)
    except Mismatch as error:
        return error.faults
    return None


def _taken_or_refused(compiled: Compiled, given: Any, name: str) -> None:
    try:
        read = compiled.structure(given)
    except Mismatch as error:
        assert error.faults, f"{name} was refused without a fault"
        return
    except Exception as error:
        raise AssertionError(f"{name}: structure raised {error!r}, not a Mismatch") from error
    _require_whole(compiled, read, name)
