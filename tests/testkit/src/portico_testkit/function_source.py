"""Whether what a JSON Schema refers to is in it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest

from portico import FunctionPlugin, Kernel
from portico.errors import ArgumentsInvalid, ConfigurationError
from portico.ports import FunctionSource
from portico_testkit.event_loop import leaves_the_event_loop_free
from portico_testkit.tasks import give_up, no_tasks_but, still_answers

__all__ = ["FunctionSourceKit", "lost_references"]

_DATA = frozenset({"const", "default", "enum", "examples"})
_NAMED = frozenset({"properties", "patternProperties", "$defs", "dependentSchemas"})
"""Keywords that have a schema for each name; a name may be one that is a keyword elsewhere."""
_INDEX = re.compile("0|[1-9][0-9]*")
_BARE_TILDE = re.compile("~(?![01])")


def lost_references(schema: Mapping[str, Any]) -> list[str]:
    """Return each ``$ref`` that leads to no schema within this one.

    A reference is a JSON pointer in the form of a URI fragment (RFC 6901, section 6), or the name of an ``$anchor``.

    >>> schema = {"$defs": {"a/b": {}, "é": {"items": [True]}}, "enum": [{"$ref": "data"}]}
    >>> lost_references({**schema, "anyOf": [{"$ref": "#/$defs/a~1b"}, {"$ref": "#/%24defs/%C3%A9/items/0"}]})
    []
    >>> lost_references({**schema, "anyOf": [{"$ref": "#/$defs/a/b"}, {"$ref": "#/$defs/é/items/00"}]})
    ['#/$defs/a/b', '#/$defs/é/items/00']
    """
    parts = list(_schemas(schema))
    anchors = {anchor for part in parts for anchor in (part.get("$anchor"), part.get("$dynamicAnchor")) if anchor}
    references = [reference for part in parts if isinstance(reference := part.get("$ref"), str)]
    return [reference for reference in references if not _is_found(reference, schema, anchors)]


def _schemas(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and those in it; what only looks like one is data."""
    if isinstance(schema, list):
        for part in schema:
            yield from _schemas(part)
    elif isinstance(schema, Mapping):
        yield schema
        for key, part in schema.items():
            if key in _NAMED and isinstance(part, Mapping):
                for inner in part.values():
                    yield from _schemas(inner)
            elif key not in _DATA:
                yield from _schemas(part)


def _is_found(reference: str, root: Mapping[str, Any], anchors: set[Any]) -> bool:
    address, _, fragment = reference.partition("#")
    if address:
        return False  # Nobody fetches another document for a model.
    try:
        pointer = unquote_to_bytes(fragment).decode()
    except UnicodeError:
        return False
    if pointer and not pointer.startswith("/"):
        return pointer in anchors
    found: Any = root
    for token in pointer.split("/")[1:]:
        if _BARE_TILDE.search(token):
            return False
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping) and name in found:
            found = found[name]
        elif isinstance(found, Sequence) and not isinstance(found, str) and _INDEX.fullmatch(name):
            if int(name) >= len(found):
                return False
            found = found[int(name)]
        else:
            return False
    return isinstance(found, Mapping | bool)


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
