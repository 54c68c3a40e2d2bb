"""The FunctionSource kit passes a correct source and catches broken ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portico import Function, FunctionPlugin, Parameter
from portico.errors import ConfigurationError
from portico.plugins import Compiled, compile_type
from portico_testkit.function_source import FunctionSourceKit
from portico_testkit.kit_failures import Fault, KnownFaults


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


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_the_kit_finds_what_is_broken(fault: Fault, given: Any) -> None:
    await FAULTS.check(fault, given)
