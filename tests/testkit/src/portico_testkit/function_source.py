"""Whether what a JSON Schema refers to is in it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any
from urllib.parse import unquote

import pytest

from portico import FunctionPlugin, Kernel
from portico.errors import ArgumentsInvalid, ConfigurationError
from portico.ports import FunctionSource
from portico_testkit.event_loop import leaves_the_event_loop_free
from portico_testkit.tasks import give_up, no_tasks_but, still_answers

__all__ = ["FunctionSourceKit", "lost_references"]

_DATA = frozenset({"const", "default", "enum", "examples"})


def lost_references(schema: Mapping[str, Any]) -> list[str]:
    """Return each ``$ref`` that leads nowhere in this schema. A reference is a JSON pointer (RFC 6901), "#/$defs/a".

    >>> lost_references({"$defs": {"a/b": {}}, "anyOf": [{"$ref": "#/$defs/a~1b"}, {"$ref": "#/$defs/c"}]})
    ['#/$defs/c']
    """
    return [reference for reference in _references(schema) if not _is_found(reference, schema)]


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for part in schema:
            yield from _references(part)
    elif isinstance(schema, Mapping):
        if isinstance(reference := schema.get("$ref"), str):
            yield reference
        for key, part in schema.items():
            if key not in _DATA:
                yield from _references(part)


def _is_found(reference: str, root: Any) -> bool:
    found = root
    for token in unquote(reference.removeprefix("#")).split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        try:
            found = found[int(name)] if isinstance(found, list) else found[name]
        except (LookupError, ValueError, TypeError):
            return False
    return reference.startswith("#")


_NAME = re.compile(r"[0-9A-Za-z_]+")


class FunctionSourceKit:
    """Subclass it and give fixtures named ``function_source`` and ``unreadable_source``::

        class TestAcmeFunctions(FunctionSourceKit):
            @pytest.fixture
            def function_source(self, tmp_path: Path) -> AcmeFunctions:
                return AcmeFunctions(AcmeSettings(path=written(tmp_path)), None)

            @pytest.fixture
            def unreadable_source(self, tmp_path: Path) -> AcmeFunctions:
                return AcmeFunctions(AcmeSettings(path=tmp_path / "no such file"), None)

    The first gives a plugin of several functions, some with parameters. No function is called: what a call does is
    for the package's own tests. ``unreadable_source`` stands on something that is not there or is of another kind.
    """

    @pytest.mark.asyncio
    async def test_the_plugin_has_the_name_it_was_given(self, function_source: FunctionSource) -> None:
        for name in ("first", "Second_2"):
            plugin = await _load(function_source, name)
            assert plugin.name == name, f"load({name!r}) gave the plugin {plugin.name!r}"
            for function in plugin:
                assert function.full_name == f"{name}-{function.name}", f"{function.full_name} is not of the plugin"
        await _close(function_source)

    @pytest.mark.asyncio
    async def test_there_are_functions_with_names_of_their_own(self, function_source: FunctionSource) -> None:
        plugin = await _load(function_source)
        assert plugin.functions, "the plugin has no functions"
        names = [function.name for function in plugin]
        assert len(set(names)) == len(names), f"names stand twice: {names}"
        for function in plugin:
            assert _NAME.fullmatch(function.name), f"{function.name!r} is not of letters, digits and '_'"
            parameters = [parameter.name for parameter in function.parameters]
            assert len(set(parameters)) == len(parameters), f"{function.name} has a parameter twice: {parameters}"
            assert all(parameters), f"{function.name} has a parameter without a name"
        await _close(function_source)

    @pytest.mark.asyncio
    async def test_a_kernel_takes_the_plugin(self, function_source: FunctionSource) -> None:
        kernel = Kernel()
        kernel.add_plugin(await _load(function_source))
        for name, spec in kernel.specs.items():
            assert kernel.function(name).full_name == spec.name == name
        await _close(function_source)

    @pytest.mark.asyncio
    async def test_manuals_are_json_schema(self, function_source: FunctionSource) -> None:
        for function in await _load(function_source):
            spec = function.spec
            for schema in (spec.parameters, spec.returns):
                text = json.dumps(schema, allow_nan=False)
                assert json.loads(text) == schema, f"a schema of {function.name} is another after its JSON form"
                lost = lost_references(schema)
                assert not lost, f"a schema of {function.name} refers to what it does not hold: {lost}"
            assert spec.parameters["type"] == "object", f"the parameters of {function.name} are no object"
            known = spec.parameters["properties"]
            missing = [name for name in spec.parameters.get("required", ()) if name not in known]
            assert not missing, f"{function.name} requires {missing}, which it does not describe"
            assert set(known) == {parameter.name for parameter in function.parameters}
        await _close(function_source)

    @pytest.mark.asyncio
    async def test_a_cancelled_load_leaves_it_usable(self, function_source: FunctionSource) -> None:
        tasks = asyncio.all_tasks()
        for moments in range(4):
            await give_up(partial(_load, function_source), turns=moments)
        await no_tasks_but(tasks)
        assert (await still_answers(_load(function_source))).functions
        await _close(function_source)

    @pytest.mark.asyncio
    async def test_a_load_leaves_the_event_loop_free(self, function_source: FunctionSource) -> None:
        await leaves_the_event_loop_free(lambda number: _load(function_source, f"plugin{number}"))
        await _close(function_source)

    @pytest.mark.asyncio
    async def test_missing_and_unknown_arguments_are_told(self, function_source: FunctionSource) -> None:
        for function in await _load(function_source):
            required = [parameter.name for parameter in function.parameters if parameter.required]
            with pytest.raises(ArgumentsInvalid) as raised:
                function.structure_arguments({"no such parameter": 1})
            faults = "; ".join(raised.value.faults)
            for name in [*required, "no such parameter"]:
                assert name in faults, f"{function.name} does not tell of {name!r}: {faults}"
        await _close(function_source)

    @pytest.mark.asyncio
    async def test_an_unreadable_source_is_a_configuration_error(self, unreadable_source: FunctionSource) -> None:
        messages = []
        for _ in range(2):
            with pytest.raises(ConfigurationError) as raised:
                await unreadable_source.load("plugin")
            messages.append(str(raised.value))
        assert len(messages[0]) > 20, f"the message is {messages[0]!r}"
        assert messages[0] == messages[1], "the second try says something else"
        await _close(unreadable_source)


async def _load(source: FunctionSource, name: str = "plugin") -> FunctionPlugin:
    plugin = await source.load(name)
    assert isinstance(plugin, FunctionPlugin), f"load returned {type(plugin).__name__}, not a FunctionPlugin"
    return plugin


async def _close(source: FunctionSource) -> None:
    close = getattr(source, "aclose", None)
    if close is not None:
        await close()
