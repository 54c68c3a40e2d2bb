"""The FunctionSource kit passes a correct source and catches broken ones."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from portico.errors import ConfigurationError
from portico.functions import Function, FunctionPlugin, Parameter
from portico.types import compile_type
from portico.types.compiled import Compiled
from portico_testkit.function_source import FunctionSourceKit
from portico_testkit.kit_failures import kit_failures


class WordSource:
    """Makes a function of each line of a file: its first word is the name, the others are parameters."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self) -> list[str]:
        try:
            return self.path.read_text("utf-8").splitlines()
        except OSError as error:
            raise ConfigurationError(f"The words in {self.path} cannot be read: {error}.") from error

    def function(self, plugin: str, name: str, parameters: list[str]) -> Function:
        async def call(**arguments: Any) -> dict[str, Any]:
            return arguments

        made = [Parameter(each, f"The {each}.", compile_type(int), required=True) for each in parameters]
        schema = {"$ref": "#/$defs/Record", "$defs": {"Record": {"type": "object"}}}
        returns = Compiled(schema, lambda value: value, lambda value: value)
        return Function(name, call, plugin=plugin, description=f"Do {name}.", parameters=made, returns=returns)

    async def load(self, name: str) -> FunctionPlugin:
        lines = await asyncio.to_thread(self.lines)
        functions = [self.function(name, line.split()[0], line.split()[1:]) for line in lines]
        return FunctionPlugin(name, tuple(functions), "Words.")


def made(kind: type[WordSource], folder: Path) -> WordSource:
    path = folder / "words"
    path.write_text("greet person\nadd left right\nstop\n")
    return kind(path)


class TestWordSource(FunctionSourceKit):
    @pytest.fixture
    def function_source(self, tmp_path: Path) -> WordSource:
        return made(WordSource, tmp_path)

    @pytest.fixture
    def unreadable_source(self, tmp_path: Path) -> WordSource:
        return WordSource(tmp_path / "nothing")


class Broken(WordSource):
    """Does right what a variant does not do wrong."""


class IgnoresTheName(Broken):
    async def load(self, name):
        return await super().load("words")


class FunctionsOfNoPlugin(Broken):
    def function(self, plugin, name, parameters):
        return super().function(None, name, parameters)


class RaisesItsOwnError(Broken):
    def lines(self):
        return self.path.read_text("utf-8").splitlines()


class SaysNothing(Broken):
    def lines(self):
        try:
            return super().lines()
        except ConfigurationError:
            raise ConfigurationError("failed") from None


class EmptyWhenUnreadable(Broken):
    def lines(self):
        return super().lines() if self.path.exists() else []


class CountsItsFunctions(Broken):
    count = 0

    def function(self, plugin, name, parameters):
        self.count += 1
        return super().function(plugin, f"{name}_{self.count}", parameters)


class Undescribed(Broken):
    def function(self, plugin, name, parameters):
        function = super().function(plugin, name, parameters)
        function.description = " "
        return function


class AParameterTwice(Broken):
    def function(self, plugin, name, parameters):
        return super().function(plugin, name, [*parameters, *parameters])


class SchemasThatAreNoJson(Broken):
    def function(self, plugin, name, parameters):
        function = super().function(plugin, name, parameters)
        function.returns = Compiled({"enum": {1, 2}}, function.returns.structure, function.returns.unstructure)
        return function


class ReferencesToNothing(Broken):
    def function(self, plugin, name, parameters):
        function = super().function(plugin, name, parameters)
        schema = {"$ref": "#/components/schemas/Record"}
        function.returns = Compiled(schema, function.returns.structure, function.returns.unstructure)
        return function


class ArgumentsThatRaise(Broken):
    def function(self, plugin, name, parameters):
        def structure(value):
            return value + 1

        kind = Compiled({"type": "integer"}, structure, lambda value: value)
        made = [Parameter(each, "", kind, required=True) for each in parameters]
        function = super().function(plugin, name, [])
        return Function(
            name, function.callable, plugin=plugin, description=name, parameters=made, returns=function.returns
        )


class TakesAnything(Broken):
    def function(self, plugin, name, parameters):
        function = super().function(plugin, name, parameters)
        function.__class__ = Lenient
        return function


class Lenient(Function):
    __slots__ = ()

    def structure_arguments(self, arguments, **options):
        return dict(arguments)


class NoFunctions(Broken):
    def lines(self):
        super().lines()
        return []


class LeavesATask(Broken):
    async def load(self, name):
        self.task = asyncio.create_task(asyncio.sleep(0.5))
        return await super().load(name)


class ClosesOnce(Broken):
    closed = False

    async def aclose(self):
        if self.closed:
            raise RuntimeError("closed already")
        self.closed = True


class MixesLoads(Broken):
    async def load(self, name):
        self.name = name
        await asyncio.sleep(0.001)
        return await super().load(self.name)


class DeadAfterCancellation(Broken):
    busy = False

    async def load(self, name):
        if self.busy:
            raise RuntimeError("still busy")
        self.busy = True
        plugin = await super().load(name)
        self.busy = False
        return plugin


class ReturnsAList(Broken):
    async def load(self, name):
        return list(await super().load(name))


BROKEN = Broken.__subclasses__()


async def failures(kind: type[WordSource], folder: Path, *tests: str) -> dict[str, str]:
    sources = {"function_source": lambda: made(kind, folder), "unreadable_source": lambda: kind(folder / "nothing")}
    return await kit_failures(FunctionSourceKit, sources, tests or None)


@pytest.mark.parametrize("variant", BROKEN, ids=lambda variant: variant.__name__)
async def test_the_kit_catches(variant: type[WordSource], tmp_path: Path) -> None:
    assert await failures(variant, tmp_path), f"no test of the kit fails for {variant.__name__}"


async def test_the_kit_finds_nothing_wrong_with_what_the_broken_ones_share(tmp_path: Path) -> None:
    assert await failures(Broken, tmp_path) == {}


@pytest.mark.parametrize(
    ("variant", "test"),
    [
        (IgnoresTheName, "test_the_plugin_has_the_name_it_was_given"),
        (CountsItsFunctions, "test_it_loads_twice_equally"),
        (ReferencesToNothing, "test_manuals_are_json_schema"),
        (ArgumentsThatRaise, "test_an_odd_argument_is_taken_or_refused"),
        (TakesAnything, "test_missing_and_unknown_arguments_are_told"),
        (RaisesItsOwnError, "test_an_unreadable_source_is_a_configuration_error"),
        (DeadAfterCancellation, "test_a_cancelled_load_leaves_it_usable"),
        (MixesLoads, "test_loads_at_the_same_time_do_not_mix"),
        (LeavesATask, "test_it_leaves_no_task_behind"),
        (ClosesOnce, "test_it_closes_whenever_it_is_told_to"),
    ],
)
async def test_a_fault_is_caught_by_the_test_that_names_it(
    variant: type[WordSource], test: str, tmp_path: Path
) -> None:
    assert await failures(variant, tmp_path, test)
