"""The FunctionSource kit passes a correct source and catches broken ones."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from portico.errors import ConfigurationError
from portico.functions import Function, FunctionPlugin, Parameter
from portico.types import compile_type
from portico.types.compiled import Compiled
from portico_testkit.function_source import FunctionSourceKit
from portico_testkit.kit_failures import KnownFaults, keeps_its_lock
from portico_testkit.kit_of_a_kit import KitOfAKit


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


def made(kind: Callable[[Path], WordSource], folder: Path) -> WordSource:
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


FAULTS = KnownFaults(
    FunctionSourceKit,
    lambda kind: {
        "function_source": lambda tmp_path: made(kind, tmp_path),
        "unreadable_source": lambda tmp_path: kind(tmp_path / "nothing"),
    },
)


class Broken(WordSource):
    """Does right what a variant does not do wrong."""


@FAULTS.caught_by("the_plugin_has_the_name_it_was_given", "gave the plugin 'words'")
class IgnoresTheName(Broken):
    async def load(self, name):
        return await super().load("words")


@FAULTS.caught_by("the_plugin_has_the_name_it_was_given", "is not of the plugin")
class FunctionsOfNoPlugin(Broken):
    def function(self, plugin, name, parameters):
        return super().function(None, name, parameters)


@FAULTS.caught_by("an_unreadable_source_is_a_configuration_error")
class RaisesItsOwnError(Broken):
    def lines(self):
        return self.path.read_text("utf-8").splitlines()


@FAULTS.caught_by("an_unreadable_source_is_a_configuration_error", "the message is 'failed'")
class SaysNothing(Broken):
    def lines(self):
        try:
            return super().lines()
        except ConfigurationError:
            raise ConfigurationError("failed") from None


@FAULTS.caught_by("an_unreadable_source_is_a_configuration_error", "DID NOT RAISE")
class EmptyWhenUnreadable(Broken):
    def lines(self):
        return super().lines() if self.path.exists() else []


@FAULTS.caught_by("it_loads_twice_equally", "the second load gave another plugin")
class CountsItsFunctions(Broken):
    count = 0

    def function(self, plugin, name, parameters):
        self.count += 1
        return super().function(plugin, f"{name}_{self.count}", parameters)


@FAULTS.caught_by("functions_and_plugin_are_described", "nothing is said of")
class Undescribed(Broken):
    def function(self, plugin, name, parameters):
        function = super().function(plugin, name, parameters)
        function.description = " "
        return function


@FAULTS.caught_by("there_are_functions_with_names_of_their_own", "has a parameter twice")
class AParameterTwice(Broken):
    def function(self, plugin, name, parameters):
        return super().function(plugin, name, [*parameters, *parameters])


@FAULTS.caught_by("manuals_are_json_schema", "not JSON serializable")
class SchemasThatAreNoJson(Broken):
    def function(self, plugin, name, parameters):
        function = super().function(plugin, name, parameters)
        function.returns = Compiled({"enum": {1, 2}}, function.returns.structure, function.returns.unstructure)
        return function


class Refers(Broken):
    """Has functions whose results are of a schema with references."""

    references: ClassVar[tuple[str, ...]] = ()

    def function(self, plugin, name, parameters):
        function = super().function(plugin, name, parameters)
        schema = {"title": "A record", "$defs": {"Record": {}, "a/b": {}}, "anyOf": [{"$ref": "#"}]}
        schema["anyOf"] += [{"$ref": reference} for reference in self.references]
        function.returns = Compiled(schema, function.returns.structure, function.returns.unstructure)
        return function


@FAULTS.caught_by("manuals_are_json_schema", r"what it does not hold: \['#/components/schemas/Record'\]")
class RefersToNothing(Refers):
    references = ("#/components/schemas/Record", "#/$defs/Record")


@FAULTS.caught_by("manuals_are_json_schema", r"what it does not hold: \['Record', 'other.json#/\$defs/Record'\]")
class RefersToOtherDocuments(Refers):
    references = ("Record", "other.json#/$defs/Record")


@FAULTS.caught_by("manuals_are_json_schema", r"what it does not hold: \['#/\$defs/a/b'\]")
class RefersWithoutEscapes(Refers):
    references = ("#/$defs/a/b", "#/$defs/a~1b")


@FAULTS.caught_by("manuals_are_json_schema", r"not hold: \['#/\$defs/a~01b', '#/~2', '#%FF', '#\\ud800', '#second'\]")
class RefersByWhatIsNoReference(Refers):
    references = ("#/$defs/a~01b", "#/~2", "#%FF", "#\ud800", "#second")


@FAULTS.caught_by("manuals_are_json_schema", r"what it does not hold: \['#/title', '#/anyOf/00', '#/anyOf/9'\]")
class RefersToWhatIsNoSchema(Refers):
    references = ("#/title", "#/anyOf/00", "#/anyOf/9", "#/anyOf/0")


@FAULTS.caught_by("an_odd_argument_is_taken_or_refused")
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


@FAULTS.caught_by("missing_and_unknown_arguments_are_told", "DID NOT RAISE")
class TakesAnything(Broken):
    def function(self, plugin, name, parameters):
        function = super().function(plugin, name, parameters)
        function.__class__ = Lenient
        return function


class Lenient(Function):
    __slots__ = ()

    def structure_arguments(self, arguments, **options):
        return dict(arguments)


@FAULTS.caught_by("there_are_functions_with_names_of_their_own", "the plugin has no functions")
class NoFunctions(Broken):
    def lines(self):
        super().lines()
        return []


@FAULTS.caught_by("it_leaves_no_task_behind", "1 tasks go on")
class LeavesATask(Broken):
    async def load(self, name):
        self.task = asyncio.create_task(asyncio.sleep(5))
        return await super().load(name)


@FAULTS.caught_by("it_closes_whenever_it_is_told_to", "closed already")
class ClosesOnce(Broken):
    closed = False

    async def aclose(self):
        if self.closed:
            raise RuntimeError("closed already")
        self.closed = True


@FAULTS.caught_by("loads_at_the_same_time_do_not_mix")
class MixesLoads(Broken):
    async def load(self, name):
        self.name = name
        await asyncio.sleep(0.001)
        return await super().load(self.name)


@FAULTS.caught_by("a_cancelled_load_leaves_it_usable", "still busy")
class DeadAfterCancellation(Broken):
    busy = False

    async def load(self, name):
        if self.busy:
            raise RuntimeError("still busy")
        self.busy = True
        plugin = await super().load(name)
        self.busy = False
        return plugin


@FAULTS.caught_by("a_kernel_takes_the_plugin", "not a FunctionPlugin")
class ReturnsAList(Broken):
    async def load(self, name):
        return list(await super().load(name))


@FAULTS.caught_by("a_cancelled_load_leaves_it_usable", "after a cancelled call it never answers")
class KeepsItsLockWhenCancelled(Broken):
    load = keeps_its_lock(Broken.load)


@FAULTS.caught_by("a_cancelled_load_leaves_it_usable", "as if nobody had cancelled it")
class TakesNoNoticeOfCancellation(Broken):
    async def load(self, name):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.01)
        return await super().load(name)


@FAULTS.caught_by("a_cancelled_load_leaves_it_usable", "a cancelled call raised ConfigurationError")
class TakesCancellationForAFailure(Broken):
    async def load(self, name):
        try:
            return await super().load(name)
        except asyncio.CancelledError:
            raise ConfigurationError(f"The words in {self.path} cannot be read.") from None


@FAULTS.caught_by("a_load_leaves_the_event_loop_free", "the event loop waits by time.sleep in")
class BlocksTheLoop(Broken):
    async def load(self, name):
        time.sleep(0.05)
        return await super().load(name)


class ClosesInSeveralTurns(WordSource):
    """As a connection does that says good-bye after `aclose` has returned."""

    async def aclose(self):
        self.closing = asyncio.create_task(asyncio.sleep(0.02))


class RefersInEveryWay(WordSource):
    """By pointers with escapes, by a place in a list, to itself and by an anchor; data that only looks so is none."""

    def function(self, plugin, name, parameters):
        function = super().function(plugin, name, parameters)
        schema = {
            "$defs": {"a/b": {"prefixItems": [True, {"$anchor": "second"}]}, "50 % ~é": {}, "properties": {}},
            "properties": {"$ref": {"enum": [{"$ref": "#/data"}], "default": {"$ref": 1}}},
            "anyOf": [
                {"$ref": reference}
                for reference in (
                    "#",
                    "#/$defs/a~1b",
                    "#/%24defs/a~1b/prefixItems/1",
                    "#/$defs/50%20%25%20~0%C3%A9",
                    "#/$defs/50 %25 ~0é",
                    "#/properties/$ref",
                    "#second",
                )
            ],
        }
        function.returns = Compiled(schema, function.returns.structure, function.returns.unstructure)
        return function


class TestTheFunctionSourceKit(KitOfAKit):
    faults = FAULTS
    correct = (Broken, ClosesInSeveralTurns, RefersInEveryWay)
